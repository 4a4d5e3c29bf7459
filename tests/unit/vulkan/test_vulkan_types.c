/* Which memory types gm shows, and in which order, for cards that are not here: plain data, no driver is loaded. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "backends/vulkan/vulkan_types.h"

enum {
  LOCAL = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT,
  VISIBLE = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT,
  COHERENT = VK_MEMORY_PROPERTY_HOST_COHERENT_BIT,
  CACHED = VK_MEMORY_PROPERTY_HOST_CACHED_BIT
};

static const uint64_t MIB = 1 << 20, GIB = 1 << 30;

static gm__vulkan_physical card(void) {
  gm__vulkan_physical physical = {.max_memory_bytes = UINT64_MAX, .max_buffer_bytes = UINT64_MAX};
  physical.props.limits.nonCoherentAtomSize = 64;
  return physical;
}

static void add_heap(gm__vulkan_physical *physical, uint64_t bytes) {
  physical->memory.memoryHeaps[physical->memory.memoryHeapCount++].size = bytes;
}

static void add_type(gm__vulkan_physical *physical, VkMemoryPropertyFlags flags, uint32_t heap) {
  physical->memory.memoryTypes[physical->memory.memoryTypeCount++] = (VkMemoryType){flags, heap};
}

static void check_order(const gm__vulkan_physical *physical, uint32_t bits, bool split, const uint32_t *indices,
                        uint32_t count) {
  gm__vulkan_type types[VULKAN_MAX_TYPES];
  assert_int_equal(gm__vulkan_types_list(physical, bits, split, types), count);
  for (uint32_t i = 0; i < count; i++) assert_int_equal(types[i].index, indices[i]);
}

/* 8 GiB of which the host sees a window of 256 MiB. */
static gm__vulkan_physical discrete(void) {
  gm__vulkan_physical physical = card();
  add_heap(&physical, 8 * GIB);
  add_heap(&physical, 16 * GIB);
  add_heap(&physical, 256 * MIB);
  add_type(&physical, 0, 1);
  add_type(&physical, LOCAL | VISIBLE | COHERENT, 2);
  add_type(&physical, VISIBLE | COHERENT, 1);
  add_type(&physical, VISIBLE | COHERENT | CACHED, 1);
  add_type(&physical, LOCAL, 0);
  return physical;
}

static void test_discrete(void **state) {
  (void)state;
  const gm__vulkan_physical physical = discrete();
  const uint32_t order[] = {4, 1, 3, 2}; /* the card, its window, host memory read fast, host memory */
  check_order(&physical, 0x1f, false, order, 4);
  gm__vulkan_type types[VULKAN_MAX_TYPES];
  gm__vulkan_types_list(&physical, 0x1f, false, types);
  assert_int_equal(types[0].heap_bytes, 8 * GIB);
  assert_int_equal(types[1].max_bytes, 256 * MIB);
  const uint32_t visible = GM_MEMORY_HOST_VISIBLE | GM_MEMORY_HOST_COHERENT | GM_MEMORY_PERSISTENT_MAP;
  assert_int_equal(types[0].flags, GM_MEMORY_DEVICE_LOCAL);
  assert_int_equal(types[1].flags, GM_MEMORY_DEVICE_LOCAL | visible | GM_MEMORY_WRITE_COMBINED);
  assert_int_equal(types[2].flags, visible | GM_MEMORY_HOST_CACHED | GM_MEMORY_SYSTEM);
  assert_int_equal(types[3].flags, visible | GM_MEMORY_WRITE_COMBINED | GM_MEMORY_SYSTEM);
}

/* All memory of an integrated GPU, and of a driver on the CPU, is the host's. The latter takes pages at the first
 * write.
 */
static void test_system(void **state) {
  (void)state;
  gm__vulkan_physical physical = discrete();
  gm__vulkan_type types[VULKAN_MAX_TYPES];
  physical.props.deviceType = VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU;
  gm__vulkan_types_list(&physical, 0x1f, false, types);
  assert_int_equal(types[0].flags, GM_MEMORY_DEVICE_LOCAL | GM_MEMORY_SYSTEM);
  physical.props.deviceType = VK_PHYSICAL_DEVICE_TYPE_CPU;
  gm__vulkan_types_list(&physical, 0x1f, false, types);
  assert_int_equal(types[0].flags, GM_MEMORY_DEVICE_LOCAL | GM_MEMORY_SYSTEM);
  for (int i = 1; i < 4; i++) assert_true(types[i].flags & GM_MEMORY_SYSTEM && types[i].flags & GM_MEMORY_LAZY);
}

static void test_bits(void **state) {
  (void)state;
  const gm__vulkan_physical physical = discrete();
  const uint32_t order[] = {4, 2};
  check_order(&physical, 1u << 4 | 1u << 2 | 1u << 0, false, order, 2);
  check_order(&physical, 0, false, order, 0);
}

/* An integrated GPU with a device-local heap of 16 MiB: the large heap follows, so falling through finds it. */
static void test_tiny_local_heap(void **state) {
  (void)state;
  gm__vulkan_physical physical = card();
  add_heap(&physical, 16 * MIB);
  add_heap(&physical, 12 * GIB);
  add_type(&physical, VISIBLE | COHERENT, 1);
  add_type(&physical, VISIBLE | CACHED, 1);
  add_type(&physical, LOCAL | VISIBLE | COHERENT, 0);
  const uint32_t order[] = {2, 1, 0};
  check_order(&physical, 7, false, order, 3);
  gm__vulkan_type types[VULKAN_MAX_TYPES];
  gm__vulkan_types_list(&physical, 7, false, types);
  assert_int_equal(types[0].max_bytes, 16 * MIB);
  assert_int_equal(types[0].atom, 1);
  assert_int_equal(types[1].atom, 64); /* cached, not coherent */
  assert_false(types[1].coherent);
}

static void test_refused(void **state) {
  (void)state;
  gm__vulkan_physical physical = card();
  add_heap(&physical, GIB);
  add_type(&physical, LOCAL | VK_MEMORY_PROPERTY_LAZILY_ALLOCATED_BIT, 0);
  add_type(&physical, LOCAL | VK_MEMORY_PROPERTY_PROTECTED_BIT, 0);
  add_type(&physical, LOCAL | VK_MEMORY_PROPERTY_DEVICE_COHERENT_BIT_AMD | VK_MEMORY_PROPERTY_DEVICE_UNCACHED_BIT_AMD,
           0);
  add_type(&physical, LOCAL, 0);
  const uint32_t order[] = {3};
  check_order(&physical, 15, false, order, 1);
}

static void test_split(void **state) {
  (void)state;
  gm__vulkan_physical physical = card();
  add_heap(&physical, 2 * GIB);
  add_type(&physical, LOCAL | VISIBLE | COHERENT | CACHED, 0);
  const uint32_t order[] = {0, 0};
  check_order(&physical, 1, true, order, 2);
  gm__vulkan_type types[VULKAN_MAX_TYPES];
  gm__vulkan_types_list(&physical, 1, true, types);
  assert_int_equal(types[0].flags, GM_MEMORY_DEVICE_LOCAL);
  assert_int_equal(types[1].flags,
                   GM_MEMORY_HOST_VISIBLE | GM_MEMORY_HOST_COHERENT | GM_MEMORY_HOST_CACHED | GM_MEMORY_PERSISTENT_MAP);
  assert_int_equal(types[0].heap, types[1].heap);
}

static void test_limits(void **state) {
  (void)state;
  gm__vulkan_physical physical = discrete();
  gm__vulkan_type types[VULKAN_MAX_TYPES];
  physical.max_memory_bytes = 4 * GIB - 4096;
  gm__vulkan_types_list(&physical, 1u << 4, false, types);
  assert_int_equal(types[0].max_bytes, 4 * GIB - 4096);
  physical.max_buffer_bytes = 2 * GIB;
  gm__vulkan_types_list(&physical, 1u << 4, false, types);
  assert_int_equal(types[0].max_bytes, 2 * GIB);
}

/* More types than the seam carries, split in two each. */
static void test_many(void **state) {
  (void)state;
  gm__vulkan_physical physical = card();
  gm__vulkan_type types[VULKAN_MAX_TYPES];
  add_heap(&physical, GIB);
  for (int i = 0; i < 31; i++) add_type(&physical, LOCAL | VISIBLE | COHERENT, 0);
  add_type(&physical, VISIBLE | COHERENT, 0);
  assert_int_equal(gm__vulkan_types_list(&physical, 0xffffffff, false, types), 32);
  assert_int_equal(gm__vulkan_types_list(&physical, 0xffffffff, true, types), 32);
}

static void test_alignment(void **state) {
  (void)state;
  gm__vulkan_physical physical = card();
  assert_int_equal(gm__vulkan_alignment(&physical, 0), 256);
  physical.props.limits.minStorageBufferOffsetAlignment = 1024;
  assert_int_equal(gm__vulkan_alignment(&physical, 16), 1024);
  assert_int_equal(gm__vulkan_alignment(&physical, 65536), 65536);
  physical.props.limits.minUniformBufferOffsetAlignment = 3000; /* nonsense is passed over */
  assert_int_equal(gm__vulkan_alignment(&physical, 0), 1024);
}

static void test_heaps(void **state) {
  (void)state;
  gm__vulkan_heaps heaps = {0};
  assert_true(gm__vulkan_heaps_take(&heaps, 1, 60, 100));
  assert_false(gm__vulkan_heaps_take(&heaps, 1, 41, 100));
  assert_true(gm__vulkan_heaps_take(&heaps, 1, 40, 100));
  assert_false(gm__vulkan_heaps_take(&heaps, 1, UINT64_MAX, UINT64_MAX));
  assert_true(gm__vulkan_heaps_take(&heaps, 0, 100, 100)); /* another heap */
  gm__vulkan_heaps_give(&heaps, 1, 60);
  assert_true(gm__vulkan_heaps_take(&heaps, 1, 60, 100));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_discrete),        cmocka_unit_test(test_system),  cmocka_unit_test(test_bits),
      cmocka_unit_test(test_tiny_local_heap), cmocka_unit_test(test_refused), cmocka_unit_test(test_split),
      cmocka_unit_test(test_limits),          cmocka_unit_test(test_many),    cmocka_unit_test(test_alignment),
      cmocka_unit_test(test_heaps),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

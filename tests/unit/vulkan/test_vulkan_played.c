/* A played card: a real driver behind hooks that change what it says of itself. It has what no CPU driver has. That is
 * memory that is not coherent, a card's heap beside the host's, a budget, dedicated allocations, a small allocation
 * count. gm's requests to the driver are checked on the way. Simulated: it proves gm's side, nothing about any
 * card. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "support/vulkan_fixture.h"
/* after the fixture */
#include "support/vulkan_engine.h"

enum { ATOM = 256, CARD = 24 << 20, HOST = 64 << 20, MOST_LIVE = 6 };

static struct {
  gm__vulkan_syms real;
  bool prefers_dedicated;
  float priority; /* of the last allocation; 0: none */
  uint32_t dedicated, flushes, invalidates, live, concurrent;
  uint64_t largest;
} played;

static VKAPI_ATTR VkResult VKAPI_CALL played_extensions(VkPhysicalDevice physical, const char *layer, uint32_t *count,
                                                        VkExtensionProperties *out) {
  if (layer) return played.real.vkEnumerateDeviceExtensionProperties(physical, layer, count, out);
  const VkExtensionProperties list[] = {{VK_EXT_MEMORY_BUDGET_EXTENSION_NAME, 1},
                                        {VK_EXT_MEMORY_PRIORITY_EXTENSION_NAME, 1}};
  for (uint32_t i = 0; out && i < *count && i < 2; i++) out[i] = list[i];
  *count = 2;
  return VK_SUCCESS;
}

static void *chain_find(void *chain, VkStructureType type) {
  VkBaseOutStructure *item = chain;
  while (item && item->sType != type) item = item->pNext;
  return item;
}

static VKAPI_ATTR void VKAPI_CALL played_features(VkPhysicalDevice physical, VkPhysicalDeviceFeatures2 *out) {
  VkPhysicalDeviceMemoryPriorityFeaturesEXT *priority =
      chain_find(out->pNext, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PRIORITY_FEATURES_EXT);
  played.real.vkGetPhysicalDeviceFeatures2(physical, out);
  if (priority) priority->memoryPriority = VK_TRUE;
}

/* The extensions are not really there. */
static VKAPI_ATTR VkResult VKAPI_CALL played_create_device(VkPhysicalDevice physical, const VkDeviceCreateInfo *info,
                                                           const VkAllocationCallbacks *callbacks, VkDevice *out) {
  VkPhysicalDeviceMemoryPriorityFeaturesEXT *priority =
      chain_find((void *)(uintptr_t)info->pNext, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PRIORITY_FEATURES_EXT);
  assert_int_equal(info->enabledExtensionCount, 2);
  assert_string_equal(info->ppEnabledExtensionNames[0], VK_EXT_MEMORY_BUDGET_EXTENSION_NAME);
  assert_string_equal(info->ppEnabledExtensionNames[1], VK_EXT_MEMORY_PRIORITY_EXTENSION_NAME);
  assert_true(priority && priority->memoryPriority);
  priority->memoryPriority = VK_FALSE;
  VkDeviceCreateInfo plain = *info;
  plain.enabledExtensionCount = 0;
  return played.real.vkCreateDevice(physical, &plain, callbacks, out);
}

static VKAPI_ATTR void VKAPI_CALL played_properties(VkPhysicalDevice physical, VkPhysicalDeviceProperties2 *out) {
  played.real.vkGetPhysicalDeviceProperties2(physical, out);
  out->properties.deviceType = VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU;
  out->properties.limits.nonCoherentAtomSize = ATOM;
  out->properties.limits.maxMemoryAllocationCount = MOST_LIVE;
  VkPhysicalDeviceMaintenance3Properties *limits =
      chain_find(out->pNext, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_3_PROPERTIES);
  if (limits) limits->maxMemoryAllocationSize = 16 << 20;
}

static VKAPI_ATTR void VKAPI_CALL played_memory(VkPhysicalDevice physical, VkPhysicalDeviceMemoryProperties2 *out) {
  VkPhysicalDeviceMemoryBudgetPropertiesEXT *budget =
      chain_find(out->pNext, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT);
  (void)physical;
  out->memoryProperties = (VkPhysicalDeviceMemoryProperties){
      .memoryTypeCount = 3,
      .memoryTypes = {{VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_CACHED_BIT, 1},
                      {VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT, 0},
                      {VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT, 7}}, /* no such heap */
      .memoryHeapCount = 2,
      .memoryHeaps = {{CARD, VK_MEMORY_HEAP_DEVICE_LOCAL_BIT}, {HOST, 0}}};
  if (!budget) return;
  budget->heapBudget[0] = CARD / 2, budget->heapUsage[0] = 12345;
  budget->heapBudget[1] = UINT64_MAX - 5, budget->heapUsage[1] = 0; /* nonsense goes through: rules are the core's */
}

static VKAPI_ATTR void VKAPI_CALL played_needs(VkDevice device, const VkBufferMemoryRequirementsInfo2 *info,
                                               VkMemoryRequirements2 *out) {
  played.real.vkGetBufferMemoryRequirements2(device, info, out);
  out->memoryRequirements.memoryTypeBits = 7;
  VkMemoryDedicatedRequirements *dedicated = chain_find(out->pNext, VK_STRUCTURE_TYPE_MEMORY_DEDICATED_REQUIREMENTS);
  if (dedicated) dedicated->prefersDedicatedAllocation = played.prefers_dedicated;
}

static VKAPI_ATTR VkResult VKAPI_CALL played_allocate(VkDevice device, const VkMemoryAllocateInfo *info,
                                                      const VkAllocationCallbacks *callbacks, VkDeviceMemory *out) {
  VkMemoryAllocateInfo real = *info;
  assert_true(info->memoryTypeIndex < 2);
  if (info->memoryTypeIndex == 0) assert_int_equal(info->allocationSize % ATOM, 0);
  if (chain_find((void *)(uintptr_t)info->pNext, VK_STRUCTURE_TYPE_MEMORY_DEDICATED_ALLOCATE_INFO)) played.dedicated++;
  const VkMemoryPriorityAllocateInfoEXT *priority =
      chain_find((void *)(uintptr_t)info->pNext, VK_STRUCTURE_TYPE_MEMORY_PRIORITY_ALLOCATE_INFO_EXT);
  played.priority = priority ? priority->priority : 0;
  if (info->allocationSize > played.largest) played.largest = info->allocationSize;
  real.memoryTypeIndex = 0; /* the driver has one type only */
  assert_true(++played.live <= MOST_LIVE);
  return played.real.vkAllocateMemory(device, &real, callbacks, out);
}

static VKAPI_ATTR void VKAPI_CALL played_free(VkDevice device, VkDeviceMemory memory,
                                              const VkAllocationCallbacks *callbacks) {
  played.live--;
  played.real.vkFreeMemory(device, memory, callbacks);
}

static void check_range(const VkMappedMemoryRange *range) {
  assert_int_equal(range->offset % ATOM, 0);
  assert_int_equal(range->size % ATOM, 0);
  assert_true(range->offset + range->size <= played.largest);
}

static VKAPI_ATTR VkResult VKAPI_CALL played_flush(VkDevice device, uint32_t count, const VkMappedMemoryRange *ranges) {
  check_range(ranges);
  played.flushes++;
  return played.real.vkFlushMappedMemoryRanges(device, count, ranges);
}

static VKAPI_ATTR VkResult VKAPI_CALL played_invalidate(VkDevice device, uint32_t count,
                                                        const VkMappedMemoryRange *ranges) {
  check_range(ranges);
  played.invalidates++;
  return played.real.vkInvalidateMappedMemoryRanges(device, count, ranges);
}

/* A second queue family like the first. */
static VKAPI_ATTR void VKAPI_CALL played_families(VkPhysicalDevice physical, uint32_t *count,
                                                  VkQueueFamilyProperties *out) {
  uint32_t one = 1;
  assert_true(*count >= 2);
  played.real.vkGetPhysicalDeviceQueueFamilyProperties(physical, &one, out);
  out[1] = out[0];
  *count = 2;
}

static VKAPI_ATTR VkResult VKAPI_CALL played_create_buffer(VkDevice device, const VkBufferCreateInfo *info,
                                                           const VkAllocationCallbacks *callbacks, VkBuffer *out) {
  VkBufferCreateInfo real = *info;
  if (info->sharingMode == VK_SHARING_MODE_CONCURRENT) {
    assert_int_equal(info->queueFamilyIndexCount, 2);
    assert_int_equal(info->pQueueFamilyIndices[0] + info->pQueueFamilyIndices[1], 1);
    played.concurrent++;
  }
  real.sharingMode = VK_SHARING_MODE_EXCLUSIVE; /* the driver has one family only */
  return played.real.vkCreateBuffer(device, &real, callbacks, out);
}

#define PLAYED(name, function) \
  { #name, offsetof(gm__vulkan_syms, name), (PFN_vkVoidFunction)function }
static const struct {
  const char *name;
  size_t offset;
  PFN_vkVoidFunction function;
} played_entries[] = {PLAYED(vkEnumerateDeviceExtensionProperties, played_extensions),
                      PLAYED(vkGetPhysicalDeviceFeatures2, played_features),
                      PLAYED(vkCreateDevice, played_create_device),
                      PLAYED(vkGetPhysicalDeviceProperties2, played_properties),
                      PLAYED(vkGetPhysicalDeviceMemoryProperties2, played_memory),
                      PLAYED(vkGetBufferMemoryRequirements2, played_needs),
                      PLAYED(vkGetPhysicalDeviceQueueFamilyProperties, played_families),
                      PLAYED(vkCreateBuffer, played_create_buffer),
                      PLAYED(vkAllocateMemory, played_allocate),
                      PLAYED(vkFreeMemory, played_free),
                      PLAYED(vkFlushMappedMemoryRanges, played_flush),
                      PLAYED(vkInvalidateMappedMemoryRanges, played_invalidate)};

static void *played_hook(void *user, const char *backend, const char *symbol, void *real) {
  (void)user, (void)backend;
  for (size_t i = 0; i < sizeof played_entries / sizeof played_entries[0]; i++) {
    if (strcmp(symbol, played_entries[i].name) != 0) continue;
    memcpy((char *)&played.real + played_entries[i].offset, &real, sizeof real);
    void *function;
    memcpy(&function, &played_entries[i].function, sizeof function);
    return function;
  }
  return real;
}

static void played_open(vulkan_fixture *fixture) {
  gm_error err = {0};
  gm_stream_kind kind;
  memset(&played, 0, sizeof played);
  vulkan_fixture_host(fixture, "");
  fixture->host.symbol_hook = played_hook;
  if (fixture->ops->init(&fixture->host, &fixture->driver, &err) != GM_OK) vulkan_fixture_absent(err.message);
  assert_int_equal(fixture->ops->device_open(fixture->driver, 0, &fixture->device, &err), GM_OK);
  assert_int_equal(fixture->ops->stream_create(fixture->device, &fixture->stream, &kind, &err), GM_OK);
}

static void test_types_and_info(void **state) {
  (void)state;
  vulkan_fixture fixture;
  uint32_t count = 0;
  gm_memory_type type = {.struct_size = sizeof type};
  gm_device_info info = {.struct_size = sizeof info};
  played_open(&fixture);
  assert_int_equal(fixture.ops->memory_type_count(fixture.device, &count, NULL), GM_OK);
  assert_int_equal(count, 2);
  assert_int_equal(fixture.ops->memory_type(fixture.device, 0, &type, NULL), GM_OK);
  assert_int_equal(type.flags, GM_MEMORY_DEVICE_LOCAL);
  assert_int_equal(type.max_alloc_bytes, 16 << 20);
  assert_int_equal(type.heap_bytes, CARD);
  assert_int_equal(fixture.ops->memory_type(fixture.device, 1, &type, NULL), GM_OK);
  assert_int_equal(type.flags,
                   GM_MEMORY_HOST_VISIBLE | GM_MEMORY_HOST_CACHED | GM_MEMORY_SYSTEM | GM_MEMORY_PERSISTENT_MAP);
  assert_int_equal(type.atom_bytes, ATOM);
  assert_int_equal(fixture.ops->device_info(fixture.driver, 0, fixture.device, &info, NULL), GM_OK);
  assert_int_equal(info.type, GM_DEVICE_TYPE_DISCRETE);
  assert_false(info.unified);
  assert_int_equal(info.total_bytes, CARD);
  assert_int_equal(info.max_alloc_bytes, 16 << 20);
  assert_int_equal(info.map_atom_bytes, ATOM);
  assert_int_equal(info.max_allocation_count, MOST_LIVE);
  vulkan_fixture_close(&fixture);
}

static void test_budget(void **state) {
  (void)state;
  vulkan_fixture fixture;
  gm_raw_figures figures = {.struct_size = sizeof figures};
  played_open(&fixture);
  gm_memory memory = vulkan_fixture_alloc(&fixture, 0, 1 << 20);
  assert_int_equal(fixture.ops->figures(fixture.driver, 0, fixture.device, &figures, NULL), GM_OK);
  assert_true(figures.flags & GM_RAW_BUDGET);
  assert_int_equal(figures.place, GM_RAW_OWN_MEMORY);
  assert_int_equal(figures.heap_count, 2);
  assert_int_equal(figures.heaps[0].bytes, CARD);
  assert_int_equal(figures.heaps[0].budget_bytes, CARD / 2);
  assert_int_equal(figures.heaps[0].usage_bytes, 12345);
  assert_int_equal(figures.heaps[0].own_bytes, 1 << 20);
  assert_int_equal(figures.heaps[0].flags, 1);
  assert_true(figures.heaps[1].budget_bytes == UINT64_MAX - 5);
  vulkan_fixture_free(&fixture, &memory);
  vulkan_fixture_close(&fixture);
}

/* Bytes go through staging that is not coherent, and through a mapping of such memory; odd ranges are widened. */
static void test_not_coherent(void **state) {
  (void)state;
  vulkan_fixture fixture;
  uint8_t bytes[1001], back[1001] = {0};
  void *host = NULL;
  played_open(&fixture);
  const gm_backend_ops *ops = fixture.ops;
  for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (uint8_t)(i * 11);
  gm_memory card = vulkan_fixture_alloc(&fixture, 0, 5000), seen = vulkan_fixture_alloc(&fixture, 1, 1001);
  assert_int_equal(seen.bytes, 1024); /* padded to whole atoms */
  assert_int_equal(ops->copy_to_device(fixture.device, fixture.stream, &card, 77, bytes, 1001, NULL, NULL), GM_OK);
  assert_true(played.flushes > 0);
  const gm_copy_item item = {&card, 77, &seen, 0, 1001};
  assert_int_equal(ops->copy(fixture.device, fixture.stream, &item, NULL, NULL), GM_OK);
  assert_int_equal(ops->map(fixture.device, fixture.stream, &seen, 0, 1001, GM_MAP_READ, &host, NULL), GM_OK);
  uint32_t before = played.invalidates;
  assert_int_equal(ops->invalidate(fixture.device, &seen, 999, 2, NULL), GM_OK);
  assert_int_equal(played.invalidates, before + 1);
  assert_memory_equal(host, bytes, 1001);
  assert_int_equal(ops->unmap(fixture.device, fixture.stream, &seen, host, NULL), GM_OK);
  assert_int_equal(ops->copy_to_host(fixture.device, fixture.stream, &card, 77, back, 1001, NULL, NULL), GM_OK);
  assert_memory_equal(back, bytes, 1001);
  before = played.flushes;
  assert_int_equal(ops->copy_to_device(fixture.device, fixture.stream, &seen, 500, bytes, 3, NULL, NULL), GM_OK);
  assert_int_equal(ops->fill(fixture.device, fixture.stream, &seen, 1000, 1, bytes, 1, NULL, NULL), GM_OK);
  assert_int_equal(played.flushes, before + 2);
  vulkan_fixture_free(&fixture, &seen);
  vulkan_fixture_free(&fixture, &card);
  vulkan_fixture_close(&fixture);
}

static void test_limits(void **state) {
  (void)state;
  vulkan_fixture fixture;
  gm_error err = {0};
  gm_memory list[MOST_LIVE], none = {0};
  played_open(&fixture);
  gm_memory_params params = {.struct_size = sizeof params, .bytes = (16 << 20) + 1};
  assert_int_equal(fixture.ops->memory_alloc(fixture.device, &params, &none, &err), GM_ERR_ALLOCATION_TOO_LARGE);
  list[0] = vulkan_fixture_alloc(&fixture, 0, 16 << 20);
  params.bytes = 9 << 20; /* the heap has 24 MiB */
  assert_int_equal(fixture.ops->memory_alloc(fixture.device, &params, &none, &err), GM_ERR_OUT_OF_DEVICE_MEMORY);
  vulkan_fixture_free(&fixture, &list[0]);
  for (int i = 0; i < MOST_LIVE; i++) list[i] = vulkan_fixture_alloc(&fixture, 0, 64);
  params.bytes = 64;
  assert_int_equal(fixture.ops->memory_alloc(fixture.device, &params, &none, &err), GM_ERR_OUT_OF_DEVICE_MEMORY);
  assert_non_null(strstr(err.message, "maxMemoryAllocationCount"));
  for (int i = 0; i < MOST_LIVE; i++) vulkan_fixture_free(&fixture, &list[i]);
  assert_int_equal(played.live, 0);
  vulkan_fixture_close(&fixture);
}

static void test_dedicated(void **state) {
  (void)state;
  vulkan_fixture fixture;
  played_open(&fixture);
  gm_memory memory = vulkan_fixture_alloc(&fixture, 0, 4096);
  vulkan_fixture_free(&fixture, &memory);
  assert_int_equal(played.dedicated, 0);
  played.prefers_dedicated = true;
  memory = vulkan_fixture_alloc(&fixture, 0, 4096);
  assert_int_equal(played.dedicated, 1);
  vulkan_fixture_free(&fixture, &memory);
  vulkan_fixture_close(&fixture);
}

static void test_priority(void **state) {
  (void)state;
  static const float priorities[] = {0.25f, 0, 1};
  vulkan_fixture fixture;
  gm_vulkan_device told = {.head = {sizeof told, GM_API_VULKAN}};
  played_open(&fixture);
  assert_int_equal(fixture.ops->device_native(fixture.device, &told.head, NULL), GM_OK);
  assert_true(told.features & GM_VULKAN_MEMORY_PRIORITY);
  for (size_t i = 0; i < sizeof priorities / sizeof priorities[0]; i++) {
    const gm_memory_params params = {.struct_size = sizeof params, .bytes = 4096, .priority = priorities[i]};
    gm_memory memory;
    assert_int_equal(fixture.ops->memory_alloc(fixture.device, &params, &memory, NULL), GM_OK);
    assert_true(played.priority == priorities[i]);
    vulkan_fixture_free(&fixture, &memory);
  }
  vulkan_fixture_close(&fixture);
}

/* An engine that uses two queue families: buffers belong to both; streams of either family record in pools of it. */
static void check_two_families(gm_vulkan_sharing sharing) {
  static const uint32_t families[] = {1, 0};
  vulkan_fixture fixture;
  vulkan_engine engine;
  gm_stream_kind kind;
  uint8_t back[100] = {0};
  memset(&played, 0, sizeof played);
  vulkan_fixture_host(&fixture, "");
  fixture.host.symbol_hook = played_hook;
  if (fixture.ops->init(&fixture.host, &fixture.driver, NULL) != GM_OK) vulkan_fixture_absent("init failed");
  vulkan_engine_open(&engine, &fixture.host);
  gm_vulkan_device lent = vulkan_engine_native(&engine);
  lent.queue_families = families, lent.queue_family_count = 2, lent.sharing = sharing;
  assert_int_equal(fixture.ops->device_adopt(fixture.driver, &lent.head, &fixture.device, NULL), GM_OK);
  const gm_vulkan_queue queue = {{sizeof queue, GM_API_VULKAN}, (uintptr_t)engine.queue, 0, true, NULL, NULL, NULL};
  assert_int_equal(fixture.ops->stream_adopt(fixture.device, &queue.head, &fixture.stream, &kind, NULL), GM_OK);
  gm_memory memory = vulkan_fixture_alloc(&fixture, 0, 100);
  const uint32_t lents = played.concurrent; /* the first asks the driver, the second is the memory's */
  assert_true(sharing == GM_VULKAN_SHARING_EXCLUSIVE ? lents == 0 : lents >= 2);
  assert_int_equal(fixture.ops->fill(fixture.device, fixture.stream, &memory, 0, 97, "x", 1, NULL, NULL), GM_OK);
  assert_int_equal(fixture.ops->fill(fixture.device, fixture.stream, &memory, 97, 3, "x", 1, NULL, NULL), GM_OK);
  assert_int_equal(played.concurrent, lents + 1); /* the table of patterns is gm's own */
  assert_int_equal(fixture.ops->copy_to_host(fixture.device, fixture.stream, &memory, 0, back, sizeof back, NULL, NULL),
                   GM_OK);
  for (size_t i = 0; i < sizeof back; i++) assert_int_equal(back[i], 'x');
  assert_int_equal(played.concurrent, lents + 2); /* staging, too */
  vulkan_fixture_free(&fixture, &memory);
  fixture.ops->stream_close(fixture.device, fixture.stream, GM_CLOSE_NORMAL);
  fixture.ops->device_close(fixture.device, GM_CLOSE_NORMAL);
  fixture.stream = fixture.device = NULL;
  vulkan_engine_close(&engine);
  vulkan_fixture_close(&fixture);
}

static void test_two_families(void **state) {
  (void)state;
  check_two_families(GM_VULKAN_SHARING_CONCURRENT);
}

/* Nobody can transfer the ownership of buffers that the engine does not know, so these stay shared. */
static void test_two_families_exclusive(void **state) {
  (void)state;
  check_two_families(GM_VULKAN_SHARING_EXCLUSIVE);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_types_and_info), cmocka_unit_test(test_budget),
      cmocka_unit_test(test_not_coherent),   cmocka_unit_test(test_limits),
      cmocka_unit_test(test_dedicated),      cmocka_unit_test(test_two_families),
      cmocka_unit_test(test_priority),       cmocka_unit_test(test_two_families_exclusive),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

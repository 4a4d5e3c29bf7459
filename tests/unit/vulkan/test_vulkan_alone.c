/* An engine's device adopted through the engine's own vkGetInstanceProcAddr: gm opens no library and makes no instance.
 * The entries below stand between gm and the driver. They count, lack one entry, or change what gm sees. */
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "support/vulkan_fixture.h"
/* after the fixture */
#include "support/pool_bench.h"
#include "support/vulkan_engine.h"

static struct {
  const gm__vulkan_syms *vk; /* of the engine */
  const char *lacks;         /* this entry is not there */
  bool two_families;         /* the device has two queue families */
  int made, opened;          /* instances that gm asked for; libraries of Vulkan that were opened */
  VkSharingMode mode;        /* of the last buffer */
  uint32_t families;         /* that the last buffer named */
  VkBufferUsageFlags usage;  /* of the last buffer */
  uint32_t unusual;          /* buffers without VERTEX_BUFFER */
  float priority;            /* of the last memory; 0: none was said */
} lent;

/* Stands before the C library's, for all code of this program. */
void *dlopen(const char *name, int flags) {
  void *(*real)(const char *name, int flags);
  void *symbol = dlsym(RTLD_NEXT, "dlopen");
  memcpy(&real, &symbol, sizeof real);
  if (name && strstr(name, "vulkan")) lent.opened++;
  return real(name, flags);
}

static VKAPI_ATTR void VKAPI_CALL lent_families(VkPhysicalDevice physical, uint32_t *count,
                                                VkQueueFamilyProperties *out) {
  VkQueueFamilyProperties real[8];
  uint32_t has = 8;
  lent.vk->vkGetPhysicalDeviceQueueFamilyProperties(physical, &has, real);
  real[has] = real[0];
  if (out) memcpy(out, real, (has + 1) * sizeof *out);
  *count = has + 1;
}

/* The driver has one family only, and gets what it can take. */
static VKAPI_ATTR VkResult VKAPI_CALL lent_buffer(VkDevice device, const VkBufferCreateInfo *info,
                                                  const VkAllocationCallbacks *callbacks, VkBuffer *out) {
  VkBufferCreateInfo real = *info;
  lent.mode = info->sharingMode;
  lent.families = info->queueFamilyIndexCount;
  lent.usage = info->usage;
  lent.unusual += !(info->usage & VK_BUFFER_USAGE_VERTEX_BUFFER_BIT);
  real.sharingMode = VK_SHARING_MODE_EXCLUSIVE;
  real.queueFamilyIndexCount = 0;
  return lent.vk->vkCreateBuffer(device, &real, callbacks, out);
}

/* The driver has no priorities, and is not told. */
static VKAPI_ATTR VkResult VKAPI_CALL lent_allocate(VkDevice device, const VkMemoryAllocateInfo *info,
                                                    const VkAllocationCallbacks *callbacks, VkDeviceMemory *out) {
  VkMemoryAllocateInfo real = *info;
  lent.priority = 0;
  for (VkBaseInStructure *last = (VkBaseInStructure *)&real; last->pNext;
       last = (VkBaseInStructure *)(uintptr_t)last->pNext) {
    const VkMemoryPriorityAllocateInfoEXT *item = (const VkMemoryPriorityAllocateInfoEXT *)last->pNext;
    if (item->sType != VK_STRUCTURE_TYPE_MEMORY_PRIORITY_ALLOCATE_INFO_EXT) continue;
    lent.priority = item->priority;
    last->pNext = item->pNext;
    break;
  }
  return lent.vk->vkAllocateMemory(device, &real, callbacks, out);
}

static bool lent_lacks(const char *name) { return lent.lacks && !strncmp(name, lent.lacks, strlen(lent.lacks)); }

static VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL lent_device_entry(VkDevice device, const char *name) {
  if (lent_lacks(name)) return NULL;
  if (!strcmp(name, "vkCreateBuffer")) return (PFN_vkVoidFunction)lent_buffer;
  if (!strcmp(name, "vkAllocateMemory")) return (PFN_vkVoidFunction)lent_allocate;
  return lent.vk->vkGetDeviceProcAddr(device, name);
}

static VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL lent_entry(VkInstance instance, const char *name) {
  if (lent_lacks(name)) return NULL;
  if (!strcmp(name, "vkCreateInstance")) lent.made++;
  if (!strcmp(name, "vkGetDeviceProcAddr")) return (PFN_vkVoidFunction)lent_device_entry;
  if (lent.two_families && !strcmp(name, "vkGetPhysicalDeviceQueueFamilyProperties")) {
    return (PFN_vkVoidFunction)lent_families;
  }
  return lent.vk->vkGetInstanceProcAddr(instance, name);
}

typedef struct alone_test {
  pool_bench bench;
  vulkan_fixture fixture; /* skips the test where there is no Vulkan */
  vulkan_engine engine;
} alone_test;

static gm_vulkan_device lent_native(const vulkan_engine *engine) {
  gm_vulkan_device native = vulkan_engine_native(engine);
  native.get_instance_proc = (uintptr_t)lent_entry;
  return native;
}

/* A context whose own Vulkan library does not exist. */
static void alone_open(alone_test *test, uint32_t features) {
  vulkan_fixture_init(&test->fixture, "");
  vulkan_engine_open_exactly(&test->engine, &test->fixture.host, features);
  memset(&lent, 0, sizeof lent);
  lent.vk = &test->engine.vk;
  counted_services_init(&test->bench.host);
  const gm_context_params params = {.struct_size = sizeof params,
                                    .services = &test->bench.host.services,
                                    .libraries = "vulkan=/nowhere/libvulkan.so",
                                    .ignore_environment = true};
  pool_bench_ok(gm_context_create(&params, &test->bench.ctx, err));
}

static void alone_close(alone_test *test) {
  pool_bench_ok(gm_context_destroy(test->bench.ctx, err));
  counted_services_check(&test->bench.host);
  vulkan_engine_close(&test->engine);
  vulkan_fixture_close(&test->fixture);
}

static void alone_adopt(alone_test *test) {
  const gm_vulkan_device native = lent_native(&test->engine);
  pool_bench_ok(gm_device_adopt(test->bench.ctx, &native.head, &test->bench.device, err));
}

static void test_no_library_no_instance(void **state) {
  (void)state;
  static const uint32_t features[] = {0, GM_VULKAN_TIMELINE_SEMAPHORE};
  for (int i = 0; i < 2; i++) {
    alone_test test = {0};
    gm_block block;
    alone_open(&test, features[i]);
    alone_adopt(&test);
    pool_bench_ok(gm_pool_create(test.bench.device, NULL, &test.bench.pool, err));
    const gm_request request = {.bytes = 1 << 20};
    assert_int_equal(gm_alloc(test.bench.pool, &request, &block), GM_ACQUIRE_FRESH);
    assert_int_equal(gm_free(test.bench.pool, &block, NULL), GM_OK);
    pool_bench_ok(gm_pool_destroy(test.bench.pool, err));
    pool_bench_ok(gm_device_close(test.bench.device, err));
    assert_int_equal(lent.made, 0);
    assert_int_equal(lent.opened, 0);
    alone_close(&test);
  }
}

/* The counters above count. */
static void test_with_the_loader_both_are_seen(void **state) {
  (void)state;
  alone_test test = {0};
  gm_error err = {0};
  alone_open(&test, 0);
  gm_vulkan_device native = lent_native(&test.engine);
  native.get_instance_proc = 0;
  assert_int_equal(gm_device_adopt(test.bench.ctx, &native.head, &test.bench.device, &err), GM_ERR_UNAVAILABLE);
  assert_true(lent.opened > 0);
  assert_non_null(strstr(err.message, "/nowhere/libvulkan.so"));
  assert_non_null(lent_entry(VK_NULL_HANDLE, "vkCreateInstance"));
  assert_int_equal(lent.made, 1);
  alone_close(&test);
}

/* An engine's entries that lack one that gm needs: the message names it, and nothing is left. */
static void test_missing_entries_are_named(void **state) {
  (void)state;
  static const char *const names[] = {"vkGetDeviceProcAddr", "vkGetPhysicalDeviceProperties2",
                                      "vkAllocateMemory",    "vkGetFenceStatus",
                                      "vkQueueSubmit",       "vkWaitSemaphores"};
  alone_test test = {0};
  alone_open(&test, GM_VULKAN_TIMELINE_SEMAPHORE);
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    gm_error err = {0};
    gm_device *device = NULL;
    const gm_vulkan_device native = lent_native(&test.engine);
    lent.lacks = names[i];
    assert_int_equal(gm_device_adopt(test.bench.ctx, &native.head, &device, &err), GM_ERR_UNAVAILABLE);
    if (!strstr(err.message, names[i])) fail_msg("%s is not named in: %s", names[i], err.message);
    assert_null(device);
  }
  alone_close(&test);
}

/* Entries that timeline semaphores alone need may be missing where the engine did not enable them. */
static void test_entries_that_nobody_needs(void **state) {
  (void)state;
  alone_test test = {0};
  alone_open(&test, 0);
  lent.lacks = "vkWaitSemaphores";
  alone_adopt(&test);
  pool_bench_ok(gm_device_close(test.bench.device, err));
  alone_close(&test);
}

static void test_sharing_is_as_lent(void **state) {
  (void)state;
  static const struct {
    uint32_t count;
    gm_vulkan_sharing sharing;
    VkSharingMode mode;
  } cases[] = {{1, GM_VULKAN_SHARING_BY_FAMILIES, VK_SHARING_MODE_EXCLUSIVE},
               {2, GM_VULKAN_SHARING_BY_FAMILIES, VK_SHARING_MODE_CONCURRENT},
               {1, GM_VULKAN_SHARING_EXCLUSIVE, VK_SHARING_MODE_EXCLUSIVE},
               {2, GM_VULKAN_SHARING_EXCLUSIVE, VK_SHARING_MODE_EXCLUSIVE},
               {2, GM_VULKAN_SHARING_CONCURRENT, VK_SHARING_MODE_CONCURRENT}};
  static const uint32_t families[] = {0, 1};
  alone_test test = {0};
  alone_open(&test, 0);
  lent.two_families = true;
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    gm_vulkan_device native = lent_native(&test.engine), told = {.head = {sizeof told, GM_API_VULKAN}};
    native.queue_families = families;
    native.queue_family_count = cases[i].count;
    native.sharing = cases[i].sharing;
    pool_bench_ok(gm_device_adopt(test.bench.ctx, &native.head, &test.bench.device, err));
    pool_bench_ok(gm_device_native(test.bench.device, &told.head, err));
    pool_bench_ok(gm_device_close(test.bench.device, err));
    assert_int_equal(lent.mode, cases[i].mode);
    assert_int_equal(lent.families, cases[i].mode == VK_SHARING_MODE_CONCURRENT ? 2 : 0);
    assert_true((told.sharing == GM_VULKAN_SHARING_CONCURRENT) == (cases[i].mode == VK_SHARING_MODE_CONCURRENT));
  }
  alone_close(&test);
}

/* Every buffer of gm has the engine's usages: of memory, of a part, and of staging. */
static void test_usage_is_as_lent(void **state) {
  (void)state;
  const uint32_t gms = VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT |
                       VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_UNIFORM_BUFFER_BIT |
                       VK_BUFFER_USAGE_INDIRECT_BUFFER_BIT;
  const uint32_t own = VK_BUFFER_USAGE_VERTEX_BUFFER_BIT | VK_BUFFER_USAGE_UNIFORM_TEXEL_BUFFER_BIT;
  alone_test test = {0};
  gm_block block;
  alone_open(&test, GM_VULKAN_TIMELINE_SEMAPHORE | GM_VULKAN_EXTERNAL_MEMORY_FD);
  gm_vulkan_device native = lent_native(&test.engine), told = {.head = {sizeof told, GM_API_VULKAN}};
  gm_vulkan_memory part = {.head = {sizeof part, GM_API_VULKAN}};
  native.buffer_usage = own;
  pool_bench_ok(gm_device_adopt(test.bench.ctx, &native.head, &test.bench.device, err));
  pool_bench_ok(gm_device_native(test.bench.device, &told.head, err));
  assert_int_equal(told.buffer_usage, own);
  pool_bench_ok(gm_pool_create(test.bench.device, NULL, &test.bench.pool, err));
  const gm_request request = {.bytes = 1 << 20};
  assert_int_equal(gm_alloc(test.bench.pool, &request, &block), GM_ACQUIRE_FRESH);
  assert_int_equal(lent.usage, own | gms);
  lent.usage = 0;
  pool_bench_ok(gm_block_object(test.bench.pool, &block, 4096, 4096, &part.head, err));
  assert_int_equal(lent.usage, own | gms);
  assert_int_equal(lent.unusual, 0);
  assert_int_equal(gm_free(test.bench.pool, &block, NULL), GM_OK);
  pool_bench_ok(gm_pool_destroy(test.bench.pool, err));
  pool_bench_ok(gm_device_close(test.bench.device, err));
  alone_close(&test);
}

/* A pool's priority goes to the driver with each allocation, where the engine has enabled that. */
static void test_priority_is_the_pools(void **state) {
  (void)state;
  static const struct {
    uint32_t features;
    float pool, told;
  } cases[] = {{GM_VULKAN_MEMORY_PRIORITY, 0.75f, 0.75f}, {GM_VULKAN_MEMORY_PRIORITY, 0, 0}, {0, 0.75f, 0}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    alone_test test = {0};
    gm_block block;
    alone_open(&test, 0);
    gm_vulkan_device native = lent_native(&test.engine);
    native.features |= cases[i].features;
    pool_bench_ok(gm_device_adopt(test.bench.ctx, &native.head, &test.bench.device, err));
    const gm_pool_params params = {.struct_size = sizeof params, .priority = cases[i].pool};
    pool_bench_ok(gm_pool_create(test.bench.device, &params, &test.bench.pool, err));
    const gm_request request = {.bytes = 4096};
    assert_int_equal(gm_alloc(test.bench.pool, &request, &block), GM_ACQUIRE_FRESH);
    assert_true(lent.priority == cases[i].told);
    assert_int_equal(gm_free(test.bench.pool, &block, NULL), GM_OK);
    pool_bench_ok(gm_pool_destroy(test.bench.pool, err));
    pool_bench_ok(gm_device_close(test.bench.device, err));
    alone_close(&test);
  }
}

/* Two engines in one process, each with instance, device and queue of its own, in one context of gm. */
static void test_two_engines(void **state) {
  (void)state;
  alone_test test = {0};
  vulkan_engine second;
  gm_device *other = NULL;
  gm_pool *pools[2];
  gm_block blocks[2];
  alone_open(&test, GM_VULKAN_TIMELINE_SEMAPHORE);
  vulkan_engine_open_exactly(&second, &test.fixture.host, 0);
  const gm_vulkan_device native = vulkan_engine_native(&second);
  alone_adopt(&test);
  pool_bench_ok(gm_device_adopt(test.bench.ctx, &native.head, &other, err));
  gm_device *const devices[2] = {test.bench.device, other};
  const gm_request request = {.bytes = 4096};
  for (int i = 0; i < 2; i++) {
    pool_bench_ok(gm_pool_create(devices[i], NULL, &pools[i], err));
    assert_int_equal(gm_alloc(pools[i], &request, &blocks[i]), GM_ACQUIRE_FRESH);
  }
  assert_int_equal(gm_free(pools[1], &blocks[0], NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_device_close(other, NULL), GM_ERR_BUSY);
  for (int i = 0; i < 2; i++) {
    assert_int_equal(gm_free(pools[i], &blocks[i], NULL), GM_OK);
    pool_bench_ok(gm_pool_destroy(pools[i], err));
    pool_bench_ok(gm_device_close(devices[i], err));
  }
  vulkan_engine_close(&second);
  alone_close(&test);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_no_library_no_instance),    cmocka_unit_test(test_with_the_loader_both_are_seen),
      cmocka_unit_test(test_missing_entries_are_named), cmocka_unit_test(test_entries_that_nobody_needs),
      cmocka_unit_test(test_sharing_is_as_lent),        cmocka_unit_test(test_usage_is_as_lent),
      cmocka_unit_test(test_priority_is_the_pools),     cmocka_unit_test(test_two_engines),
  };
  return cmocka_run_group_tests_name("vulkan_alone", tests, NULL, NULL);
}

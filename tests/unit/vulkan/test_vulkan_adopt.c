/* An engine's VkDevice and VkQueue in gm's hands: nothing of it is destroyed, its locks are held, its points count. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "support/adopt_scene.h"
#include "support/vulkan_fixture.h"
/* after the fixture */
#include "support/vulkan_engine.h"

typedef struct adopt_test {
  vulkan_fixture fixture;
  vulkan_engine engine;
  int locks, unlocks;
} adopt_test;

static void queue_lock(void *user) {
  adopt_test *test = user;
  assert_int_equal(test->locks, test->unlocks);
  test->locks++;
}

static void queue_unlock(void *user) {
  adopt_test *test = user;
  test->unlocks++;
  assert_int_equal(test->locks, test->unlocks);
}

static gm_vulkan_queue native_queue(adopt_test *test, bool may_submit) {
  return (gm_vulkan_queue){.head = {sizeof(gm_vulkan_queue), GM_API_VULKAN},
                           .queue = (uintptr_t)test->engine.queue,
                           .family = test->engine.family,
                           .may_submit = may_submit,
                           .lock = queue_lock,
                           .unlock = queue_unlock,
                           .user = test};
}

static void adopt_open(adopt_test *test, const char *options) {
  gm_error err = {0};
  vulkan_fixture_init(&test->fixture, options);
  vulkan_engine_open(&test->engine, &test->fixture.host);
  test->locks = test->unlocks = 0;
  const gm_vulkan_device native = vulkan_engine_native(&test->engine);
  if (test->fixture.ops->device_adopt(test->fixture.driver, &native.head, &test->fixture.device, &err) != GM_OK) {
    fail_msg("%s", err.message);
  }
}

static void adopt_stream(adopt_test *test, bool may_submit) {
  gm_stream_kind kind = GM_STREAM_FIFO;
  const gm_vulkan_queue native = native_queue(test, may_submit);
  assert_int_equal(
      test->fixture.ops->stream_adopt(test->fixture.device, &native.head, &test->fixture.stream, &kind, NULL), GM_OK);
  assert_int_equal(kind, GM_STREAM_FIFO_IF_BARRIER);
}

/* gm's device first, then the engine's, whose layers would tell what gm left behind. */
static void adopt_close(adopt_test *test) {
  const gm_backend_ops *ops = test->fixture.ops;
  if (test->fixture.stream) ops->stream_close(test->fixture.device, test->fixture.stream, GM_CLOSE_NORMAL);
  ops->device_close(test->fixture.device, GM_CLOSE_NORMAL);
  test->fixture.stream = test->fixture.device = NULL;
  assert_int_equal(vulkan_fixture_held(&test->fixture), 0);
  vulkan_engine_close(&test->engine);
  vulkan_fixture_close(&test->fixture);
}

typedef void native_change(gm_vulkan_device *native);
static void without_device(gm_vulkan_device *native) { native->device = 0; }
static void with_old_version(gm_vulkan_device *native) { native->api_version = VK_API_VERSION_1_0; }
static void with_lonely_sharing(gm_vulkan_device *native) { native->sharing = GM_VULKAN_SHARING_CONCURRENT; }
static void with_unknown_sharing(gm_vulkan_device *native) { native->sharing = (gm_vulkan_sharing)77; }
static void with_address_usage(gm_vulkan_device *native) {
  native->buffer_usage = VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT;
}
static void without_families(gm_vulkan_device *native) { native->queue_family_count = 0; }
static void with_foreign_api(gm_vulkan_device *native) { native->head.api = GM_API_CUDA; }
static void with_small_size(gm_vulkan_device *native) { native->head.struct_size = 8; }
static void with_twin_family(gm_vulkan_device *native) {
  static const uint32_t families[] = {0, 0};
  native->queue_families = families, native->queue_family_count = 2;
}
static void with_absent_family(gm_vulkan_device *native) {
  static const uint32_t families[] = {0, 31};
  native->queue_families = families, native->queue_family_count = 2;
}

static void test_bad_devices(void **state) {
  (void)state;
  static const struct {
    native_change *change;
    const char *word; /* that the reason must have */
  } cases[] = {{without_device, "physical_device and device"},
               {with_old_version, "api_version"},
               {with_lonely_sharing, "CONCURRENT"},
               {with_unknown_sharing, "77"},
               {with_address_usage, "buffer_usage"},
               {without_families, "queue_families"},
               {with_foreign_api, "(vulkan)"},
               {with_small_size, "struct_size"},
               {with_twin_family, "listed twice"},
               {with_absent_family, "does not exist"}};
  adopt_test test = {0};
  adopt_open(&test, "validation");
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    gm_vulkan_device native = vulkan_engine_native(&test.engine);
    void *device = NULL;
    gm_error err = {0};
    cases[i].change(&native);
    assert_int_equal(test.fixture.ops->device_adopt(test.fixture.driver, &native.head, &device, &err),
                     GM_ERR_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, cases[i].word));
    assert_null(device);
  }
  adopt_close(&test);
}

static void test_bad_queues(void **state) {
  (void)state;
  adopt_test test = {0};
  void *stream = NULL;
  gm_stream_kind kind;
  adopt_open(&test, "validation");
  const gm_backend_ops *ops = test.fixture.ops;
  gm_vulkan_queue queue = native_queue(&test, true);
  queue.unlock = NULL;
  assert_int_equal(ops->stream_adopt(test.fixture.device, &queue.head, &stream, &kind, NULL), GM_ERR_INVALID_ARGUMENT);
  queue = native_queue(&test, true);
  queue.family = 5;
  assert_int_equal(ops->stream_adopt(test.fixture.device, &queue.head, &stream, &kind, NULL), GM_ERR_INVALID_ARGUMENT);
  queue = native_queue(&test, true);
  queue.queue = 0;
  assert_int_equal(ops->stream_adopt(test.fixture.device, &queue.head, &stream, &kind, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(ops->stream_create(test.fixture.device, &stream, &kind, NULL), GM_ERR_NOT_SUPPORTED);
  assert_null(stream);
  adopt_close(&test);
}

/* Fill by gm, then a copy in the engine's own command buffer, then gm reads after the engine's point. */
static void test_engine_works_with_gm(void **state) {
  (void)state;
  adopt_test test = {0};
  adopt_open(&test, "validation,no_host_visible");
  adopt_stream(&test, true);
  const gm_backend_ops *ops = test.fixture.ops;
  void *device = test.fixture.device, *stream = test.fixture.stream;
  gm_memory a = vulkan_fixture_alloc(&test.fixture, 0, 1000), b = vulkan_fixture_alloc(&test.fixture, 0, 1000);
  assert_true(vulkan_fixture_held(&test.fixture) >= 2000); /* counted with the driver's own card */
  assert_int_equal(ops->fill(device, stream, &a, 0, 1000, "gm", 2, NULL, NULL), GM_OK);
  const VkCommandBufferBeginInfo begin = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
  const gm_copy_item item = {&a, 1, &b, 3, 900};
  test.engine.vk.vkBeginCommandBuffer(test.engine.commands, &begin);
  assert_int_equal(ops->copy_record(device, (uintptr_t)test.engine.commands, &item, NULL), GM_OK);
  test.engine.vk.vkEndCommandBuffer(test.engine.commands);
  vulkan_engine_submit(&test.engine, true, 7);
  const gm_vulkan_point reached = {
      .head = {sizeof reached, GM_API_VULKAN}, .semaphore = (uint64_t)test.engine.timeline, .value = 7};
  gm_backend_point point = {0};
  assert_int_equal(ops->point_import(device, &reached.head, &point, NULL), GM_OK);
  assert_int_equal(ops->point_wait_on(device, stream, &point, NULL), GM_OK);
  char bytes[900];
  assert_int_equal(ops->copy_to_host(device, stream, &b, 3, bytes, sizeof bytes, NULL, NULL), GM_OK);
  for (size_t i = 0; i < sizeof bytes; i++) assert_int_equal(bytes[i], "gm"[(i + 1) % 2]);
  gm_backend_point recorded = {0};
  assert_int_equal(ops->point_record(device, stream, &recorded, NULL), GM_OK);
  assert_int_equal(ops->point_wait(device, &recorded, UINT64_MAX, NULL), GM_OK);
  assert_true(test.locks > 0 && test.locks == test.unlocks);
  vulkan_fixture_free(&test.fixture, &b);
  vulkan_fixture_free(&test.fixture, &a);
  adopt_close(&test);
}

static void test_may_not_submit(void **state) {
  (void)state;
  adopt_test test = {0};
  adopt_open(&test, "validation");
  adopt_stream(&test, false);
  const gm_backend_ops *ops = test.fixture.ops;
  void *device = test.fixture.device, *stream = test.fixture.stream;
  gm_memory memory = vulkan_fixture_alloc(&test.fixture, 0, 4096);
  const gm_copy_item item = {&memory, 0, &memory, 64, 64};
  gm_backend_point point = {0};
  char bytes[16] = "";
  gm_error err = {0};
  assert_int_equal(ops->copy(device, stream, &item, NULL, &err), GM_ERR_NOT_SUPPORTED);
  assert_non_null(strstr(err.message, "may_submit"));
  assert_int_equal(ops->copy_many(device, stream, &item, 1, NULL, NULL), GM_ERR_NOT_SUPPORTED);
  assert_int_equal(ops->fill(device, stream, &memory, 0, 16, bytes, 1, NULL, NULL), GM_ERR_NOT_SUPPORTED);
  assert_int_equal(ops->copy_to_device(device, stream, &memory, 0, bytes, 16, NULL, NULL), GM_ERR_NOT_SUPPORTED);
  assert_int_equal(ops->copy_to_host(device, stream, &memory, 0, bytes, 16, NULL, NULL), GM_ERR_NOT_SUPPORTED);
  assert_int_equal(ops->stream_barrier(device, stream, NULL), GM_ERR_NOT_SUPPORTED);
  assert_int_equal(ops->point_record(device, stream, &point, NULL), GM_ERR_NOT_SUPPORTED);
  assert_int_equal(ops->point_wait_on(device, stream, &point, NULL), GM_ERR_NOT_SUPPORTED);
  assert_int_equal(test.locks, 0);
  vulkan_engine_submit(&test.engine, false, 3);
  const gm_vulkan_point native = {
      .head = {sizeof native, GM_API_VULKAN}, .semaphore = (uint64_t)test.engine.timeline, .value = 3};
  assert_int_equal(ops->point_import(device, &native.head, &point, NULL), GM_OK);
  assert_int_equal(ops->point_wait(device, &point, UINT64_MAX, NULL), GM_OK);
  vulkan_fixture_free(&test.fixture, &memory);
  adopt_close(&test);
}

/* The engine's own buffer, seen by gm as memory: gm copies into it and, told to free it, destroys nothing. */
static void test_wrapped_memory(void **state) {
  (void)state;
  adopt_test test = {0};
  adopt_open(&test, "validation");
  adopt_stream(&test, true);
  const gm_backend_ops *ops = test.fixture.ops;
  void *device = test.fixture.device, *stream = test.fixture.stream;
  gm_memory owned = vulkan_fixture_alloc(&test.fixture, 0, 8192);
  gm_vulkan_memory native = {.head = {sizeof native, GM_API_VULKAN}};
  assert_int_equal(ops->memory_native(device, &owned, 1024, 2048, &native.head, NULL), GM_OK);
  gm_memory wrapped = {0};
  assert_int_equal(ops->memory_wrap(device, &native.head, &wrapped, NULL), GM_OK);
  assert_true(wrapped.wrapped);
  assert_int_equal(wrapped.bytes, 2048);
  uint64_t held = vulkan_fixture_held(&test.fixture);
  char bytes[64], back[64];
  memset(bytes, 'w', sizeof bytes);
  assert_int_equal(ops->copy_to_device(device, stream, &wrapped, 1, bytes, 64, NULL, NULL), GM_OK);
  assert_int_equal(ops->copy_to_host(device, stream, &owned, 1025, back, 64, NULL, NULL), GM_OK);
  assert_memory_equal(bytes, back, 64);
  void *host = NULL;
  native.mapped = NULL; /* an engine that did not map it */
  gm_memory unmapped = {0};
  assert_int_equal(ops->memory_wrap(device, &native.head, &unmapped, NULL), GM_OK);
  assert_int_equal(ops->map(device, stream, &unmapped, 0, 16, GM_MAP_READ, &host, NULL), GM_ERR_NOT_SUPPORTED);
  memset(back, 0, sizeof back);
  assert_int_equal(ops->copy_to_host(device, stream, &unmapped, 1, back, 64, NULL, NULL), GM_OK);
  assert_memory_equal(bytes, back, 64);
  assert_int_equal(ops->memory_free(device, &unmapped, GM_CLOSE_NORMAL, NULL), GM_OK);
  assert_int_equal(ops->memory_free(device, &wrapped, GM_CLOSE_NORMAL, NULL), GM_OK);
  assert_true(vulkan_fixture_held(&test.fixture) >= held); /* staging may have come */
  native.memory_type = 31;
  assert_int_equal(ops->memory_wrap(device, &native.head, &wrapped, NULL), GM_ERR_INVALID_ARGUMENT);
  native.memory_type = 0, native.buffer = 0;
  assert_int_equal(ops->memory_wrap(device, &native.head, &wrapped, NULL), GM_ERR_INVALID_ARGUMENT);
  vulkan_fixture_free(&test.fixture, &owned);
  adopt_close(&test);
}

static void test_native_of_adopted(void **state) {
  (void)state;
  adopt_test test = {0};
  adopt_open(&test, "validation");
  gm_vulkan_device native = {.head = {sizeof native, GM_API_VULKAN}};
  assert_int_equal(test.fixture.ops->device_native(test.fixture.device, &native.head, NULL), GM_OK);
  assert_true(native.device == (uintptr_t)test.engine.device);
  assert_true(native.instance == (uintptr_t)test.engine.instance);
  assert_int_equal(native.queue_family_count, 1);
  assert_int_equal(native.features, GM_VULKAN_TIMELINE_SEMAPHORE);
  native.head.struct_size = 4;
  assert_int_equal(test.fixture.ops->device_native(test.fixture.device, &native.head, NULL), GM_ERR_INVALID_ARGUMENT);
  adopt_close(&test);
}

static void other_lock(void *user) { (void)user; }

typedef void terms_change(gm_vulkan_queue *queue);
static void without_leave(gm_vulkan_queue *queue) { queue->may_submit = false; }
static void without_hooks(gm_vulkan_queue *queue) { queue->lock = queue->unlock = NULL; }
static void with_another_lock(gm_vulkan_queue *queue) { queue->lock = other_lock; }
static void with_another_unlock(gm_vulkan_queue *queue) { queue->unlock = other_lock; }
static void for_another_user(gm_vulkan_queue *queue) { queue->user = queue; }

/* A difference is named, and the adoption that is there stays as it is. */
static void check_other_terms(gm_device *device, const gm_vulkan_queue *queue) {
  static const struct {
    terms_change *change;
    const char *word;
  } cases[] = {{without_leave, "`may_submit`"},
               {without_hooks, "`lock`"},
               {with_another_lock, "`lock`"},
               {with_another_unlock, "`unlock`"},
               {for_another_user, "`user`"}};
  gm_stream *stream = adopt_scene_adopt(device, &queue->head);
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    gm_vulkan_queue other = *queue;
    gm_stream *out = NULL;
    gm_error err = {.status = GM_OK};
    cases[i].change(&other);
    assert_int_equal(gm_stream_adopt(device, &other.head, &out, &err), GM_ERR_INVALID_ARGUMENT);
    if (!strstr(err.message, cases[i].word)) fail_msg("%s is not in: %s", cases[i].word, err.message);
    assert_null(out);
  }
  adopt_scene_close(stream);
  gm_vulkan_queue silent = *queue;
  without_leave(&silent);
  adopt_scene_close(adopt_scene_adopt(device, &silent.head)); /* on other terms when nobody has it */
}

static void test_a_queue_adopted_twice_is_one_stream(void **state) {
  (void)state;
  adopt_test test = {0};
  gm_device *device = NULL;
  gm_error err;
  adopt_open(&test, "validation");
  gm_context *ctx = adopt_scene_context("vulkan", getenv("GM_VULKAN_LIBRARY"));
  const gm_vulkan_device lent = vulkan_engine_native(&test.engine);
  gm_vulkan_queue queue = native_queue(&test, true);
  adopt_scene_ok(gm_device_adopt(ctx, &lent.head, &device, &err), &err);
  adopt_scene_counts(device, &queue.head, NULL);
  check_other_terms(device, &queue);
  without_hooks(&queue); /* those of this test are for one thread */
  adopt_scene_threads(device, &queue.head);
  adopt_scene_end(ctx, device);
  adopt_close(&test);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_bad_devices),
      cmocka_unit_test(test_bad_queues),
      cmocka_unit_test(test_engine_works_with_gm),
      cmocka_unit_test(test_may_not_submit),
      cmocka_unit_test(test_wrapped_memory),
      cmocka_unit_test(test_native_of_adopted),
      cmocka_unit_test(test_a_queue_adopted_twice_is_one_stream),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

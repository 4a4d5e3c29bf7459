/* Calls that name no stream, on an engine's VkDevice, where gm makes no queue. They do what the host alone can do. A
 * refusal names the ways out otherwise. The engine may choose a stream for them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "support/vulkan_fixture.h"
/* after the fixture */
#include "gm/copy.h"
#include "support/named_libraries.h"
#include "support/pool_bench.h"
#include "support/vulkan_engine.h"

enum { BYTES = 4096 };

typedef struct default_test {
  pool_bench bench;
  vulkan_fixture fixture;
  vulkan_engine engine;
  gm_stream *stream;
} default_test;

static gm_vulkan_queue queue_of(const default_test *test, bool may_submit) {
  return (gm_vulkan_queue){.head = {sizeof(gm_vulkan_queue), GM_API_VULKAN},
                           .queue = (uintptr_t)test->engine.queue,
                           .family = test->engine.family,
                           .may_submit = may_submit};
}

/* `hidden`: gm takes device memory for memory that the host cannot map. */
static void default_open(default_test *test, bool hidden, uint32_t features) {
  vulkan_fixture_init(&test->fixture, "");
  vulkan_engine_open_exactly(&test->engine, &test->fixture.host, features);
  const gm_vulkan_device device = vulkan_engine_native(&test->engine);
  counted_services_init(&test->bench.host);
  const gm_context_params context = {.struct_size = sizeof context,
                                     .libraries = named_libraries(),
                                     .backend_options = hidden ? "vulkan:no_host_visible" : NULL,
                                     .services = &test->bench.host.services,
                                     .ignore_environment = true};
  pool_bench_ok(gm_context_create(&context, &test->bench.ctx, err));
  pool_bench_ok(gm_device_adopt(test->bench.ctx, &device.head, &test->bench.device, err));
  pool_bench_ok(gm_pool_create(test->bench.device, NULL, &test->bench.pool, err));
}

static void default_lend(default_test *test, bool may_submit) {
  const gm_vulkan_queue queue = queue_of(test, may_submit);
  pool_bench_ok(gm_stream_adopt(test->bench.device, &queue.head, &test->stream, err));
}

static void default_close(default_test *test) {
  pool_bench_close(&test->bench);
  vulkan_engine_close(&test->engine);
  vulkan_fixture_close(&test->fixture);
}

static gm_block take(default_test *test, uint32_t flags) {
  const gm_request request = {.bytes = BYTES, .flags = flags};
  gm_block block = {0};
  assert_true(gm_acquired(gm_alloc(test->bench.pool, &request, &block)));
  return block;
}

/* No queue was lent at all, as an engine that takes its queues from a pool cannot lend one. */
static void test_the_host_alone(void **state) {
  (void)state;
  static const uint32_t features[] = {0, GM_VULKAN_TIMELINE_SEMAPHORE};
  for (int i = 0; i < 2; i++) {
    default_test test = {0};
    unsigned char wrote[100], read[100];
    void *mapped = NULL;
    default_open(&test, false, features[i]);
    gm_pool *pool = test.bench.pool;
    const gm_block block = take(&test, GM_HOST_VISIBLE);
    memset(wrote, 'w', sizeof wrote);
    pool_bench_ok(gm_block_fill(pool, &block, 0, BYTES, "fi", 2, NULL, NULL, err));
    pool_bench_ok(gm_block_write(pool, &block, 7, wrote, sizeof wrote, NULL, NULL, err));
    pool_bench_ok(gm_block_read(pool, &block, 7, read, sizeof read, NULL, NULL, err));
    assert_memory_equal(read, wrote, sizeof read);
    pool_bench_ok(gm_block_map(pool, &block, 0, BYTES, GM_MAP_READ | GM_MAP_WRITE, NULL, &mapped, err));
    assert_memory_equal(mapped, "fififif", 7);
    assert_memory_equal((unsigned char *)mapped + 7, wrote, sizeof wrote);
    assert_int_equal(gm_free(pool, &block, NULL), GM_ERR_BUSY);
    pool_bench_ok(gm_block_unmap(pool, &block, mapped, NULL, err));
    assert_int_equal(gm_free(pool, &block, NULL), GM_OK);
    default_close(&test);
  }
}

static void assert_refused(gm_status status, const gm_error *err) {
  assert_int_equal(status, GM_ERR_NOT_SUPPORTED);
  if (!strstr(err->message, "gm_device_set_default_stream")) fail_msg("no way out in: %s", err->message);
}

static void test_refusals_name_the_way_out(void **state) {
  (void)state;
  default_test test = {0};
  unsigned char bytes[16] = {0};
  gm_error why = {0};
  default_open(&test, true, 0);
  gm_pool *pool = test.bench.pool;
  const gm_block block = take(&test, 0), other = take(&test, 0);
  assert_refused(gm_block_write(pool, &block, 0, bytes, 16, NULL, NULL, &why), &why);
  assert_refused(gm_block_read(pool, &block, 0, bytes, 16, NULL, NULL, &why), &why);
  assert_refused(gm_block_fill(pool, &block, 0, 16, bytes, 1, NULL, NULL, &why), &why);
  assert_refused(gm_block_copy(pool, &block, 0, pool, &other, 0, 16, NULL, NULL, &why), &why);
  const gm_request zeroed = {.bytes = BYTES, .flags = GM_ZERO};
  gm_block none;
  gm_explanation explained = {.struct_size = sizeof explained};
  assert_int_equal(gm_alloc(pool, &zeroed, &none), GM_ACQUIRE_INVALID);
  pool_bench_ok(gm_explain(pool, &zeroed, &explained, err));
  assert_int_equal(explained.status, GM_ERR_NOT_SUPPORTED);
  assert_non_null(strstr(explained.text, "gm_device_set_default_stream"));
  const gm_pool_params guarded = {.struct_size = sizeof guarded, .debug = GM_DEBUG_POISON};
  gm_pool *refused = NULL;
  assert_refused(gm_pool_create(test.bench.device, &guarded, &refused, &why), &why);
  assert_int_equal(gm_free(pool, &block, NULL), GM_OK);
  assert_int_equal(gm_free(pool, &other, NULL), GM_OK);
  default_close(&test);
}

static void use_chosen(default_test *test) {
  unsigned char bytes[16];
  gm_pool *pool = test->bench.pool, *guarded = NULL;
  const gm_block block = take(test, GM_ZERO), other = take(test, 0);
  pool_bench_ok(gm_block_read(pool, &block, BYTES - 16, bytes, 16, NULL, NULL, err));
  for (int i = 0; i < 16; i++) assert_int_equal(bytes[i], 0);
  pool_bench_ok(gm_block_fill(pool, &block, 0, BYTES, "c", 1, NULL, NULL, err));
  pool_bench_ok(gm_block_copy(pool, &other, 0, pool, &block, 0, 16, NULL, NULL, err));
  pool_bench_ok(gm_block_read(pool, &other, 0, bytes, 16, NULL, NULL, err));
  assert_memory_equal(bytes, "cccccccccccccccc", 16);
  const gm_pool_params params = {.struct_size = sizeof params, .debug = GM_DEBUG_POISON};
  pool_bench_ok(gm_pool_create(test->bench.device, &params, &guarded, err));
  pool_bench_ok(gm_pool_destroy(guarded, err));
  assert_int_equal(gm_free(pool, &block, NULL), GM_OK);
  assert_int_equal(gm_free(pool, &other, NULL), GM_OK);
}

static void test_a_chosen_stream_serves(void **state) {
  (void)state;
  static const uint32_t features[] = {0, GM_VULKAN_TIMELINE_SEMAPHORE};
  for (int i = 0; i < 2; i++) {
    default_test test = {0};
    gm_error why = {0};
    default_open(&test, true, features[i]);
    default_lend(&test, true);
    pool_bench_ok(gm_device_set_default_stream(test.bench.device, test.stream, err));
    use_chosen(&test);
    assert_int_equal(gm_stream_close(test.stream, &why), GM_ERR_BUSY);
    assert_non_null(strstr(why.message, "default stream"));
    assert_int_equal(gm_stream_flush(test.stream, NULL), GM_OK); /* still open */
    pool_bench_ok(gm_device_set_default_stream(test.bench.device, NULL, err));
    const gm_block block = take(&test, 0);
    assert_refused(gm_block_fill(test.bench.pool, &block, 0, 16, "x", 1, NULL, NULL, &why), &why);
    assert_int_equal(gm_free(test.bench.pool, &block, NULL), GM_OK);
    pool_bench_ok(gm_stream_close(test.stream, err));
    assert_int_equal(gm_device_set_default_stream(test.bench.device, test.stream, &why), GM_ERR_INVALID_ARGUMENT);
    default_close(&test);
  }
}

static void test_what_cannot_be_chosen(void **state) {
  (void)state;
  default_test test = {0};
  gm_error why = {0};
  gm_device *cpu = NULL;
  gm_stream *foreign = NULL;
  default_open(&test, false, 0);
  default_lend(&test, false);
  assert_int_equal(gm_device_set_default_stream(test.bench.device, test.stream, &why), GM_ERR_NOT_SUPPORTED);
  assert_non_null(strstr(why.message, "may_submit"));
  pool_bench_ok(gm_device_open_index(test.bench.ctx, "cpu", 0, &cpu, err));
  pool_bench_ok(gm_stream_create(cpu, &foreign, err));
  assert_int_equal(gm_device_set_default_stream(test.bench.device, foreign, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_device_set_default_stream(NULL, foreign, NULL), GM_ERR_INVALID_ARGUMENT);
  pool_bench_ok(gm_stream_close(foreign, err));
  pool_bench_ok(gm_device_close(cpu, err));
  pool_bench_ok(gm_stream_close(test.stream, err));
  default_close(&test);
}

/* The queue is one stream, the same by its handle. Other terms are refused by name. */
static void test_stream_of_a_queue(void **state) {
  (void)state;
  default_test test = {0};
  gm_error why = {0};
  gm_stream *first = NULL, *again = NULL, *adopted = NULL;
  default_open(&test, false, 0);
  const gm_vulkan_queue queue = queue_of(&test, true), silent = queue_of(&test, false);
  pool_bench_ok(gm_stream_of(test.bench.device, &queue.head, &first, err));
  pool_bench_ok(gm_stream_of(test.bench.device, &queue.head, &again, err));
  pool_bench_ok(gm_stream_adopt(test.bench.device, &queue.head, &adopted, err));
  assert_ptr_equal(first, again);
  assert_ptr_equal(first, adopted);
  assert_int_equal(gm_stream_of(test.bench.device, &silent.head, &again, &why), GM_ERR_INVALID_ARGUMENT);
  assert_non_null(strstr(why.message, "may_submit"));
  pool_bench_ok(gm_stream_close(adopted, err));
  assert_int_equal(gm_stream_close(first, &why), GM_ERR_INVALID_ARGUMENT);
  assert_non_null(strstr(why.message, "gm_stream_forget"));
  default_close(&test); /* the device closes with it */
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_the_host_alone),         cmocka_unit_test(test_refusals_name_the_way_out),
      cmocka_unit_test(test_a_chosen_stream_serves), cmocka_unit_test(test_what_cannot_be_chosen),
      cmocka_unit_test(test_stream_of_a_queue),
  };
  return cmocka_run_group_tests_name("vulkan_default", tests, NULL, NULL);
}

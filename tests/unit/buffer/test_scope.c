/* Scopes: what they own, the order in which it goes, and what refuses to go. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "gm/copy.h"
#include "gm/scope.h"
#include "gm/value.h"
#include "support/fail_each.h"
#include "support/order_bench.h"

enum { BYTES = 1000 };

static const gm_request thousand = {.bytes = BYTES};
static const gm_buffer_params a_buffer = {.struct_size = sizeof a_buffer, .request = {.bytes = BYTES}};

/* The objects that release functions saw, in their order. */
static struct {
  char names[64];
  uint64_t active[64]; /* blocks of the watched pool at that time */
  int calls;
  gm_status answer;
  gm_stream *stream;
  gm_pool *watched;
} seen;

static gm_status see(void *object, gm_stream *stream) {
  gm_stats stats = {.struct_size = sizeof stats};
  if (seen.watched) gm_pool_stats(seen.watched, &stats);
  seen.active[seen.calls] = stats.active;
  seen.names[seen.calls++] = *(const char *)object;
  seen.stream = stream;
  return seen.answer;
}

static gm_scope *open_scope(pool_bench *bench) {
  gm_scope *scope = NULL;
  pool_bench_open(bench, "cpu", NULL, NULL);
  memset(&seen, 0, sizeof seen);
  seen.watched = bench->pool;
  pool_bench_ok(gm_scope_create(bench->pool, &scope, err));
  return scope;
}

static void defer(gm_scope *scope, char *name) { pool_bench_ok(gm_scope_defer(scope, see, name, err)); }

static gm_block alloc(gm_scope *scope, gm_pool *pool) {
  gm_block block;
  pool_bench_ok(gm_scope_alloc(scope, pool, &thousand, &block, err));
  return block;
}

static void batch(gm_scope *scope, uint32_t flags) {
  const gm_request requests[3] = {thousand, thousand, thousand};
  const gm_batch_params params = {.struct_size = sizeof params, .flags = flags, .requests = requests, .count = 3};
  gm_part parts[3];
  pool_bench_ok(gm_scope_batch(scope, NULL, &params, parts, NULL, err));
  assert_int_equal(parts[2].bytes, BYTES);
}

static void test_all_goes_newest_first(void **state) {
  (void)state;
  pool_bench bench;
  gm_scope *scope = open_scope(&bench), *inner = NULL;
  gm_buffer *buffer = NULL, *kept = NULL;
  defer(scope, "a");
  pool_bench_ok(gm_scope_buffer(scope, &a_buffer, &buffer, err));
  defer(scope, "b");
  alloc(scope, NULL);
  defer(scope, "c");
  batch(scope, 0);
  defer(scope, "d");
  batch(scope, GM_BATCH_GROUPED);
  defer(scope, "e");
  pool_bench_ok(gm_scope_nest(scope, &inner, err));
  alloc(inner, NULL);
  defer(inner, "i");
  pool_bench_ok(gm_scope_buffer(scope, &a_buffer, &kept, err));
  gm_buffer_retain(kept);
  assert_int_equal(pool_bench_stats(&bench).active, 8);
  gm_scope_end(scope, NULL);
  assert_string_equal(seen.names, "iedcba");
  const uint64_t active[] = {8, 7, 6, 3, 2, 1}; /* the buffer that was retained is there at all times */
  assert_memory_equal(seen.active, active, sizeof active);
  assert_int_equal(pool_bench_stats(&bench).active, 1);
  gm_buffer_release(kept, NULL);
  gm_scope_end(NULL, NULL);
  pool_bench_close(&bench);
}

static void test_blocks_of_several_pools_and_devices(void **state) {
  (void)state;
  pool_bench bench;
  gm_scope *scope = open_scope(&bench);
  gm_device *other = NULL;
  gm_pool *pools[2] = {NULL, NULL};
  gm_stream *stream = NULL;
  pool_bench_ok(gm_device_open_index(bench.ctx, "null", 0, &other, err));
  pool_bench_ok(gm_pool_create(other, NULL, &pools[0], err));
  pool_bench_ok(gm_pool_create(bench.device, NULL, &pools[1], err));
  pool_bench_ok(gm_stream_create(bench.device, &stream, err));
  for (int i = 0; i < 50; i++) alloc(scope, i % 3 == 2 ? NULL : pools[i % 3]);
  assert_int_equal(gm_pool_destroy(pools[0], NULL), GM_ERR_BUSY);
  gm_scope_end(scope, stream); /* which the other device does not know */
  pool_bench_ok(gm_stream_close(stream, err));
  pool_bench_ok(gm_pool_destroy(pools[0], err));
  pool_bench_ok(gm_pool_destroy(pools[1], err));
  pool_bench_ok(gm_device_close(other, err));
  pool_bench_close(&bench);
}

static gm_status release_value(void *value, gm_stream *stream) {
  gm_value_release(value, stream);
  return GM_OK;
}

static void test_a_value_by_its_release(void **state) {
  (void)state;
  pool_bench bench;
  gm_scope *scope = open_scope(&bench);
  gm_value *value = NULL;
  const gm_tensor_desc desc = {.struct_size = sizeof desc, .dtype = GM_DTYPE_F64};
  const double number = 1;
  pool_bench_ok(gm_value_tensor(bench.pool, &desc, &number, GM_FALLBACK_REFUSE, NULL, &value, err));
  pool_bench_ok(gm_scope_defer(scope, release_value, value, err));
  gm_scope_end(scope, NULL);
  pool_bench_close(&bench);
}

/* ---- refusals ---- */

static void test_a_refusal_stops_nothing(void **state) {
  (void)state;
  pool_bench bench;
  gm_scope *scope = open_scope(&bench), *inner = NULL;
  gm_error why;
  void *data = NULL;
  alloc(scope, NULL);
  defer(scope, "a");
  pool_bench_ok(gm_scope_nest(scope, &inner, err));
  const gm_block mapped = alloc(inner, NULL);
  alloc(inner, NULL);
  defer(scope, "b");
  pool_bench_ok(gm_block_map(bench.pool, &mapped, 0, 10, GM_MAP_READ, NULL, &data, err));
  seen.answer = GM_ERR_OUT_OF_HOST_MEMORY;
  assert_int_equal(gm_scope_clear(scope, NULL, &why), GM_ERR_OUT_OF_HOST_MEMORY); /* that of the newest */
  assert_int_equal(why.status, GM_ERR_OUT_OF_HOST_MEMORY);
  assert_string_equal(why.op, "gm_scope_clear");
  assert_string_equal(seen.names, "ba");
  assert_int_equal(pool_bench_stats(&bench).active, 1); /* the mapped one */
  seen.answer = GM_OK;
  assert_int_equal(gm_scope_clear(scope, NULL, &why), GM_ERR_BUSY);
  assert_string_equal(seen.names, "baba");
  pool_bench_ok(gm_block_unmap(bench.pool, &mapped, data, NULL, err));
  alloc(scope, NULL); /* it goes on */
  pool_bench_ok(gm_scope_clear(scope, NULL, err));
  assert_int_equal(pool_bench_stats(&bench).active, 0);
  gm_scope_end(scope, NULL);
  assert_string_equal(seen.names, "baba");
  assert_int_equal(atomic_load(&bench.host.lines), 0);
  pool_bench_close(&bench);
}

static void test_an_end_logs_what_refuses(void **state) {
  (void)state;
  pool_bench bench;
  gm_scope *scope = open_scope(&bench), *inner = NULL;
  void *data = NULL;
  pool_bench_ok(gm_scope_nest(scope, &inner, err));
  const gm_block mapped = alloc(inner, NULL);
  pool_bench_ok(gm_block_map(bench.pool, &mapped, 0, 10, GM_MAP_READ, NULL, &data, err));
  gm_scope_end(scope, NULL);
  assert_non_null(strstr(bench.host.last_line, "a block was not released"));
  assert_int_equal(pool_bench_stats(&bench).active, 1);
  pool_bench_ok(gm_block_unmap(bench.pool, &mapped, data, NULL, err));
  assert_int_equal(gm_free(bench.pool, &mapped, NULL), GM_OK);
  pool_bench_close(&bench);
}

static void test_other_failures_count_as_released(void **state) {
  (void)state;
  pool_bench bench;
  gm_scope *scope = open_scope(&bench);
  gm_error why;
  const gm_block block = alloc(scope, NULL);
  alloc(scope, NULL);
  assert_int_equal(gm_free(bench.pool, &block, NULL), GM_OK); /* behind the scope's back */
  assert_int_equal(gm_scope_clear(scope, NULL, &why), GM_ERR_INVALID_ARGUMENT);
  assert_non_null(strstr(why.message, "a block: "));
  defer(scope, "a");
  seen.answer = GM_ERR_IO;
  assert_int_equal(gm_scope_clear(scope, NULL, &why), GM_ERR_IO);
  pool_bench_ok(gm_scope_clear(scope, NULL, err));
  gm_scope_end(scope, NULL);
  assert_string_equal(seen.names, "a");
  pool_bench_close(&bench);
}

/* ---- inner scopes ---- */

static void test_an_inner_scope_ends_first(void **state) {
  (void)state;
  pool_bench bench;
  gm_scope *scope = open_scope(&bench), *inner[3];
  for (int i = 0; i < 3; i++) {
    pool_bench_ok(gm_scope_nest(scope, &inner[i], err));
    alloc(inner[i], NULL);
  }
  defer(inner[1], "1");
  gm_scope_end(inner[1], NULL);
  assert_int_equal(pool_bench_stats(&bench).active, 2);
  gm_scope_end(inner[0], NULL);
  assert_int_equal(pool_bench_stats(&bench).active, 1);
  gm_scope_end(scope, NULL);
  assert_string_equal(seen.names, "1");
  pool_bench_close(&bench);
}

static void test_scopes_within_scopes_have_a_bound(void **state) {
  (void)state;
  pool_bench bench;
  gm_scope *scope = open_scope(&bench), *deepest = scope, *inner = NULL;
  for (int depth = 1; depth < GM_SCOPE_DEPTH_MOST; depth++) {
    pool_bench_ok(gm_scope_nest(deepest, &inner, err));
    deepest = inner;
    alloc(deepest, NULL);
  }
  assert_int_equal(gm_scope_nest(deepest, &inner, NULL), GM_ERR_INVALID_ARGUMENT);
  gm_scope_end(scope, NULL);
  pool_bench_close(&bench);
}

static void test_what_is_kept_is_the_callers(void **state) {
  (void)state;
  pool_bench bench;
  gm_scope *scope = open_scope(&bench), *inner = NULL;
  gm_buffer *buffer = NULL;
  const gm_block block = alloc(scope, NULL);
  defer(scope, "a");
  pool_bench_ok(gm_scope_buffer(scope, &a_buffer, &buffer, err));
  pool_bench_ok(gm_scope_nest(scope, &inner, err));
  alloc(inner, NULL);
  pool_bench_ok(gm_scope_keep(scope, err));
  alloc(scope, NULL);
  gm_scope_end(scope, NULL);
  assert_int_equal(pool_bench_stats(&bench).active, 3);
  gm_scope_end(inner, NULL);
  gm_buffer_release(buffer, NULL);
  assert_int_equal(gm_free(bench.pool, &block, NULL), GM_OK);
  assert_string_equal(seen.names, "");
  pool_bench_close(&bench);
}

/* ---- streams ---- */

static gm_block alloc_on(order_bench *bench, gm_scope *scope, gm_stream *stream) {
  const gm_request request = {.bytes = 4096, .stream = stream};
  gm_block block;
  pool_bench_ok(gm_scope_alloc(scope, bench->base.pool, &request, &block, err));
  return block;
}

/* The stream that the end names comes first, then that of the request. */
static void test_blocks_go_in_the_order_of_a_stream(void **state) {
  (void)state;
  for (int named = 0; named < 2; named++) {
    order_bench bench;
    gm_scope *scope = NULL;
    order_open(&bench, GM_STREAM_FIFO, 4096); /* room for one block */
    pool_bench_ok(gm_scope_create(bench.base.pool, &scope, err));
    gm_block block = alloc_on(&bench, scope, named ? bench.b : bench.a);
    work(&bench, bench.a);
    gm_scope_end(scope, named ? bench.a : NULL);
    block = take(&bench, bench.b, 0, GM_ACQUIRE_NEEDS_WAIT);
    give(&bench, &block, NULL);
    pass_time(&bench);
    order_close(&bench);
  }
}

static void test_a_closed_stream_is_host_order(void **state) {
  (void)state;
  order_bench bench;
  gm_scope *scope = NULL;
  gm_stream *stream = NULL;
  gm_buffer *buffer = NULL;
  order_open(&bench, GM_STREAM_FIFO, 0);
  pool_bench_ok(gm_stream_create(bench.base.device, &stream, err));
  pool_bench_ok(gm_scope_create(bench.base.pool, &scope, err));
  const gm_buffer_params params = {.struct_size = sizeof params, .request = {.bytes = BYTES, .stream = stream}};
  alloc_on(&bench, scope, stream);
  pool_bench_ok(gm_scope_buffer(scope, &params, &buffer, err));
  pool_bench_ok(gm_stream_close(stream, err));
  pool_bench_ok(gm_scope_clear(scope, NULL, err));
  assert_int_equal(pool_bench_stats(&bench.base).active, 0);
  gm_scope_end(scope, NULL);
  order_close(&bench);
}

/* gm cannot note the stream of the end, because there are too many. So the scope waits for the stream. */
static void test_no_host_memory_for_the_stream(void **state) {
  (void)state;
  enum { STREAMS = 64 };
  order_bench bench;
  gm_scope *scope = NULL;
  gm_buffer *buffer = NULL;
  gm_stream *streams[STREAMS];
  order_open(&bench, GM_STREAM_FIFO, 0);
  pool_bench_ok(gm_scope_create(bench.base.pool, &scope, err));
  for (int i = 0; i < STREAMS; i++) {
    pool_bench_ok(gm_stream_create(bench.base.device, &streams[i], err));
    alloc_on(&bench, scope, streams[i]);
  }
  const gm_block block = alloc_on(&bench, scope, bench.a);
  pool_bench_ok(gm_scope_buffer(scope, &a_buffer, &buffer, err));
  work(&bench, bench.b);
  bench.base.host.fail_at = 1;
  assert_int_equal(gm_free(bench.base.pool, &block, bench.b), GM_ERR_OUT_OF_HOST_MEMORY);
  assert_int_equal(gm_scope_clear(scope, bench.b, NULL), GM_OK);
  bench.base.host.fail_at = 0;
  assert_int_equal(pool_bench_stats(&bench.base).active, 0);
  gm_scope_end(scope, NULL);
  for (int i = 0; i < STREAMS; i++) pool_bench_ok(gm_stream_close(streams[i], err));
  order_close(&bench);
}

/* ---- ends of other things ---- */

static void test_a_pool_ended_by_force(void **state) {
  (void)state;
  pool_bench bench;
  gm_scope *scope = open_scope(&bench), *inner = NULL;
  gm_buffer *buffer = NULL;
  const gm_block block = alloc(scope, NULL);
  seen.watched = NULL;
  pool_bench_ok(gm_scope_nest(scope, &inner, err));
  pool_bench_ok(gm_scope_buffer(inner, &a_buffer, &buffer, err));
  defer(inner, "a");
  pool_bench_ok(gm_pool_destroy_force(bench.pool, err));
  assert_int_equal(gm_scope_alloc(scope, NULL, &thousand, &(gm_block){0}, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_scope_nest(scope, &(gm_scope *){NULL}, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_free(bench.pool, &block, NULL), GM_ERR_INVALID_ARGUMENT);
  pool_bench_ok(gm_scope_clear(scope, NULL, err));
  gm_scope_end(scope, NULL);
  assert_string_equal(seen.names, "a");
  pool_bench_ok(gm_device_close(bench.device, err));
  pool_bench_ok(gm_context_destroy(bench.ctx, err));
  counted_services_check(&bench.host);
}

static void test_a_forked_child_ends_its_copy(void **state) {
  (void)state;
  pool_bench bench;
  gm_scope *scope = open_scope(&bench), *inner = NULL;
  alloc(scope, NULL);
  pool_bench_ok(gm_scope_nest(scope, &inner, err));
  defer(inner, "a");
  const pid_t child = fork();
  if (child == 0) {
    seen.watched = NULL;
    const bool refused = gm_scope_alloc(scope, NULL, &thousand, &(gm_block){0}, NULL) == GM_ERR_FORKED;
    gm_scope_end(scope, NULL);
    const bool ended = !gm_pool_destroy(bench.pool, NULL) && !gm_device_close(bench.device, NULL) &&
                       !gm_context_destroy(bench.ctx, NULL) && !atomic_load(&bench.host.live_blocks);
    _exit(refused && ended && seen.calls == 1 ? 0 : 1);
  }
  int status = 1;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
  gm_scope_end(scope, NULL);
  pool_bench_close(&bench);
}

/* ---- arguments, and want of host memory ---- */

static void test_arguments(void **state) {
  (void)state;
  pool_bench bench, other;
  gm_scope *scope = open_scope(&bench), *made = NULL;
  gm_buffer *buffer = NULL;
  gm_block block;
  gm_part part;
  gm_error why;
  pool_bench_open(&other, "cpu", NULL, NULL);
  const gm_request nothing = {.bytes = 0}, much = {.bytes = UINT64_MAX / 2};
  const gm_batch_params no_requests = {.struct_size = sizeof no_requests, .count = 1};
  const gm_batch_params too_many = {.struct_size = sizeof too_many, .count = SIZE_MAX, .requests = &nothing};
  const gm_batch_params none = {.struct_size = sizeof none, .flags = GM_BATCH_GROUPED};
  const gm_buffer_params empty = {.struct_size = sizeof empty};
#define WRONG(call) assert_int_equal(call, GM_ERR_INVALID_ARGUMENT)
  WRONG(gm_scope_create(NULL, &made, &why));
  WRONG(gm_scope_create(bench.pool, NULL, &why));
  WRONG(gm_scope_nest(NULL, &made, &why));
  WRONG(gm_scope_nest(scope, NULL, &why));
  WRONG(gm_scope_buffer(NULL, &a_buffer, &buffer, &why));
  WRONG(gm_scope_buffer(scope, NULL, &buffer, &why));
  WRONG(gm_scope_buffer(scope, &empty, &buffer, &why));
  WRONG(gm_scope_buffer(scope, &a_buffer, NULL, &why));
  WRONG(gm_scope_alloc(NULL, NULL, &thousand, &block, &why));
  WRONG(gm_scope_alloc(scope, NULL, NULL, &block, &why));
  WRONG(gm_scope_alloc(scope, NULL, &nothing, &block, &why));
  WRONG(gm_scope_alloc(scope, NULL, &thousand, NULL, &why));
  WRONG(gm_scope_alloc(scope, other.pool, &thousand, &block, &why));
  assert_non_null(strstr(why.message, "another context"));
  WRONG(gm_scope_batch(scope, NULL, NULL, &part, NULL, &why));
  WRONG(gm_scope_batch(scope, NULL, &no_requests, &part, NULL, &why));
  WRONG(gm_scope_defer(scope, NULL, NULL, &why));
  WRONG(gm_scope_defer(NULL, see, NULL, &why));
  WRONG(gm_scope_keep(NULL, &why));
  WRONG(gm_scope_clear(NULL, NULL, &why));
#undef WRONG
  assert_int_equal(gm_scope_batch(scope, NULL, &too_many, &part, NULL, &why), GM_ERR_OUT_OF_HOST_MEMORY);
  assert_int_not_equal(gm_scope_alloc(scope, NULL, &much, &block, &why), GM_OK);
  pool_bench_ok(gm_scope_batch(scope, NULL, &none, NULL, NULL, err));
  assert_int_equal(pool_bench_stats(&bench).active, 0);
  gm_scope_end(scope, NULL);
#ifndef NDEBUG /* in release builds it is undefined */
  assert_int_equal(gm_scope_clear(scope, NULL, &why), GM_ERR_INVALID_ARGUMENT);
#endif
  pool_bench_close(&other);
  pool_bench_close(&bench);
}

static gm_status fill_scope(gm_scope *scope) {
  gm_scope *inner = NULL;
  gm_buffer *buffer = NULL;
  gm_block block;
  const gm_request requests[2] = {thousand, thousand};
  const gm_batch_params params = {.struct_size = sizeof params, .requests = requests, .count = 2};
  gm_part parts[2];
  gm_status status = GM_OK;
  for (int i = 0; i < 6 && !status; i++) {
    status = gm_scope_alloc(scope, NULL, &thousand, &block, NULL);
    if (!status) status = gm_scope_buffer(scope, &a_buffer, &buffer, NULL);
    if (!status) status = gm_scope_batch(scope, NULL, &params, parts, NULL, NULL);
    if (!status) status = gm_scope_nest(scope, &inner, NULL);
    if (!status) status = gm_scope_defer(inner, see, "a", NULL);
  }
  return status;
}

static gm_status attempt(const gm_services *services) {
  const gm_context_params params = {.struct_size = sizeof params, .services = services, .ignore_environment = true};
  gm_context *ctx = NULL;
  gm_device *device = NULL;
  gm_pool *pool = NULL;
  gm_scope *scope = NULL;
  memset(&seen, 0, sizeof seen);
  gm_status status = gm_context_create(&params, &ctx, NULL);
  if (!status) status = gm_device_open_index(ctx, "cpu", 0, &device, NULL);
  if (!status) status = gm_pool_create(device, NULL, &pool, NULL);
  if (!status) status = gm_scope_create(pool, &scope, NULL);
  if (!status) status = fill_scope(scope);
  gm_scope_end(scope, NULL);
  assert_int_equal(gm_pool_destroy(pool, NULL), GM_OK); /* BUSY if a block was lost */
  assert_int_equal(gm_device_close(device, NULL), GM_OK);
  assert_int_equal(gm_context_destroy(ctx, NULL), GM_OK);
  return status;
}

static void test_every_host_allocation_fails(void **state) {
  (void)state;
  fail_each_allocation(attempt, 20);
  assert_int_equal(seen.calls, 6);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_all_goes_newest_first),
      cmocka_unit_test(test_blocks_of_several_pools_and_devices),
      cmocka_unit_test(test_a_value_by_its_release),
      cmocka_unit_test(test_a_refusal_stops_nothing),
      cmocka_unit_test(test_an_end_logs_what_refuses),
      cmocka_unit_test(test_other_failures_count_as_released),
      cmocka_unit_test(test_an_inner_scope_ends_first),
      cmocka_unit_test(test_scopes_within_scopes_have_a_bound),
      cmocka_unit_test(test_what_is_kept_is_the_callers),
      cmocka_unit_test(test_blocks_go_in_the_order_of_a_stream),
      cmocka_unit_test(test_a_closed_stream_is_host_order),
      cmocka_unit_test(test_no_host_memory_for_the_stream),
      cmocka_unit_test(test_a_pool_ended_by_force),
      cmocka_unit_test(test_a_forked_child_ends_its_copy),
      cmocka_unit_test(test_arguments),
      cmocka_unit_test(test_every_host_allocation_fails),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

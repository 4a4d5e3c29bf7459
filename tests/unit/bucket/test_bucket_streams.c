/* Busy blocks of a bucket: what an allocation looks at, in which order they become usable, and what a stream leaves
 * behind. On the null backend's virtual time, with counted questions to the driver. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "backends/null/null_backend.h"
#include "core/device/stream.h"
#include "support/pool_bench.h"

#define SECOND UINT64_C(1000000000)
enum { BYTES = 4096, MANY = 64 };

static gm_stream_kind kind;
static unsigned asked;

static gm_status busy_stream_create(void *device, void **out_stream, gm_stream_kind *out_kind, gm_error *err) {
  gm_status status = gm__null_backend.stream_create(device, out_stream, out_kind, err);
  *out_kind = kind;
  return status;
}

static gm_status busy_point_done(void *device, const gm_backend_point *point, bool *out, gm_error *err) {
  asked++;
  return gm__null_backend.point_done(device, point, out, err);
}

typedef struct busy_bench {
  pool_bench base;
  gm_stream *a, *b, *c;
} busy_bench;

static void busy_open(busy_bench *bench, gm_stream_kind streams) {
  pool_bench *base = &bench->base;
  kind = streams;
  gm_backend_ops ops = gm__null_backend;
  ops.name = "busy";
  ops.api = GM_API_OTHER;
  ops.stream_create = busy_stream_create;
  ops.point_done = busy_point_done;
  counted_services_init(&base->host);
  gm_context_params context = {.struct_size = sizeof context,
                               .services = &base->host.services,
                               .backend_options = "busy:capacity=64M,latency=1000000000",
                               .ignore_environment = true};
  gm_pool_params params = {.struct_size = sizeof params, .strategy = GM_STRATEGY_BUCKET, .checked = true};
  pool_bench_ok(gm_context_create(&context, &base->ctx, err));
  pool_bench_ok(gm_backend_register(base->ctx, &ops, err));
  pool_bench_ok(gm_device_open_index(base->ctx, "busy", 0, &base->device, err));
  pool_bench_ok(gm_pool_create(base->device, &params, &base->pool, err));
  pool_bench_ok(gm_stream_create(base->device, &bench->a, err));
  pool_bench_ok(gm_stream_create(base->device, &bench->b, err));
  pool_bench_ok(gm_stream_create(base->device, &bench->c, err));
}

static void busy_close(busy_bench *bench) {
  pool_bench_ok(gm_stream_close(bench->a, err));
  pool_bench_ok(gm_stream_close(bench->b, err));
  pool_bench_ok(gm_stream_close(bench->c, err));
  pool_bench_close(&bench->base);
}

/* A second of virtual work on a stream. */
static void work(const busy_bench *bench, const gm_stream *stream) {
  gm_memory nowhere = {.handle = 1, .bytes = 64};
  gm_backend_point point;
  assert_int_equal(
      gm__null_backend.fill(bench->base.device->handle, stream->handle, &nowhere, 0, 64, "", 1, &point, NULL), GM_OK);
}

static void pass(const busy_bench *bench, uint64_t ns) { gm__null_advance(bench->base.device->handle, ns); }

static gm_block take(busy_bench *bench, gm_stream *stream, gm_acquire expected) {
  gm_request request = {.bytes = BYTES, .stream = stream};
  gm_block block = {0};
  assert_int_equal(gm_alloc(bench->base.pool, &request, &block), expected);
  return block;
}

static void give(busy_bench *bench, const gm_block *block, gm_stream *stream) {
  assert_int_equal(gm_free(bench->base.pool, block, stream), GM_OK);
}

static void take_all(busy_bench *bench, gm_stream *stream, gm_block *blocks, int count) {
  for (int i = 0; i < count; i++) blocks[i] = take(bench, stream, GM_ACQUIRE_FRESH);
}

static void give_all(busy_bench *bench, const gm_block *blocks, int count, gm_stream *stream) {
  for (int i = 0; i < count; i++) give(bench, &blocks[i], stream);
}

static bool among(const gm_block *block, const gm_block *blocks, int count) {
  for (int i = 0; i < count; i++) {
    if (blocks[i].address == block->address) return true;
  }
  return false;
}

static void test_a_request_asks_about_streams_not_about_blocks(void **state) {
  (void)state;
  busy_bench bench;
  gm_block blocks[MANY];
  busy_open(&bench, GM_STREAM_UNORDERED); /* where even the own stream must be asked */
  take_all(&bench, bench.a, blocks, MANY);
  work(&bench, bench.a);
  give_all(&bench, blocks, MANY, bench.a);
  asked = 0;
  const gm_block other = take(&bench, bench.b, GM_ACQUIRE_FRESH);
  assert_true(asked < MANY / 4);
  give(&bench, &other, NULL);
  busy_close(&bench);
}

/* Where no block could serve, the driver is asked about no stream. */
static void test_an_empty_bucket_asks_about_no_stream(void **state) {
  (void)state;
  busy_bench bench;
  busy_open(&bench, GM_STREAM_FIFO);
  const gm_block block = take(&bench, bench.a, GM_ACQUIRE_FRESH);
  work(&bench, bench.a);
  give(&bench, &block, bench.a);
  asked = 0;
  const gm_request request = {.bytes = 64 * BYTES, .stream = bench.b};
  gm_block other = {0};
  assert_int_equal(gm_alloc(bench.base.pool, &request, &other), GM_ACQUIRE_FRESH);
  assert_int_equal(asked, 0);
  give(&bench, &other, NULL);
  busy_close(&bench);
}

/* Frees of a full bucket leave a question open. The next request asks it, and later ones do not ask it again. */
static void test_an_open_question_is_asked_once(void **state) {
  (void)state;
  busy_bench bench;
  gm_block blocks[MANY], other = {0};
  busy_open(&bench, GM_STREAM_FIFO);
  const gm_request request = {.bytes = 64 * BYTES, .stream = bench.b};
  take_all(&bench, bench.a, blocks, MANY);
  work(&bench, bench.a);
  give_all(&bench, blocks, MANY, bench.a);
  asked = 0;
  assert_int_equal(gm_alloc(bench.base.pool, &request, &other), GM_ACQUIRE_FRESH);
  assert_true(asked > 0);
  give(&bench, &other, NULL);
  asked = 0;
  assert_int_equal(gm_alloc(bench.base.pool, &request, &other), GM_ACQUIRE_OK);
  assert_int_equal(asked, 0);
  give(&bench, &other, NULL);
  busy_close(&bench);
}

static void test_what_a_stream_is_done_with_serves_others_and_no_more(void **state) {
  (void)state;
  busy_bench bench;
  gm_block blocks[6], fresh[2];
  busy_open(&bench, GM_STREAM_FIFO);
  take_all(&bench, bench.a, blocks, 6);
  work(&bench, bench.a);
  give_all(&bench, blocks, 3, bench.a);
  fresh[0] = take(&bench, bench.b, GM_ACQUIRE_FRESH); /* asks how far `a` is */
  work(&bench, bench.a);
  give_all(&bench, blocks + 3, 3, bench.a);
  pass(&bench, SECOND + SECOND / 2);
  gm_block taken[3];
  for (int i = 0; i < 3; i++) {
    taken[i] = take(&bench, bench.b, GM_ACQUIRE_OK);
    assert_true(among(&taken[i], blocks, 3));
  }
  fresh[1] = take(&bench, bench.b, GM_ACQUIRE_FRESH);
  const gm_block own = take(&bench, bench.a, GM_ACQUIRE_OK);
  assert_true(among(&own, blocks + 3, 3));
  give(&bench, &own, bench.a);
  give_all(&bench, taken, 3, bench.b);
  give_all(&bench, fresh, 2, bench.b);
  busy_close(&bench);
}

/* Used on both; `b` is done with the older ones only, so of all of them only those are `a`'s at once. */
static void test_of_several_users_each_must_be_done(void **state) {
  (void)state;
  busy_bench bench;
  gm_block blocks[4], fresh[2];
  busy_open(&bench, GM_STREAM_FIFO);
  take_all(&bench, bench.a, blocks, 4);
  for (int i = 0; i < 4; i++) assert_int_equal(gm_use_on(bench.base.pool, &blocks[i], bench.b), GM_OK);
  work(&bench, bench.b);
  give_all(&bench, blocks, 2, bench.a);
  fresh[0] = take(&bench, bench.a, GM_ACQUIRE_FRESH);
  for (int i = 0; i < 4; i++) work(&bench, bench.a);
  work(&bench, bench.b);
  give_all(&bench, blocks + 2, 2, bench.a);
  pass(&bench, SECOND + SECOND / 2);
  for (int i = 0; i < 2; i++) {
    const gm_block block = take(&bench, bench.a, GM_ACQUIRE_OK);
    assert_true(among(&block, blocks, 2));
    assert_int_equal(gm_use_on(bench.base.pool, &block, bench.b), GM_OK); /* so it does not come again */
    give(&bench, &block, bench.a);
  }
  fresh[1] = take(&bench, bench.c, GM_ACQUIRE_FRESH);
  give_all(&bench, fresh, 2, NULL);
  busy_close(&bench);
}

/* More blocks of several streams than a request looks at in vain. */
static void test_many_blocks_of_several_users(void **state) {
  (void)state;
  busy_bench bench;
  gm_block blocks[2 * MANY];
  busy_open(&bench, GM_STREAM_FIFO);
  take_all(&bench, bench.a, blocks, 2 * MANY);
  for (int i = 0; i < 2 * MANY; i++) assert_int_equal(gm_use_on(bench.base.pool, &blocks[i], bench.b), GM_OK);
  work(&bench, bench.a);
  work(&bench, bench.b);
  give_all(&bench, blocks, 2 * MANY, bench.a);
  asked = 0;
  const gm_block fresh = take(&bench, bench.c, GM_ACQUIRE_FRESH);
  assert_true(asked < MANY / 4);
  pass(&bench, SECOND + SECOND / 2);
  for (int i = 0; i < 2 * MANY; i++) blocks[i] = take(&bench, bench.c, GM_ACQUIRE_OK);
  give_all(&bench, blocks, 2 * MANY, NULL);
  give(&bench, &fresh, NULL);
  busy_close(&bench);
}

/* A free finds no host memory for the lists of streams: the block serves all the same. */
static void test_lists_without_host_memory(void **state) {
  (void)state;
  busy_bench bench;
  gm_block blocks[2];
  busy_open(&bench, GM_STREAM_FIFO);
  take_all(&bench, bench.a, blocks, 2);
  work(&bench, bench.a);
  bench.base.host.fail_at = atomic_load(&bench.base.host.calls) + 1;
  give(&bench, &blocks[0], bench.a);
  bench.base.host.fail_at = 0;
  give(&bench, &blocks[1], bench.a);
  for (int i = 0; i < 2; i++) blocks[i] = take(&bench, bench.a, GM_ACQUIRE_OK);
  give_all(&bench, blocks, 2, bench.a);
  pass(&bench, SECOND + SECOND / 2);
  for (int i = 0; i < 2; i++) blocks[i] = take(&bench, bench.b, GM_ACQUIRE_OK);
  give_all(&bench, blocks, 2, NULL);
  busy_close(&bench);
}

static void test_blocks_of_a_stream_that_closes_are_everybodys(void **state) {
  (void)state;
  busy_bench bench;
  gm_stream *gone;
  gm_block blocks[4];
  busy_open(&bench, GM_STREAM_FIFO);
  pool_bench_ok(gm_stream_create(bench.base.device, &gone, err));
  take_all(&bench, gone, blocks, 4);
  work(&bench, gone);
  work(&bench, bench.a);
  assert_int_equal(gm_use_on(bench.base.pool, &blocks[3], bench.a), GM_OK);
  give_all(&bench, blocks, 4, gone);
  assert_int_equal(pool_bench_stats(&bench.base).reclaimable_bytes, 0);
  pool_bench_ok(gm_stream_close(gone, err));
  assert_int_equal(pool_bench_stats(&bench.base).reclaimable_bytes, 3 * BYTES); /* and one that `a` may still use */
  busy_close(&bench);
}

/* The slot of the stream that went is another's: who had a mark of it has none of the new stream. */
static void test_live_blocks_forget_a_stream_that_closes(void **state) {
  (void)state;
  busy_bench bench;
  gm_stream *gone, *next;
  busy_open(&bench, GM_STREAM_FIFO);
  pool_bench_ok(gm_stream_create(bench.base.device, &gone, err));
  gm_block named = take(&bench, bench.a, GM_ACQUIRE_FRESH), reused = take(&bench, gone, GM_ACQUIRE_FRESH);
  assert_int_equal(gm_use_on(bench.base.pool, &named, gone), GM_OK);
  work(&bench, gone);
  give(&bench, &reused, gone);
  reused = take(&bench, gone, GM_ACQUIRE_OK); /* with the older work pending */
  pool_bench_ok(gm_stream_close(gone, err));
  pool_bench_ok(gm_stream_create(bench.base.device, &next, err));
  const gm_block other = take(&bench, next, GM_ACQUIRE_FRESH);
  work(&bench, next);
  give(&bench, &other, next);
  give(&bench, &named, NULL);
  give(&bench, &reused, NULL);
  assert_int_equal(pool_bench_stats(&bench.base).reclaimable_bytes, 2 * BYTES);
  pool_bench_ok(gm_stream_close(next, err));
  busy_close(&bench);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_request_asks_about_streams_not_about_blocks),
      cmocka_unit_test(test_an_empty_bucket_asks_about_no_stream),
      cmocka_unit_test(test_an_open_question_is_asked_once),
      cmocka_unit_test(test_what_a_stream_is_done_with_serves_others_and_no_more),
      cmocka_unit_test(test_of_several_users_each_must_be_done),
      cmocka_unit_test(test_many_blocks_of_several_users),
      cmocka_unit_test(test_lists_without_host_memory),
      cmocka_unit_test(test_blocks_of_a_stream_that_closes_are_everybodys),
      cmocka_unit_test(test_live_blocks_forget_a_stream_that_closes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

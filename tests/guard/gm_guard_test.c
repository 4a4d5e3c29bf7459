/* gm_guard_test BACKEND: red zones, patterns and blocks held back, on the first device of a backend
 * (docs/debugging.md).
 */
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/base/thread.h"
#include "core/guard/guard_record.h"
#include "core/pool/pool.h"
#include "gm/copy.h"
#include "support/pool_bench.h"

static const char *guard_backend;

typedef struct guard_bench {
  pool_bench pool;
  gm_stream *stream;
} guard_bench;

static const gm_pool_params zones = {.struct_size = sizeof zones, .red_zone_bytes = 64, .checked = true, .name = "it"};
static const gm_pool_params all = {.struct_size = sizeof all,
                                   .red_zone_bytes = 40,
                                   .debug = GM_DEBUG_CHECK_FREED,
                                   .checked = true,
                                   .track = true,
                                   .strategy = GM_STRATEGY_BEST_FIT};

/* Like pool_bench_open_device, but the environment says which driver. */
static void guard_open_device(pool_bench *b, const char *backend) {
  counted_services_init(&b->host);
  const gm_context_params params = {.struct_size = sizeof params, .services = &b->host.services};
  pool_bench_ok(gm_context_create(&params, &b->ctx, err));
  pool_bench_ok(gm_device_open_index(b->ctx, backend, 0, &b->device, err));
}

static void guard_open(guard_bench *b, const gm_pool_params *params) {
  guard_open_device(&b->pool, guard_backend);
  pool_bench_ok(gm_pool_create(b->pool.device, params, &b->pool.pool, err));
  pool_bench_ok(gm_stream_create(b->pool.device, &b->stream, err));
}

static void guard_close(guard_bench *b) {
  pool_bench_ok(gm_stream_close(b->stream, err));
  pool_bench_close(&b->pool);
}

static gm_block guard_take(guard_bench *b, uint64_t bytes, gm_stream *stream) {
  const gm_request request = {.bytes = bytes, .stream = stream, .tag = 7};
  gm_block block;
  assert_true(gm_alloc(b->pool.pool, &request, &block) <= GM_ACQUIRE_FRESH);
  return block;
}

/* A kernel with a wrong index does this: the driver allocation is written beside the block. */
static void guard_scribble(guard_bench *b, const gm_block *block, int64_t at, unsigned char byte, gm_stream *stream) {
  gm_memory memory;
  uint64_t offset;
  gm_device *device = b->pool.device;
  gm_backend_point point;
  assert_int_equal(gm_block_memory(b->pool.pool, block, &memory, &offset), GM_OK);
  pool_bench_ok(device->ops->fill(device->handle, stream->handle, &memory, (uint64_t)((int64_t)offset + at), 1, &byte,
                                  1, &point, err));
  device->ops->point_release(device->handle, &point, GM_CLOSE_NORMAL);
  pool_bench_ok(gm_stream_sync(stream, err));
}

static void test_blocks_are_as_asked_and_usable(void **state) {
  (void)state;
  guard_bench b;
  unsigned char in[1001], out[1001] = {0};
  guard_open(&b, &zones);
  memset(in, 0x5A, sizeof in);
  gm_block block = guard_take(&b, sizeof in, NULL);
  assert_int_equal(block.bytes, sizeof in);
  assert_int_equal(block.address % b.pool.device->info.alignment, 0);
  pool_bench_ok(gm_block_write(b.pool.pool, &block, 0, in, sizeof in, NULL, NULL, err));
  pool_bench_ok(gm_block_read(b.pool.pool, &block, 0, out, sizeof out, NULL, NULL, err));
  assert_memory_equal(in, out, sizeof in);
  gm_error why;
  assert_int_equal(gm_block_write(b.pool.pool, &block, 1, in, sizeof in, NULL, NULL, &why), GM_ERR_INVALID_ARGUMENT);
  gm_block found;
  assert_int_equal(gm_block_of(b.pool.pool, (void *)(uintptr_t)(block.address + 1000), &found), GM_OK);
  assert_int_equal(found.address, block.address);
  assert_int_equal(gm_block_of(b.pool.pool, (void *)(uintptr_t)(block.address + 1001), &found), GM_ERR_NOT_FOUND);
  gm_check_report report = {.struct_size = sizeof report};
  pool_bench_ok(gm_pool_check(b.pool.pool, &report, err));
  assert_int_equal(report.checked, 1);
  assert_int_equal(gm_free(b.pool.pool, &block, NULL), GM_OK);
  assert_int_equal(gm_free(b.pool.pool, &block, NULL), GM_ERR_INVALID_ARGUMENT);
  guard_close(&b);
}

static void guard_finds(int64_t at, gm_damage_kind kind, const gm_pool_params *params) {
  guard_bench b;
  guard_open(&b, params);
  gm_block block = guard_take(&b, 1000, NULL), other = guard_take(&b, 1000, NULL);
  guard_scribble(&b, &block, at, 0x77, b.stream);
  assert_int_equal(gm_free(b.pool.pool, &block, NULL), GM_ERR_DAMAGED);
  assert_non_null(strstr(b.pool.host.last_line, kind == GM_DAMAGE_BEHIND ? "behind its end" : "before its beginning"));
  assert_int_equal(gm_free(b.pool.pool, &block, NULL), GM_ERR_INVALID_ARGUMENT);
  gm_check_report report = {.struct_size = sizeof report};
  gm_error why;
  assert_int_equal(gm_pool_check(b.pool.pool, &report, &why), GM_ERR_DAMAGED);
  assert_int_equal(report.damaged, 1);
  assert_int_equal(report.first.kind, kind);
  assert_int_equal(report.first.offset, at);
  assert_int_equal(report.first.address, block.address);
  assert_int_equal(report.first.tag, 7);
  assert_int_equal(report.first.found, 0x77);
  assert_string_equal(report.text, b.pool.host.last_line);
  gm_block next = guard_take(&b, 1000, NULL); /* not the damaged one */
  assert_int_not_equal(next.address, block.address);
  assert_int_equal(gm_free(b.pool.pool, &next, NULL), GM_OK);
  assert_int_equal(gm_free(b.pool.pool, &other, NULL), GM_OK);
  assert_int_equal(pool_bench_stats(&b.pool).requested_bytes, params->debug ? 2000 : 0);
  guard_close(&b);
}

static void test_a_byte_behind(void **state) {
  (void)state;
  guard_finds(1000, GM_DAMAGE_BEHIND, &zones);
  guard_finds(1039, GM_DAMAGE_BEHIND, &all);
}

static void test_a_byte_before(void **state) {
  (void)state;
  guard_finds(-1, GM_DAMAGE_BEFORE, &zones);
  guard_finds(-40, GM_DAMAGE_BEFORE, &all);
}

/* In stream order the damage is found when the stream's work has passed; the free itself succeeds. */
static void test_in_stream_order(void **state) {
  (void)state;
  guard_bench b;
  gm_check_report report = {.struct_size = sizeof report};
  gm_error why;
  guard_open(&b, &zones);
  gm_block good = guard_take(&b, 5000, b.stream), bad = guard_take(&b, 3000, b.stream);
  guard_scribble(&b, &bad, 3001, 1, b.stream);
  assert_int_equal(gm_free(b.pool.pool, &good, b.stream), GM_OK);
  gm_status status = gm_free(b.pool.pool, &bad, b.stream);
  assert_true(status == GM_OK || status == GM_ERR_DAMAGED);
  assert_int_equal(gm_pool_check(b.pool.pool, &report, &why), GM_ERR_DAMAGED);
  assert_int_equal(report.damaged, 1);
  assert_int_equal(report.last.offset, 3001);
  assert_int_equal(report.unchecked, 0);
  assert_int_equal(pool_bench_stats(&b.pool).active, 0);
  guard_close(&b);
}

/* A block that is out is looked at, too, and told once; its free says it again. */
static void test_a_check_of_what_is_out(void **state) {
  (void)state;
  guard_bench b;
  gm_check_report report = {.struct_size = sizeof report};
  gm_error why;
  guard_open(&b, &zones);
  gm_block block = guard_take(&b, 3000, b.stream);
  pool_bench_ok(gm_pool_check(b.pool.pool, &report, err));
  guard_scribble(&b, &block, 3063, 0, b.stream);
  for (int turn = 0; turn < 2; turn++) {
    assert_int_equal(gm_pool_check(b.pool.pool, &report, &why), GM_ERR_DAMAGED);
    assert_int_equal(report.damaged, 1);
  }
  assert_non_null(strstr(why.message, "offset 3063"));
  assert_int_equal(gm_free(b.pool.pool, &block, NULL), GM_ERR_DAMAGED);
  assert_int_equal(gm_pool_check(b.pool.pool, &report, &why), GM_ERR_DAMAGED);
  assert_int_equal(report.damaged, 1);
  guard_close(&b);
}

static void test_patterns(void **state) {
  (void)state;
  guard_bench b;
  unsigned char seen[600], want[600];
  const gm_pool_params params = {.struct_size = sizeof params, .debug = GM_DEBUG_POISON};
  guard_open(&b, &params);
  for (size_t i = 0; i < sizeof want; i++) want[i] = (unsigned char)GM_DEBUG_FRESH_PATTERN[i % 2];
  for (int turn = 0; turn < 2; turn++) {
    gm_stream *stream = turn ? b.stream : NULL;
    gm_block block = guard_take(&b, sizeof seen, stream);
    pool_bench_ok(gm_block_read(b.pool.pool, &block, 0, seen, sizeof seen, stream, NULL, err));
    assert_memory_equal(seen, want, sizeof seen);
    assert_int_equal(gm_free(b.pool.pool, &block, stream), GM_OK);
  }
  const gm_request zero = {.bytes = 600, .flags = GM_ZERO, .stream = b.stream};
  gm_block block;
  assert_true(gm_alloc(b.pool.pool, &zero, &block) <= GM_ACQUIRE_FRESH);
  memset(want, 0, sizeof want);
  pool_bench_ok(gm_block_read(b.pool.pool, &block, 0, seen, sizeof seen, b.stream, NULL, err));
  assert_memory_equal(seen, want, sizeof seen);
  assert_int_equal(gm_free(b.pool.pool, &block, b.stream), GM_OK);
  guard_close(&b);
}

static void test_a_write_after_free(void **state) {
  (void)state;
  guard_bench b;
  gm_check_report report = {.struct_size = sizeof report};
  gm_error why;
  gm_memory memory;
  uint64_t offset;
  guard_open(&b, &all);
  gm_block block = guard_take(&b, 100000, NULL);
  assert_int_equal(gm_block_memory(b.pool.pool, &block, &memory, &offset), GM_OK);
  assert_int_equal(gm_free(b.pool.pool, &block, NULL), GM_OK);
  assert_int_equal(gm_tracker_count(gm_pool_tracker(b.pool.pool)), 0);
  const gm_device *device = b.pool.device;
  gm_stream *own;
  pool_bench_ok(gm__device_default_stream(b.pool.device, "test", &own, err));
  pool_bench_ok(device->ops->fill(device->handle, own->handle, &memory, offset + 77777, 1, "\x11", 1, NULL, err));
  assert_int_equal(gm_pool_check(b.pool.pool, &report, &why), GM_ERR_DAMAGED);
  assert_int_equal(report.last.kind, GM_DAMAGE_AFTER_FREE);
  assert_int_equal(report.last.offset, 77777);
  assert_int_not_equal(report.last.track_id, 0);
  assert_non_null(strstr(b.pool.host.last_line, "after it was freed"));
  guard_close(&b);
}

/* The last 32 freed blocks, as docs/debugging.md says. */
static void test_how_many_are_held_back(void **state) {
  (void)state;
  guard_bench b;
  const gm_pool_params params = {.struct_size = sizeof params, .debug = GM_DEBUG_CHECK_FREED};
  guard_open(&b, &params);
  for (uint64_t freed = 1; freed <= 40; freed++) {
    gm_block block = guard_take(&b, 1000, NULL);
    assert_int_equal(gm_free(b.pool.pool, &block, NULL), GM_OK);
    assert_int_equal(pool_bench_stats(&b.pool).requested_bytes, 1000 * (freed < 32 ? freed : 32));
  }
  guard_close(&b);
}

/* Memory that is held back is memory all the same, when there is no other. */
static void test_memory_that_is_held_back(void **state) {
  (void)state;
  guard_bench b;
  const gm_pool_params params = {.struct_size = sizeof params, .debug = GM_DEBUG_CHECK_FREED, .max_bytes = 1 << 20};
  guard_open(&b, &params);
  for (int turn = 0; turn < 40; turn++) {
    gm_block block = guard_take(&b, 600000, turn & 1 ? b.stream : NULL);
    assert_int_equal(gm_free(b.pool.pool, &block, turn & 1 ? b.stream : NULL), GM_OK);
  }
  guard_close(&b);
}

enum { GUARD_THREADS = 3, GUARD_TURNS = 24 };

typedef struct guard_worker {
  gm__thread thread;
  gm_pool *pool;
  unsigned char byte;
  unsigned failures;
} guard_worker;

static bool guard_turn(const guard_worker *me, uint64_t bytes) {
  const gm_request request = {.bytes = bytes};
  unsigned char seen = 0;
  gm_block block;
  if (gm_alloc(me->pool, &request, &block) > GM_ACQUIRE_FRESH) return false;
  const bool good = !gm_block_fill(me->pool, &block, 0, bytes, &me->byte, 1, NULL, NULL, NULL) &&
                    !gm_block_read(me->pool, &block, bytes - 1, &seen, 1, NULL, NULL, NULL) && seen == me->byte;
  return gm_free(me->pool, &block, NULL) == GM_OK && good;
}

static void guard_work(void *user) {
  guard_worker *me = user;
  for (int i = 0; i < GUARD_TURNS; i++) {
    me->failures += !guard_turn(me, 100 + (uint64_t)i * 37);
    if (i % 20 == 7) me->failures += gm_pool_check(me->pool, NULL, NULL) != GM_OK;
  }
}

/* Checked while others allocate, write and free: nothing that is whole is called damaged. */
static void test_several_threads(void **state) {
  (void)state;
  guard_bench b;
  guard_worker workers[GUARD_THREADS];
  guard_open(&b, &all);
  for (int i = 0; i < GUARD_THREADS; i++) {
    workers[i] = (guard_worker){.pool = b.pool.pool, .byte = (unsigned char)(i + 1)};
    pool_bench_ok(gm__thread_create(&workers[i].thread, "guard", guard_work, &workers[i], err));
  }
  for (int i = 0; i < GUARD_THREADS; i++) {
    gm__thread_join(&workers[i].thread);
    assert_int_equal(workers[i].failures, 0);
  }
  pool_bench_ok(gm_pool_check(b.pool.pool, NULL, err));
  guard_close(&b);
}

/* Enough for TSan; a window that was there once showed in one of 400000. Many in each turn: threads that take turns
 * mostly switch. The race is over the pool's lists, which a backend does not change. So drivers take a tenth, and the
 * processor where TESTS_FEW says so. */
enum { GUARD_RACE_TURN = 20, GUARD_RACE_TURNS = 1000 };

static int guard_race_turns(void) {
  const bool cpu = strcmp(guard_backend, "cpu") == 0 && !getenv("TESTS_FEW");
  return cpu || strcmp(guard_backend, "null") == 0 ? GUARD_RACE_TURNS : GUARD_RACE_TURNS / 10;
}

typedef struct guard_race {
  gm_pool *pool;
  gm_block blocks[GUARD_RACE_TURN];
  _Atomic int turn, done; /* the blocks of that turn are to be freed; were tried by the other thread */
  int turns, freed;       /* freed: by the other thread */
  gm__thread thread;
} guard_race;

static void guard_free_too(void *arg) {
  guard_race *race = arg;
  for (int turn = 1; turn <= race->turns; turn++) {
    while (atomic_load(&race->turn) < turn) sched_yield();
    for (int i = 0; i < GUARD_RACE_TURN; i++) race->freed += gm_free(race->pool, &race->blocks[i], NULL) == GM_OK;
    atomic_store(&race->done, turn);
  }
}

/* Two threads free the same block, which without zones is the same to the caller and to the pool: one of them does. */
static void test_of_two_frees_one_counts(void **state) {
  (void)state;
  const gm_pool_params params = {.struct_size = sizeof params, .debug = GM_DEBUG_POISON, .checked = true};
  guard_bench b;
  int freed = 0;
  guard_open(&b, &params);
  guard_race race = {.pool = b.pool.pool, .turns = guard_race_turns()};
  pool_bench_ok(gm__thread_create(&race.thread, "guard", guard_free_too, &race, err));
  for (int turn = 1; turn <= race.turns; turn++) {
    for (int i = 0; i < GUARD_RACE_TURN; i++) race.blocks[i] = guard_take(&b, 4096, NULL);
    atomic_store(&race.turn, turn);
    for (int i = 0; i < GUARD_RACE_TURN; i++) freed += gm_free(b.pool.pool, &race.blocks[i], NULL) == GM_OK;
    while (atomic_load(&race.done) < turn) sched_yield();
  }
  gm__thread_join(&race.thread);
  assert_int_equal(freed + race.freed, race.turns * GUARD_RACE_TURN);
  guard_close(&b);
}

/* A pool follows 64 streams; what it gave one more to do has no point any more when that stream is closed. */
static void test_a_stream_that_the_pool_does_not_follow(void **state) {
  (void)state;
  enum { FOLLOWED = 64 };
  guard_bench b;
  gm_stream *streams[FOLLOWED], *late;
  gm_block blocks[FOLLOWED];
  guard_open(&b, &all);
  for (int i = 0; i < FOLLOWED; i++) {
    pool_bench_ok(gm_stream_create(b.pool.device, &streams[i], err));
    blocks[i] = guard_take(&b, 1000, streams[i]);
  }
  pool_bench_ok(gm_stream_create(b.pool.device, &late, err));
  gm_block block = guard_take(&b, 1000, late);
  pool_bench_ok(gm_stream_close(late, err));
  assert_false(b.pool.pool->guard->out.last->has_point);
  assert_int_equal(gm_free(b.pool.pool, &block, NULL), GM_OK);
  for (int i = 0; i < FOLLOWED; i++) {
    assert_int_equal(gm_free(b.pool.pool, &blocks[i], streams[i]), GM_OK);
    pool_bench_ok(gm_stream_close(streams[i], err));
  }
  guard_close(&b);
}

/* The engine's point says when its work on the block is done; zones are judged as after a free on the stream. */
static void test_a_free_at_a_point(void **state) {
  (void)state;
  guard_bench b;
  gm_point point = {0};
  guard_open(&b, &zones);
  gm_block block = guard_take(&b, 1000, b.stream);
  pool_bench_ok(gm_stream_record(b.stream, &point, err));
  pool_bench_ok(gm_free_at(b.pool.pool, &block, &point, err));
  assert_int_equal(gm_free_at(b.pool.pool, &block, &point, NULL), GM_ERR_INVALID_ARGUMENT); /* twice */
  pool_bench_ok(gm_pool_check(b.pool.pool, NULL, err));
  gm_point_release(b.pool.device, &point);
  assert_int_equal(pool_bench_stats(&b.pool).in_use_bytes, 0);

  block = guard_take(&b, 1000, b.stream);
  guard_scribble(&b, &block, 1000, 1, b.stream);
  pool_bench_ok(gm_stream_record(b.stream, &point, err));
  const gm_status freed = gm_free_at(b.pool.pool, &block, &point, NULL);
  assert_true(freed == GM_OK || freed == GM_ERR_DAMAGED); /* told now, or when the zones are read */
  assert_int_equal(gm_pool_check(b.pool.pool, NULL, NULL), GM_ERR_DAMAGED);
  gm_point_release(b.pool.device, &point);
  guard_close(&b);
}

static void test_parameters(void **state) {
  (void)state;
  pool_bench b;
  gm_error why;
  gm_pool_params params = {.struct_size = sizeof params, .red_zone_bytes = (1 << 20) + 1};
  guard_open_device(&b, guard_backend);
  assert_int_equal(gm_pool_create(b.device, &params, &b.pool, &why), GM_ERR_INVALID_ARGUMENT);
  params = (gm_pool_params){.struct_size = sizeof params, .debug = 4};
  assert_int_equal(gm_pool_create(b.device, &params, &b.pool, &why), GM_ERR_INVALID_ARGUMENT);
  pool_bench_ok(gm_config_set(b.ctx, "debug.red_zone_bytes", "16", err));
  pool_bench_ok(gm_config_set(b.ctx, "debug.check_freed", "true", err));
  pool_bench_ok(gm_pool_create(b.device, NULL, &b.pool, err));
  assert_int_equal(b.pool->guard->zone, 16);
  assert_true(b.pool->guard->poison && b.pool->guard->check_freed);
  pool_bench_ok(gm_pool_destroy(b.pool, err));
  pool_bench_ok(gm_config_set(b.ctx, "debug.red_zone_bytes", "0", err));
  pool_bench_ok(gm_config_set(b.ctx, "debug.check_freed", "false", err));
  pool_bench_ok(gm_config_set(b.ctx, "debug.poison", "true", err));
  pool_bench_ok(gm_pool_create(b.device, NULL, &b.pool, err));
  assert_true(b.pool->guard->poison && !b.pool->guard->check_freed);
  pool_bench_close(&b);
}

/* A pool without anything: always good. */
static void test_nothing_to_check(void **state) {
  (void)state;
  guard_bench b;
  gm_check_report report = {.struct_size = sizeof report};
  gm_error why;
  guard_open(&b, NULL);
  pool_bench_ok(gm_pool_check(b.pool.pool, &report, err));
  assert_int_equal(report.checked, 0);
  report.struct_size = 1;
  assert_int_equal(gm_pool_check(b.pool.pool, &report, &why), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_pool_check(NULL, NULL, &why), GM_ERR_INVALID_ARGUMENT);
  guard_close(&b);
}

static void test_memory_without_contents(void **state) {
  (void)state;
  pool_bench b;
  gm_error why;
  guard_open_device(&b, "null");
  assert_int_equal(gm_pool_create(b.device, &zones, &b.pool, &why), GM_ERR_NOT_SUPPORTED);
  assert_non_null(strstr(why.message, "contents"));
  pool_bench_ok(gm_pool_create(b.device, NULL, &b.pool, err));
  pool_bench_close(&b);
}

static bool guard_has_device(void) {
  gm_context *ctx = NULL;
  gm_device *device = NULL;
  gm_error why;
  gm_status status = gm_context_create(NULL, &ctx, &why);
  if (!status) status = gm_device_open_index(ctx, guard_backend, 0, &device, &why);
  if (status) printf("no device of %s: %s\n", guard_backend, why.message);
  gm_device_close(device, NULL);
  gm_context_destroy(ctx, NULL);
  return status == GM_OK;
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_blocks_are_as_asked_and_usable),
      cmocka_unit_test(test_a_byte_behind),
      cmocka_unit_test(test_a_byte_before),
      cmocka_unit_test(test_in_stream_order),
      cmocka_unit_test(test_a_check_of_what_is_out),
      cmocka_unit_test(test_patterns),
      cmocka_unit_test(test_a_write_after_free),
      cmocka_unit_test(test_how_many_are_held_back),
      cmocka_unit_test(test_memory_that_is_held_back),
      cmocka_unit_test(test_several_threads),
      cmocka_unit_test(test_of_two_frees_one_counts),
      cmocka_unit_test(test_a_stream_that_the_pool_does_not_follow),
      cmocka_unit_test(test_a_free_at_a_point),
      cmocka_unit_test(test_parameters),
      cmocka_unit_test(test_nothing_to_check),
  };
  const struct CMUnitTest null_tests[] = {cmocka_unit_test(test_memory_without_contents)};
  if (argc != 2) return 2;
  guard_backend = argv[1];
  if (strcmp(guard_backend, "null") == 0) return cmocka_run_group_tests(null_tests, NULL, NULL);
  return guard_has_device() ? cmocka_run_group_tests(tests, NULL, NULL) : 77;
}

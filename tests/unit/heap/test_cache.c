/* The caches of a pool: two levels, bounds in number, bytes and age, hits of each, bounds that follow the pressure. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "core/arena/arena.h"
#include "core/pool/pool.h"
#include "gm/cleanup.h"
#include "gm/warm_up.h"
#include "support/pool_bench.h"

#define KIB UINT64_C(1024)
#define MIB (KIB * 1024)

enum { MANY = 64 };

static const gm_strategy strategies[] = {GM_STRATEGY_BUCKET, GM_STRATEGY_BEST_FIT};

typedef struct setting {
  const char *key, *value;
} setting;

/* An untracked pool (only such use quick lists) on a device of 64 MiB, with the settings, up to one without a key. */
static void open_with(pool_bench *bench, gm_strategy strategy, const gm_pool_params *params, const setting *settings) {
  gm_pool_params own = params ? *params : (gm_pool_params){.struct_size = sizeof own};
  own.strategy = strategy;
  pool_bench_open_device(bench, "null", "null:capacity=64M");
  pool_bench_ok(gm_config_set(bench->ctx, "track_allocations", "false", err));
  pool_bench_ok(gm_config_set(bench->ctx, "max_pooled_per_bucket", "1000", err));
  for (; settings->key; settings++) pool_bench_ok(gm_config_set(bench->ctx, settings->key, settings->value, err));
  pool_bench_ok(gm_pool_create(bench->device, &own, &bench->pool, err));
}

static gm_block take(const pool_bench *bench, uint64_t bytes, gm_stream *stream) {
  const gm_request request = {.bytes = bytes, .stream = stream, .flags = GM_INSERT_WAIT};
  gm_block block;
  assert_in_range(gm_alloc(bench->pool, &request, &block), GM_ACQUIRE_OK, GM_ACQUIRE_FRESH);
  return block;
}

static void give(const pool_bench *bench, const gm_block *block, gm_stream *stream) {
  assert_int_equal(gm_free(bench->pool, block, stream), GM_OK);
}

/* So many blocks alive at once, and freed. */
static void turn(const pool_bench *bench, uint64_t bytes, int count, gm_stream *stream) {
  gm_block blocks[MANY];
  for (int i = 0; i < count; i++) blocks[i] = take(bench, bytes, stream);
  for (int i = 0; i < count; i++) give(bench, &blocks[i], stream);
}

static void test_hits_are_counted_by_level(void **state) {
  (void)state;
  static const setting none[] = {{NULL, NULL}};
  for (size_t i = 0; i < 2; i++) {
    pool_bench bench;
    gm_stream *stream;
    open_with(&bench, strategies[i], NULL, none);
    pool_bench_ok(gm_stream_create(bench.device, &stream, err));
    turn(&bench, 4 * KIB, 10, stream);
    const gm_stats before = pool_bench_stats(&bench);
    turn(&bench, 4 * KIB, 10, stream); /* the stream's own */
    const gm_stats between = pool_bench_stats(&bench);
    turn(&bench, 4 * KIB, 10, NULL); /* another order */
    const gm_stats after = pool_bench_stats(&bench);
    if (strategies[i] == GM_STRATEGY_BUCKET) { /* of best_fit the reading of statistics empties quick lists */
      assert_int_equal(between.local_cache_hits - before.local_cache_hits, 10);
      assert_int_equal(after.global_cache_hits - between.global_cache_hits, 10);
    }
    turn(&bench, 4 * KIB, 10, NULL);
    turn(&bench, 4 * KIB, 10, NULL);
    const gm_stats last = pool_bench_stats(&bench);
    if (strategies[i] == GM_STRATEGY_BUCKET) { /* what the host freed nobody uses */
      assert_int_equal(last.global_cache_hits - after.global_cache_hits, 20);
    } else {
      assert_true(last.local_cache_hits - after.local_cache_hits >= 10);
    }
    assert_int_equal(last.local_cache_hits + last.global_cache_hits, last.stream_hits + last.global_hits);
    pool_bench_ok(gm_stream_close(stream, err));
    pool_bench_close(&bench);
  }
}

/* A block that its stream is known to be done with is anybody's, also where that stream gets it again. */
static void test_hits_of_buckets_are_where_the_block_was(void **state) {
  (void)state;
  static const setting none[] = {{NULL, NULL}}, keeps_none[] = {{"cache.stream_local", "0"}, {NULL, NULL}};
  for (int i = 0; i < 3; i++) {
    pool_bench bench;
    gm_stream *stream;
    open_with(&bench, GM_STRATEGY_BUCKET, NULL, i == 1 ? keeps_none : none);
    pool_bench_ok(gm_stream_create(bench.device, &stream, err));
    for (int k = 0; k < 11; k++) {
      turn(&bench, 4 * KIB, 1, stream);
      if (i == 2) pool_bench_ok(gm_stream_sync(stream, err));
    }
    const gm_stats stats = pool_bench_stats(&bench);
    assert_int_equal(stats.stream_hits, 10);
    assert_int_equal(stats.local_cache_hits, i ? 0 : 10);
    assert_int_equal(stats.global_cache_hits, i ? 10 : 0);
    pool_bench_ok(gm_stream_close(stream, err));
    pool_bench_close(&bench);
  }
}

/* Of 20 blocks freed one after the other, how many are found again in the first level? */
static uint64_t local_hits(const pool_bench *bench) {
  pool_bench copy = *bench;
  turn(bench, 4 * KIB, 20, NULL);
  const uint64_t before = pool_bench_stats(&copy).local_cache_hits;
  turn(bench, 4 * KIB, 20, NULL); /* the first 20 come out of holes: the statistics emptied the lists */
  turn(bench, 4 * KIB, 20, NULL);
  return pool_bench_stats(&copy).local_cache_hits - before;
}

static void clean_up(const pool_bench *bench, int times) {
  for (int i = 0; i < times; i++) pool_bench_ok(gm_pool_cleanup(bench->pool, 1, false, NULL, err));
}

/* It holds where a stream has the host's place in the table of streams, too. */
static void test_the_host_hits_beside_any_stream(void **state) {
  (void)state;
  enum { STREAMS = 2000 };
  static const setting none[] = {{NULL, NULL}};
  static gm_stream *streams[STREAMS];
  pool_bench bench;
  int count = 0;
  open_with(&bench, GM_STRATEGY_BEST_FIT, NULL, none);
  do {
    assert_in_range(count, 0, STREAMS - 1);
    pool_bench_ok(gm_stream_create(bench.device, &streams[count++], err));
  } while (gm__arena_stream_place(streams[count - 1]) != gm__arena_stream_place(NULL));
  turn(&bench, 4 * KIB, 10, streams[count - 1]);
  turn(&bench, 4 * KIB, 10, NULL);
  const gm_stats before = pool_bench_stats(&bench);
  turn(&bench, 4 * KIB, 10, NULL);
  turn(&bench, 4 * KIB, 10, NULL);
  assert_int_equal(pool_bench_stats(&bench).local_cache_hits - before.local_cache_hits, 10);
  while (count) pool_bench_ok(gm_stream_close(streams[--count], err));
  pool_bench_close(&bench);
}

static void test_quick_lists_are_bounded(void **state) {
  (void)state;
  static const setting by_stream[] = {{"cache.stream_local", "7"}, {"scaling.factor", "1"}, {NULL, NULL}};
  static const setting by_pool[] = {{"cache_size", "5"}, {"scaling.factor", "1"}, {NULL, NULL}};
  static const setting off[] = {{"cache.stream_local", "0"}, {NULL, NULL}};
  static const setting plenty[] = {{NULL, NULL}};
  static const struct {
    const setting *settings;
    uint64_t hits;
  } cases[] = {{by_stream, 7}, {by_pool, 5}, {off, 0}, {plenty, 20}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    pool_bench bench;
    open_with(&bench, GM_STRATEGY_BEST_FIT, NULL, cases[i].settings);
    assert_int_equal(local_hits(&bench), cases[i].hits);
    pool_bench_close(&bench);
  }
}

/* A size is small or not by the key and by what the device can do. */
static void test_small_blocks_are_kept(void **state) {
  (void)state;
  static const setting none[] = {{NULL, NULL}}, off[] = {{"small_block_threshold", "0"}, {NULL, NULL}};
  static const setting less[] = {{"small_block_threshold", "64K"}, {NULL, NULL}};
  static const struct {
    const setting *settings;
    bool no_vmm;
    uint64_t bytes, hits;
  } cases[] = {{none, false, 8 * MIB, 4}, {none, true, 16 * KIB, 4}, {none, true, 17 * KIB, 0},
               {less, false, MIB, 4},     {less, false, MIB + 1, 0}, {less, true, KIB, 4},
               {less, true, KIB + 1, 0},  {off, false, 1, 0},        {off, true, 1, 0}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    pool_bench bench;
    const gm_pool_params params = {.struct_size = sizeof params, .no_vmm = cases[i].no_vmm};
    open_with(&bench, GM_STRATEGY_BEST_FIT, &params, cases[i].settings);
    turn(&bench, cases[i].bytes, 4, NULL);
    turn(&bench, cases[i].bytes, 4, NULL);
    assert_int_equal(pool_bench_stats(&bench).local_cache_hits, cases[i].hits);
    pool_bench_close(&bench);
  }
}

static void test_buckets_are_bounded_together(void **state) {
  (void)state;
  static const setting idle[] = {{"cache.global", "7"}, {"scaling.factor", "1"}, {NULL, NULL}};
  static const setting all[] = {{"cache_size", "5"}, {"scaling.factor", "1"}, {NULL, NULL}};
  for (size_t i = 0; i < 2; i++) {
    pool_bench bench;
    open_with(&bench, GM_STRATEGY_BUCKET, NULL, i == 0 ? idle : all);
    turn(&bench, 4 * KIB, 20, NULL);
    turn(&bench, 64 * KIB, 1, NULL);
    const gm_stats stats = pool_bench_stats(&bench);
    assert_int_equal(stats.driver_allocs - stats.driver_frees, i == 0 ? 7 : 5);
    assert_int_equal(stats.pooled_bytes, (i == 0 ? 24 : 16) * KIB + 64 * KIB); /* the oldest went */
    const gm_warm_up list[] = {{4 * KIB, 30}};
    pool_bench_ok(gm_pool_warm_up(bench.pool, list, 1, NULL, NULL, err));
    assert_true(pool_bench_stats(&bench).pooled_bytes >= 30 * 4 * KIB - 64 * KIB); /* what was put there on purpose */
    pool_bench_close(&bench);
  }
}

/* While a stream is busy what it freed is its own; more than it may keep is anybody's as soon as it is done. */
static void test_a_stream_keeps_so_many(void **state) {
  (void)state;
  static const setting settings[] = {{"cache.stream_local", "2"}, {"scaling.factor", "1"}, {NULL, NULL}};
  pool_bench bench;
  gm_stream *stream;
  open_with(&bench, GM_STRATEGY_BUCKET, NULL, settings);
  pool_bench_ok(gm_stream_create(bench.device, &stream, err));
  turn(&bench, 4 * KIB, 6, stream);
  turn(&bench, 4 * KIB, 1, stream); /* a free asks no stream, the next request does */
  assert_true(pool_bench_stats(&bench).reclaimable_bytes >=
              4 * 4 * KIB); /* the null device's streams are done at once */
  assert_int_equal(pool_bench_stats(&bench).driver_frees, 0);
  pool_bench_ok(gm_stream_close(stream, err));
  pool_bench_close(&bench);
}

static void test_bytes_are_bounded(void **state) {
  (void)state;
  static const setting settings[] = {{"cache.max_bytes", "4M"}, {NULL, NULL}};
  for (size_t i = 0; i < 2; i++) {
    pool_bench bench;
    open_with(&bench, strategies[i], NULL, settings);
    turn(&bench, 2 * MIB, 8, NULL);
    assert_true(pool_bench_stats(&bench).pooled_bytes >= 16 * MIB); /* nothing is given back by a free */
    gm_block block = take(&bench, 32 * MIB, NULL);                  /* the pool grows */
    assert_true(pool_bench_stats(&bench).pooled_bytes <= 4 * MIB);
    give(&bench, &block, NULL);
    uint64_t bytes = 0;
    pool_bench_ok(gm_pool_cleanup(bench.pool, 1, false, &bytes, err));
    assert_true(bytes >= 28 * MIB);
    assert_true(pool_bench_stats(&bench).pooled_bytes <= 4 * MIB);
    pool_bench_close(&bench);
  }
}

/* Ages of 0: whatever was not used between two looks is too old. */
static void test_age(void **state) {
  (void)state;
  static const setting at_once[] = {{"cache.max_age", "0"}, {NULL, NULL}};
  static const bool no_vmm[] = {false, false, true};
  for (size_t i = 0; i < 3; i++) {
    pool_bench bench;
    const gm_pool_params params = {.struct_size = sizeof params, .no_vmm = no_vmm[i]};
    open_with(&bench, strategies[i > 0], &params, at_once);
    turn(&bench, 8 * MIB, 4, NULL);
    uint64_t bytes = 1;
    pool_bench_ok(gm_pool_cleanup(bench.pool, 1, false, &bytes, err));
    assert_int_equal(bytes, 0); /* freed since the last look, which was when the pool grew: gm/cleanup.h says so */
    gm_block held = take(&bench, 8 * MIB, NULL);
    pool_bench_ok(gm_pool_cleanup(bench.pool, 1, false, &bytes, err));
    assert_int_equal(bytes, 24 * MIB); /* but not what is in use */
    give(&bench, &held, NULL);
    pool_bench_ok(gm_pool_cleanup(bench.pool, 1, false, &bytes, err));
    assert_int_equal(bytes, 0);
    held = take(&bench, 8 * MIB, NULL);
    give(&bench, &held, NULL);
    pool_bench_ok(gm_pool_cleanup(bench.pool, 1, false, &bytes, err));
    assert_int_equal(bytes, 0); /* nor what was in use meanwhile */
    pool_bench_ok(gm_pool_cleanup(bench.pool, 1, false, &bytes, err));
    assert_int_equal(bytes, 8 * MIB);
    const gm_stats stats = pool_bench_stats(&bench);
    assert_int_equal(stats.aged_bytes, 32 * MIB);
    assert_int_equal(stats.reserved_bytes, 0);
    turn(&bench, 8 * MIB, 4, NULL); /* pooling works as before */
    assert_true(pool_bench_stats(&bench).pooled_bytes >= 32 * MIB);
    pool_bench_close(&bench);
  }
}

static void test_what_is_young_stays(void **state) {
  (void)state;
  static const setting hour[] = {{"cache.max_age", "3600000"}, {NULL, NULL}};
  static const setting by_itself[] = {{"cache.max_age", "auto"}, {NULL, NULL}};
  for (size_t i = 0; i < 4; i++) {
    pool_bench bench;
    open_with(&bench, strategies[i % 2], NULL, i < 2 ? hour : by_itself);
    turn(&bench, 4 * MIB, 4, NULL);
    for (int k = 0; k < 3; k++) {
      uint64_t bytes = 1;
      pool_bench_ok(gm_pool_cleanup(bench.pool, 1, false, &bytes, err));
      assert_int_equal(bytes, 0);
    }
    assert_int_equal(pool_bench_stats(&bench).aged_bytes, 0);
    pool_bench_close(&bench);
  }
}

/* Ages past 2^64 ns are never, not auto. */
static void test_the_longest_age_is_not_auto(void **state) {
  (void)state;
  static const setting ages[] = {{"cache.max_age", "9223372036854775807"}, {NULL, NULL}};
  pool_bench bench;
  open_with(&bench, GM_STRATEGY_BUCKET, NULL, ages);
  assert_true(bench.pool->heap.keep.max_age_ns == UINT64_MAX - 1);
  pool_bench_close(&bench);
}

static const setting four[] = {{"cache.stream_local", "4"}, {NULL, NULL}};

/* The device is played as empty, then as full: a pool with a cap that is taken or not. Each look is one step. */
static void test_bounds_follow_the_pressure(void **state) {
  (void)state;
  pool_bench bench;
  const gm_pool_params params = {.struct_size = sizeof params, .max_bytes = 32 * MIB};
  open_with(&bench, GM_STRATEGY_BEST_FIT, &params, four);
  turn(&bench, 4 * KIB, 1, NULL); /* grows */
  assert_int_equal(local_hits(&bench), 6);
  clean_up(&bench, 1);
  assert_int_equal(local_hits(&bench), 9);
  clean_up(&bench, 20);
  assert_int_equal(local_hits(&bench), 20);
  assert_int_equal(gm__quick_blocks(&bench.pool->heap.arenas.quick), 68); /* 4 times 1.5^7, which is more than 16 */
  gm_block full = take(&bench, 28 * MIB, NULL);
  assert_int_equal(gm__quick_blocks(&bench.pool->heap.arenas.quick), 45); /* the pool grew */
  clean_up(&bench, 30);
  assert_int_equal(local_hits(&bench), 0); /* a sixteenth of 4 */
  give(&bench, &full, NULL);
  clean_up(&bench, 30);
  assert_int_equal(local_hits(&bench), 20);
  pool_bench_close(&bench);
}

/* Half of the pool is taken. The keys say what is low and what is high. */
static void test_bounds_follow_the_keys(void **state) {
  (void)state;
  static const setting low[] = {{"cache.stream_local", "4"}, {"scaling.low", "0.6"}, {NULL, NULL}};
  static const setting high[] = {{"cache.stream_local", "4"}, {"scaling.high", "0.4"}, {NULL, NULL}};
  static const setting twice[] = {
      {"cache.stream_local", "4"}, {"scaling.low", "0.6"}, {"scaling.factor", "2"}, {NULL, NULL}};
  static const setting fixed[] = {
      {"cache.stream_local", "4"}, {"scaling.low", "1"}, {"scaling.factor", "1"}, {NULL, NULL}};
  static const struct {
    const setting *settings;
    uint64_t hits;
  } cases[] = {{four, 4}, {low, 9}, {high, 1}, {twice, 16}, {fixed, 4}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    pool_bench bench;
    const gm_pool_params params = {.struct_size = sizeof params, .max_bytes = 32 * MIB};
    open_with(&bench, GM_STRATEGY_BEST_FIT, &params, cases[i].settings);
    gm_block half = take(&bench, 16 * MIB, NULL); /* grows, and so does the first of the small ones */
    turn(&bench, 4 * KIB, 1, NULL);
    assert_int_equal(local_hits(&bench), cases[i].hits);
    give(&bench, &half, NULL);
    pool_bench_close(&bench);
  }
}

/* Where no limit holds, as on most adopted devices, no pressure is known: there is room. */
static void test_bounds_without_a_limit_grow(void **state) {
  (void)state;
  pool_bench bench;
  const gm_pool_params params = {.struct_size = sizeof params, .memory_fraction = 1, .min_free_bytes = GM_NO_LIMIT};
  open_with(&bench, GM_STRATEGY_BEST_FIT, &params, four);
  gm_block full = take(&bench, 60 * MIB, NULL);
  clean_up(&bench, 20);
  assert_int_equal(local_hits(&bench), 20);
  give(&bench, &full, NULL);
  pool_bench_close(&bench);
}

/* The bounds of a pool that gives nothing back follow the pressure, too. */
static void test_bounds_without_trims_follow(void **state) {
  (void)state;
  static const setting settings[] = {{"cache.stream_local", "4"}, {"cache.max_age", "0"}, {NULL, NULL}};
  pool_bench bench;
  const gm_pool_params params = {.struct_size = sizeof params, .max_bytes = 32 * MIB, .flags = GM_POOL_NO_TRIM};
  open_with(&bench, GM_STRATEGY_BEST_FIT, &params, settings);
  turn(&bench, 4 * KIB, 1, NULL); /* grows */
  assert_int_equal(local_hits(&bench), 6);
  gm_block full = take(&bench, 28 * MIB, NULL); /* grows */
  assert_int_equal(local_hits(&bench), 4);
  assert_int_equal(pool_bench_stats(&bench).driver_frees, 0);
  give(&bench, &full, NULL);
  pool_bench_close(&bench);
}

/* A class that keeps more than it was asked for gives back before older blocks of a busy one do. */
static void test_under_used_classes_go_first(void **state) {
  (void)state;
  static const setting none[] = {{NULL, NULL}};
  pool_bench bench;
  const gm_pool_params params = {.struct_size = sizeof params, .max_bytes = 32 * MIB};
  open_with(&bench, GM_STRATEGY_BUCKET, &params, none);
  gm_block busy[2] = {take(&bench, MIB, NULL), take(&bench, MIB, NULL)};
  gm_block under_used[4];
  for (int i = 0; i < 4; i++) under_used[i] = take(&bench, 2 * MIB, NULL);
  give(&bench, &busy[0], NULL);
  give(&bench, &busy[1], NULL);
  turn(&bench, MIB, 2, NULL); /* two requests served */
  for (int i = 0; i < 4; i++) give(&bench, &under_used[i], NULL);
  uint64_t bytes = 0;
  pool_bench_ok(gm_pool_cleanup(bench.pool, 0.125, false, &bytes, err)); /* to 4 of 10 MiB */
  assert_int_equal(bytes, 6 * MIB);
  turn(&bench, MIB, 2, NULL);
  assert_int_equal(pool_bench_stats(&bench).misses, 6);
  pool_bench_close(&bench);
}

enum { WORKERS = 4, ROUNDS = 300 };

typedef struct worker {
  pool_bench *bench;
  gm_stream *stream;
  _Atomic bool *failed;
} worker;

static void *work(void *user) {
  const worker *self = user;
  for (int round = 0; round < ROUNDS; round++) {
    gm_block blocks[8];
    int count = 0;
    for (int i = 0; i < 8; i++) {
      const gm_request request = {.bytes = (uint64_t)(i * round % 97 + 1) * KIB, .stream = self->stream};
      if (gm_alloc(self->bench->pool, &request, &blocks[count]) <= GM_ACQUIRE_FRESH) count++;
    }
    while (count) {
      if (gm_free(self->bench->pool, &blocks[--count], self->stream)) atomic_store(self->failed, true);
    }
  }
  return NULL;
}

/* Every key of the caches changes, pools come and go by the new values, and caches are seen to, while others allocate.
 */
static void change(const pool_bench *bench, int round) {
  static const char *const keys[] = {"cache.stream_local", "cache.global", "cache_size", "cache.max_bytes",
                                     "cache.max_age"};
  static const char *const values[] = {"0", "3", "1000"};
  gm_pool *other;
  for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
    pool_bench_ok(gm_config_set(bench->ctx, keys[i], values[(size_t)round % 3], err));
  }
  pool_bench_ok(gm_config_set(bench->ctx, "scaling.low", round % 2 ? "1" : "0", err));
  pool_bench_ok(gm_config_set(bench->ctx, "cleanup.threshold", round % 2 ? "0.1" : "0.9", err));
  pool_bench_ok(gm_pool_create(bench->device, NULL, &other, err));
  const gm_request request = {.bytes = 4 * KIB};
  gm_block block;
  if (gm_alloc(other, &request, &block) <= GM_ACQUIRE_FRESH) assert_int_equal(gm_free(other, &block, NULL), GM_OK);
  pool_bench_ok(gm_pool_destroy(other, err));
  pool_bench_ok(gm_pool_cleanup(bench->pool, GM_CLEANUP_THRESHOLD_CONFIG, round % 5 == 0, NULL, err));
}

static void test_keys_change_while_threads_allocate(void **state) {
  (void)state;
  static const setting eager[] = {
      {"cache.max_age", "0"}, {"cache.stream_local", "4"}, {"cache.max_bytes", "1M"}, {NULL, NULL}};
  for (size_t i = 0; i < 2; i++) {
    pool_bench bench;
    pthread_t threads[WORKERS];
    worker workers[WORKERS];
    _Atomic bool failed = false;
    open_with(&bench, strategies[i], NULL, eager);
    for (int k = 0; k < WORKERS; k++) {
      workers[k] = (worker){.bench = &bench, .failed = &failed};
      pool_bench_ok(gm_stream_create(bench.device, &workers[k].stream, err));
      assert_int_equal(pthread_create(&threads[k], NULL, work, &workers[k]), 0);
    }
    for (int round = 0; round < 50; round++) change(&bench, round);
    for (int k = 0; k < WORKERS; k++) assert_int_equal(pthread_join(threads[k], NULL), 0);
    assert_false(atomic_load(&failed));
    for (int k = 0; k < WORKERS; k++) pool_bench_ok(gm_stream_close(workers[k].stream, err));
    gm_pool_clear(bench.pool);
    const gm_stats stats = pool_bench_stats(&bench);
    assert_int_equal(stats.reserved_bytes + stats.active, 0);
    pool_bench_close(&bench);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_hits_are_counted_by_level),
      cmocka_unit_test(test_hits_of_buckets_are_where_the_block_was),
      cmocka_unit_test(test_the_host_hits_beside_any_stream),
      cmocka_unit_test(test_quick_lists_are_bounded),
      cmocka_unit_test(test_small_blocks_are_kept),
      cmocka_unit_test(test_buckets_are_bounded_together),
      cmocka_unit_test(test_a_stream_keeps_so_many),
      cmocka_unit_test(test_bytes_are_bounded),
      cmocka_unit_test(test_age),
      cmocka_unit_test(test_what_is_young_stays),
      cmocka_unit_test(test_the_longest_age_is_not_auto),
      cmocka_unit_test(test_bounds_follow_the_pressure),
      cmocka_unit_test(test_bounds_follow_the_keys),
      cmocka_unit_test(test_bounds_without_a_limit_grow),
      cmocka_unit_test(test_bounds_without_trims_follow),
      cmocka_unit_test(test_under_used_classes_go_first),
      cmocka_unit_test(test_keys_change_while_threads_allocate),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

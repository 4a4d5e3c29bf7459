/* Blocks and pointers that are none, by the thousand, between right ones: each is refused and nothing is damaged. A
 * mistake that an unchecked pool of buckets does not see (docs/pools.md, Mistakes) is not tried on one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/base/thread.h"
#include "support/pool_bench.h"
#include "support/random.h"

enum { LIVE = 40, STALE = 64, STEPS = 1000, THREADS = 4 };

typedef struct vandal {
  gm_pool *pool;
  const gm_block *foreign; /* live in another pool of the device */
  bool sees_all;           /* also a block of which index and check number alone are right */
  uint64_t random;
  gm_block live[LIVE], stale[STALE];
  uint64_t live_count, stale_count;
  const char *wrong; /* NULL: nothing is */
  gm__thread thread;
} vandal;

static unsigned char *bytes_of(vandal *v, const gm_block *block) {
  gm_memory memory;
  uint64_t offset = 0;
  if (gm_block_memory(v->pool, block, &memory, &offset)) v->wrong = "a live block is not known";
  return v->wrong ? NULL : (unsigned char *)memory.host + offset;
}

/* A block's first and last bytes name it. */
static void sign(vandal *v, const gm_block *block) {
  unsigned char *bytes = bytes_of(v, block);
  if (!bytes) return;
  memcpy(bytes, &block->address, sizeof block->address);
  bytes[block->bytes - 1] = (unsigned char)block->check;
}

static void check_signature(vandal *v, const gm_block *block) {
  const unsigned char *bytes = bytes_of(v, block);
  if (!bytes) return;
  if (memcmp(bytes, &block->address, sizeof block->address) != 0 ||
      bytes[block->bytes - 1] != (unsigned char)block->check) {
    v->wrong = "a live block was written by somebody else";
  }
}

static void take(vandal *v) {
  const gm_request request = {.bytes = 16 + test_random(&v->random) % (test_random(&v->random) % 4 ? 2000 : 200000)};
  gm_block *block = &v->live[v->live_count];
  if (gm_alloc(v->pool, &request, block) > GM_ACQUIRE_FRESH) {
    v->wrong = "no memory";
    return;
  }
  v->live_count++;
  sign(v, block);
}

static void give(vandal *v) {
  const uint64_t at = test_random(&v->random) % v->live_count;
  const gm_block block = v->live[at];
  check_signature(v, &block);
  const gm_status status = test_random(&v->random) % 2
                               ? gm_free(v->pool, &block, NULL)
                               : gm_free_ptr(v->pool, (void *)(uintptr_t)block.address, block.bytes, NULL);
  if (status) v->wrong = "a right free was refused";
  v->live[at] = v->live[--v->live_count];
  v->stale[v->stale_count++ % STALE] = block;
}

static void refuse(vandal *v, const gm_block *block, const char *what) {
  if (gm_free(v->pool, block, NULL) != GM_ERR_INVALID_ARGUMENT) v->wrong = what;
}

static void refuse_pointer(vandal *v, uint64_t address, uint64_t bytes, const char *what) {
  if (gm_free_ptr(v->pool, (void *)(uintptr_t)address, bytes, NULL) != GM_ERR_INVALID_ARGUMENT) v->wrong = what;
}

static void try_altered(vandal *v, gm_block block) {
  const uint64_t bit = test_random(&v->random);
  switch (test_random(&v->random) % (v->sees_all ? 5 : 1)) {
    case 0: block.check ^= UINT32_C(1) << bit % 32; break;
    case 1: block.number ^= UINT32_C(1) << bit % 32; break;
    case 2: block.address ^= UINT64_C(1) << bit % 64; break;
    case 3: block.bytes ^= UINT64_C(1) << bit % 64; break;
    default: block.memory ^= UINT64_C(1) << bit % 64; break;
  }
  refuse(v, &block, "an altered block was freed");
}

static void try_something(vandal *v) {
  const uint64_t any = test_random(&v->random), big = test_random(&v->random);
  const gm_block made_up = {any, big, any >> 3, (uint32_t)big, (uint32_t)(any >> 32)};
  const gm_block *live = v->live_count ? &v->live[any % v->live_count] : NULL;
  switch (big % 7) {
    case 0: refuse(v, &made_up, "a made-up block was freed"); break;
    case 1: refuse(v, v->foreign, "a block of another pool was freed"); break;
    case 2: refuse_pointer(v, v->foreign->address, 0, "a pointer of another pool was freed"); break;
    case 3: refuse_pointer(v, (uintptr_t)v, 0, "a pointer of the caller's own was freed"); break;
    case 4:
      if (v->stale_count) refuse(v, &v->stale[any % (v->stale_count < STALE ? v->stale_count : STALE)], "freed twice");
      break;
    case 5:
      if (live) refuse_pointer(v, live->address + 1 + any % (live->bytes - 1), 0, "an interior pointer was freed");
      break;
    default:
      if (live) refuse_pointer(v, live->address, UINT64_MAX - any % 1000, "more bytes than there are were freed");
      if (live) try_altered(v, *live);
  }
}

static void vandalise(void *arg) {
  vandal *v = arg;
  for (int step = 0; step < STEPS && !v->wrong; step++) {
    if (v->live_count < LIVE && test_random(&v->random) % 2) take(v);
    for (int i = 0; i < 3 && !v->wrong; i++) try_something(v);
    if (v->live_count && test_random(&v->random) % 2) give(v);
  }
  while (v->live_count && !v->wrong) give(v);
}

static void play(const gm_pool_params *params) {
  pool_bench bench;
  gm_pool *other;
  gm_block foreign;
  vandal vandals[THREADS];
  const gm_request request = {.bytes = 1000};
  pool_bench_open(&bench, "cpu", NULL, params);
  pool_bench_ok(gm_pool_create(bench.device, params, &other, err));
  assert_in_range(gm_alloc(other, &request, &foreign), GM_ACQUIRE_OK, GM_ACQUIRE_FRESH);
  const bool sees_all = gm_pool_strategy(bench.pool) == GM_STRATEGY_BEST_FIT || params->checked || params->debug;
  for (uint64_t i = 0; i < THREADS; i++) {
    vandals[i] = (vandal){.pool = bench.pool, .foreign = &foreign, .sees_all = sees_all, .random = 77 + i};
    pool_bench_ok(gm__thread_create(&vandals[i].thread, "vandal", vandalise, &vandals[i], err));
  }
  for (int i = 0; i < THREADS; i++) gm__thread_join(&vandals[i].thread);
  for (int i = 0; i < THREADS; i++) {
    if (vandals[i].wrong) fail_msg("%s", vandals[i].wrong);
  }
  assert_int_equal(gm_free(other, &foreign, NULL), GM_OK);
  pool_bench_ok(gm_pool_destroy(other, err));
  const gm_stats stats = pool_bench_stats(&bench);
  if (!params->debug) assert_int_equal(stats.in_use_bytes, 0);
  pool_bench_close(&bench);
}

static void play_both(gm_pool_params params) {
  params.struct_size = sizeof params;
  params.strategy = GM_STRATEGY_BUCKET;
  play(&params);
  params.strategy = GM_STRATEGY_BEST_FIT;
  play(&params);
}

static void test_a_checked_pool(void **state) {
  (void)state;
  play_both((gm_pool_params){.checked = true});
}

/* In debug builds the same as above. */
static void test_an_unchecked_pool(void **state) {
  (void)state;
  play_both((gm_pool_params){.checked = false});
}

static void test_a_tracked_pool(void **state) {
  (void)state;
  play_both((gm_pool_params){.checked = true, .track = true});
}

static void test_a_guarded_pool(void **state) {
  (void)state;
  play_both((gm_pool_params){.checked = true, .debug = GM_DEBUG_POISON});
  play_both((gm_pool_params){.checked = true, .debug = GM_DEBUG_CHECK_FREED, .red_zone_bytes = 32});
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_checked_pool),
      cmocka_unit_test(test_an_unchecked_pool),
      cmocka_unit_test(test_a_tracked_pool),
      cmocka_unit_test(test_a_guarded_pool),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Many pools of one device that has no more memory: a growth looks at a few of them, whatever their number. Looks at
 * what a pool keeps are counted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "core/arena/arena_set.h"
#include "core/base/thread.h"
#include "core/context/context.h"
#include "core/heap/live.h"
#include "gm/report.h"
#include "support/pool_bench.h"
#include "support/random.h"

#define MIB (UINT64_C(1) << 20)

enum { POOLS = 400, FULL = 128, FEW = 32, TURNS = 1000, CROWD = 900, PIECE = 256 };

static size_t looks, piece, most_at_once; /* in all; since the context's lock was entered; the most of these */

static pool_bench bench;

static void look_at_pool(void) {
  looks++;
  piece++;
  if (piece > most_at_once) most_at_once = piece;
}

uint64_t __real_gm__arenas_pooled(const gm__arena_set *set);
uint64_t __wrap_gm__arenas_pooled(const gm__arena_set *set);
uint64_t __wrap_gm__arenas_pooled(const gm__arena_set *set) {
  look_at_pool();
  return __real_gm__arenas_pooled(set);
}

void __real_gm__mutex_lock(gm__mutex *mutex);
void __wrap_gm__mutex_lock(gm__mutex *mutex);
void __wrap_gm__mutex_lock(gm__mutex *mutex) {
  if (bench.ctx && mutex == &bench.ctx->lock) piece = 0;
  __real_gm__mutex_lock(mutex);
}

void __real_gm__arenas_add(const gm__arena_set *set, gm_stats *out);
void __wrap_gm__arenas_add(const gm__arena_set *set, gm_stats *out);
void __wrap_gm__arenas_add(const gm__arena_set *set, gm_stats *out) {
  look_at_pool();
  __real_gm__arenas_add(set, out);
}

bool __real_gm__live_at(gm__heap *heap, uint64_t address, gm__live *out);
bool __wrap_gm__live_at(gm__heap *heap, uint64_t address, gm__live *out);
bool __wrap_gm__live_at(gm__heap *heap, uint64_t address, gm__live *out) {
  look_at_pool();
  return __real_gm__live_at(heap, address, out);
}

static gm_pool *pools[POOLS];

/* Room for the memory of FULL pools. Their blocks are 2 MiB, each a page or a segment of its own. */
static void scene_open(bool no_vmm) {
  const gm_pool_params params = {.struct_size = sizeof params, .no_vmm = no_vmm};
  pool_bench_open(&bench, "null", "null:capacity=256M", &params);
  for (int i = 0; i < POOLS; i++) pool_bench_ok(gm_pool_create(bench.device, &params, &pools[i], err));
}

static void scene_close(void) {
  for (int i = 0; i < POOLS; i++) pool_bench_ok(gm_pool_destroy(pools[i], err));
  pool_bench_close(&bench);
}

static gm_acquire ask(gm_pool *pool, gm_block *out) {
  const gm_request request = {.bytes = 2 * MIB};
  return gm_alloc(pool, &request, out);
}

static size_t look_most(size_t *all, size_t before) {
  const size_t here = looks - before;
  *all += here;
  return here;
}

/* Each pool uses its memory and keeps it: the next one takes it from whoever has it. */
static void check_growth(bool no_vmm) {
  gm_block block;
  uint64_t seed = 5;
  size_t most = 0, all = 0;
  scene_open(no_vmm);
  for (int i = 0; i < TURNS; i++) {
    gm_pool *pool = pools[test_random(&seed) % POOLS];
    const size_t before = looks;
    assert_in_range(ask(pool, &block), GM_ACQUIRE_OK, GM_ACQUIRE_FRESH);
    const size_t here = look_most(&all, before);
    if (here > most) most = here;
    assert_int_equal(gm_free(pool, &block, NULL), GM_OK);
  }
  printf("  a growth looks at %zu pools of %d at most, %zu on average\n", most, POOLS, all / TURNS);
  assert_true(all > TURNS); /* or nothing was counted */
  assert_true(most <= FULL);
  assert_true(all / TURNS <= FEW);
  scene_close();
}

static void test_a_growth_looks_at_few_pools(void **state) {
  (void)state;
  check_growth(false);
  check_growth(true);
}

/* The pools that have all memory use it: there is none to be had. Those that have none are not asked. */
static void test_a_refusal_looks_at_pools_with_memory(void **state) {
  (void)state;
  gm_block blocks[FULL], block;
  scene_open(true);
  for (int i = 0; i < POOLS; i++) { /* each has had memory once */
    assert_in_range(ask(pools[i], &block), GM_ACQUIRE_OK, GM_ACQUIRE_FRESH);
    assert_int_equal(gm_free(pools[i], &block, NULL), GM_OK);
  }
  for (int i = 0; i < FULL; i++) assert_in_range(ask(pools[i], &blocks[i]), GM_ACQUIRE_OK, GM_ACQUIRE_FRESH);
  assert_int_equal(ask(pools[POOLS - 1], &block), GM_ACQUIRE_OVER_LIMIT);
  const size_t before = looks;
  assert_int_equal(ask(pools[POOLS - 1], &block), GM_ACQUIRE_OVER_LIMIT);
  printf("  a refusal looks at %zu pools of %d\n", looks - before, POOLS);
  assert_true(looks - before <= 2 * FULL);
  /* A pool that took memory again is known again, wherever it stood. */
  assert_int_equal(gm_free(pools[7], &blocks[7], NULL), GM_OK);
  assert_int_equal(ask(pools[POOLS - 1], &block), GM_ACQUIRE_FRESH);
  assert_int_equal(gm_free(pools[POOLS - 1], &block, NULL), GM_OK);
  for (int i = 0; i < FULL; i++) {
    if (i != 7) assert_int_equal(gm_free(pools[i], &blocks[i], NULL), GM_OK);
  }
  scene_close();
}

/* More than the pool's own cap is refused whatever the others have. */
static void test_a_refusal_by_the_cap_looks_at_no_other_pool(void **state) {
  (void)state;
  gm_block block;
  scene_open(false);
  for (int i = 0; i < FULL / 2; i++) {
    assert_in_range(ask(pools[i], &block), GM_ACQUIRE_OK, GM_ACQUIRE_FRESH);
    assert_int_equal(gm_free(pools[i], &block, NULL), GM_OK);
  }
  pool_bench_ok(gm_pool_set_max_bytes(pools[POOLS - 1], MIB, err));
  const size_t before = looks;
  assert_int_equal(ask(pools[POOLS - 1], &block), GM_ACQUIRE_OVER_LIMIT);
  assert_true(looks - before <= FEW);
  scene_close();
}

static gm_pool *crowd[CROWD];
static gm_block blocks[CROWD];

/* All of very many pools use all their memory. */
static void crowd_open(void) {
  const gm_pool_params params = {.struct_size = sizeof params, .no_vmm = true};
  pool_bench_open(&bench, "null", "null:capacity=1800M", &params);
  for (int i = 0; i < CROWD; i++) {
    pool_bench_ok(gm_pool_create(bench.device, &params, &crowd[i], err));
    assert_int_equal(ask(crowd[i], &blocks[i]), GM_ACQUIRE_FRESH);
  }
  looks = most_at_once = 0;
}

static void crowd_close(void) {
  for (int i = 0; i < CROWD; i++) {
    assert_int_equal(gm_free(crowd[i], &blocks[i], NULL), GM_OK);
    pool_bench_ok(gm_pool_destroy(crowd[i], err));
  }
  pool_bench_close(&bench);
}

/* Each is asked, but not all inside one lock. */
static void test_a_refusal_looks_at_a_piece_of_the_pools(void **state) {
  (void)state;
  gm_block block;
  crowd_open();
  assert_int_equal(ask(bench.pool, &block), GM_ACQUIRE_OVER_LIMIT);
  printf("  a refusal looks %zu times at %d pools, at %zu at once\n", looks, CROWD, most_at_once);
  assert_true(looks >= CROWD);
  assert_true(most_at_once <= PIECE);
  /* One that keeps memory is found, wherever it stands: also behind a piece. */
  for (int i = 0; i < CROWD; i += 70) {
    assert_int_equal(gm_free(crowd[i], &blocks[i], NULL), GM_OK);
    assert_int_equal(ask(bench.pool, &block), GM_ACQUIRE_FRESH);
    assert_int_equal(gm_free(bench.pool, &block, NULL), GM_OK);
    assert_int_equal(ask(crowd[i], &blocks[i]), GM_ACQUIRE_FRESH);
    assert_true(most_at_once <= PIECE);
  }
  crowd_close();
}

static size_t lines;

static void count_line(void *user, const char *text, size_t bytes) {
  (void)user, (void)text, (void)bytes;
  lines++;
}

static void test_figures_look_at_a_piece_of_the_pools(void **state) {
  (void)state;
  gm_stats stats = {.struct_size = sizeof stats};
  gm_pointer_info info = {.struct_size = sizeof info};
  crowd_open();
  pool_bench_ok(gm_device_stats(bench.device, &stats, err));
  printf("  a sum looks at %zu pools, at %zu at once\n", looks, most_at_once);
  assert_int_equal(stats.in_use_bytes, CROWD * 2 * MIB);
  assert_true(looks >= CROWD && most_at_once <= PIECE);
  looks = most_at_once = 0;
  assert_int_equal(gm_pointer_find(bench.device, &info, &info), GM_ERR_NOT_FOUND);
  printf("  a pointer is looked for in %zu pools, in %zu at once\n", looks, most_at_once);
  assert_true(looks >= CROWD && most_at_once <= PIECE);
  looks = most_at_once = 0;
  pool_bench_ok(gm_report_open_metrics(bench.ctx, count_line, NULL, err));
  printf("  a page of figures looks at %zu pools, at %zu at once, and has %zu lines\n", looks, most_at_once, lines);
  assert_true(looks >= CROWD && most_at_once <= PIECE);
  assert_true(lines >= CROWD * 29); /* three figures of holes are unknown until somebody looks for them */
  crowd_close();
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_growth_looks_at_few_pools),
      cmocka_unit_test(test_a_refusal_looks_at_pools_with_memory),
      cmocka_unit_test(test_a_refusal_looks_at_a_piece_of_the_pools),
      cmocka_unit_test(test_figures_look_at_a_piece_of_the_pools),
      cmocka_unit_test(test_a_refusal_by_the_cap_looks_at_no_other_pool),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

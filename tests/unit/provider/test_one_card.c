/* Contexts of one process share a card: never are two of them told that its last bytes are theirs. Programs without gm
 * use it, too. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "support/shared_card.h"

enum { CONTEXTS = 2 };

typedef struct asker {
  pool_bench bench;
  gm_block block;
  gm_acquire answer;
} asker;

static void *ask(void *arg) {
  asker *self = arg;
  const gm_request request = {.bytes = 48 * MIB, .flags = GM_DEDICATED};
  self->answer = gm_alloc(self->bench.pool, &request, &self->block);
  return NULL;
}

static void ask_at_once(const gm_pool_params *params) {
  asker askers[CONTEXTS];
  pthread_t threads[CONTEXTS];
  int served = 0;
  shared_card_reset(64 * MIB);
  shared_card->await = CONTEXTS;
  for (int i = 0; i < CONTEXTS; i++) shared_card_open(&askers[i].bench, params);
  for (int i = 0; i < CONTEXTS; i++) assert_int_equal(pthread_create(&threads[i], NULL, ask, &askers[i]), 0);
  for (int i = 0; i < CONTEXTS; i++) pthread_join(threads[i], NULL);
  for (int i = 0; i < CONTEXTS; i++) {
    if (askers[i].answer > GM_ACQUIRE_FRESH) continue;
    served++;
    assert_int_equal(gm_free(askers[i].bench.pool, &askers[i].block, NULL), GM_OK);
  }
  assert_true(atomic_load(&shared_card->most) <= shared_card->capacity);
  assert_int_equal(served, 1);
  for (int i = 0; i < CONTEXTS; i++) pool_bench_close(&askers[i].bench);
}

static void test_two_contexts_never_get_the_last_bytes_both(void **state) {
  (void)state;
  const gm_pool_params kinds[] = {{.struct_size = sizeof kinds[0]},
                                  {.struct_size = sizeof kinds[0], .no_vmm = true},
                                  {.struct_size = sizeof kinds[0], .strategy = GM_STRATEGY_BUCKET}};
  for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) ask_at_once(&kinds[i]);
}

/* ---- beside a program without gm ---- */

/* With powers of two each allocation takes exactly what is asked for. */
static const gm_pool_params exact = {.struct_size = sizeof exact, .strategy = GM_STRATEGY_BUCKET};

static bool take(const pool_bench *bench, uint64_t bytes, gm_block *out) {
  const gm_request request = {.bytes = bytes};
  return gm_alloc(bench->pool, &request, out) <= GM_ACQUIRE_FRESH;
}

static void give(const pool_bench *bench, gm_block *block) {
  assert_int_equal(gm_free(bench->pool, block, NULL), GM_OK);
  gm_pool_trim(bench->pool, 0);
}

/* One reading of the figures serves for a while: what gm took since then is no longer free. */
static void test_what_was_taken_since_the_reading_counts(void **state) {
  (void)state;
  pool_bench bench;
  gm_block one, other;
  shared_card_reset(64 * MIB);
  shared_card_take(32 * MIB);
  shared_card_open(&bench, &exact);
  assert_true(take(&bench, 16 * MIB, &one));
  assert_false(take(&bench, 32 * MIB, &other));
  assert_true(take(&bench, 16 * MIB, &other));
  give(&bench, &other);
  give(&bench, &one);
  pool_bench_close(&bench);
}

/* Less was free than has to stay free: what gm gives back fills that up first. */
static void test_what_has_to_stay_free_is_filled_up_first(void **state) {
  (void)state;
  pool_bench bench;
  gm_block one, other, more;
  shared_card_reset(64 * MIB);
  shared_card_open_device(&bench, "1", "8M");
  pool_bench_ok(gm_pool_create(bench.device, &exact, &bench.pool, err));
  assert_true(take(&bench, 16 * MIB, &one) && take(&bench, 8 * MIB, &other));
  shared_card_take(36 * MIB);
  gm__sleep_ns(20 * 1000 * 1000); /* the reading is too old now */
  assert_false(take(&bench, MIB, &more));
  give(&bench, &other);
  assert_false(take(&bench, 8 * MIB, &more));
  give(&bench, &one);
  assert_true(take(&bench, 16 * MIB, &more));
  give(&bench, &more);
  pool_bench_close(&bench);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_two_contexts_never_get_the_last_bytes_both),
      cmocka_unit_test(test_what_was_taken_since_the_reading_counts),
      cmocka_unit_test(test_what_has_to_stay_free_is_filled_up_first),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

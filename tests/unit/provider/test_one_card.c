/* Contexts of one process share a card: never are two of them told that its last bytes are theirs. */
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

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_two_contexts_never_get_the_last_bytes_both),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

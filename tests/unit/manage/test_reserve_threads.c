/* Threads that race for a card: never is more promised and taken than it has. Forks, and host memory that is missing.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "gm/reserve.h"
#include "support/fail_each.h"
#include "support/shared_card.h"

enum { CAPACITY = 64 /* MiB */, THREADS = 8, CONTEXTS = 2, ROUNDS = 200 };

static const gm_pool_params exact = {.struct_size = sizeof exact, .strategy = GM_STRATEGY_BUCKET};

/* The bytes that all threads hold by their own count: an oracle beside gm's. */
static _Atomic uint64_t granted, most_granted, grants;

static void note_granted(uint64_t bytes) {
  const uint64_t now = atomic_fetch_add(&granted, bytes) + bytes;
  uint64_t most = atomic_load(&most_granted);
  while (now > most && !atomic_compare_exchange_weak(&most_granted, &most, now)) {}
  atomic_fetch_add(&grants, 1);
}

typedef struct racer {
  pool_bench *bench;
  gm_pool *pool;
  int number;
  int failures; /* a promise that was not kept */
} racer;

/* Takes what is promised in two pieces, and gives it back. Memory that a pool gives back is for all at once, so the
 * bytes are uncounted before. Returns false where the promise was not kept. */
static bool take_all(gm_pool *pool, uint64_t bytes) {
  const gm_request request = {.bytes = bytes / 2};
  gm_block blocks[2];
  bool kept = true;
  for (int i = 0; i < 2; i++) kept = gm_alloc(pool, &request, &blocks[i]) <= GM_ACQUIRE_FRESH && kept;
  atomic_fetch_sub(&granted, bytes);
  for (int i = 0; i < 2 && kept; i++) gm_free(pool, &blocks[i], NULL);
  gm_pool_trim(pool, 0);
  return kept;
}

static void *race(void *arg) {
  racer *self = arg;
  const gm_reserve_params params = {.struct_size = sizeof params, .bytes = CAPACITY / 4 * MIB};
  for (int round = 0; round < ROUNDS; round++) {
    gm_reservation *held = NULL;
    if (gm_reserve(self->bench->device, &params, &held, NULL)) continue;
    note_granted(params.bytes);
    if (round % 2 && gm_reservation_commit(held, self->pool, NULL) == GM_OK) {
      if (!take_all(self->pool, params.bytes)) self->failures++;
    } else {
      atomic_fetch_sub(&granted, params.bytes);
    }
    gm_reservation_cancel(held);
  }
  return NULL;
}

/* Takes what it can, without a promise. */
static void *grow(void *arg) {
  racer *self = arg;
  const gm_request request = {.bytes = 3 * MIB};
  for (int round = 0; round < ROUNDS; round++) {
    gm_block block;
    if (gm_alloc(self->pool, &request, &block) > GM_ACQUIRE_FRESH) continue;
    gm_free(self->pool, &block, NULL);
    gm_pool_trim(self->pool, 0);
  }
  return NULL;
}

static void race_all(void *(*last)(void *arg)) {
  pool_bench benches[CONTEXTS];
  racer racers[THREADS];
  pthread_t threads[THREADS];
  shared_card_reset(CAPACITY * MIB);
  atomic_store(&granted, 0);
  atomic_store(&most_granted, 0);
  atomic_store(&grants, 0);
  for (int i = 0; i < CONTEXTS; i++) shared_card_open(&benches[i], &exact);
  for (int i = 0; i < THREADS; i++) {
    racers[i] = (racer){.bench = &benches[i % CONTEXTS], .number = i};
    pool_bench_ok(gm_pool_create(racers[i].bench->device, &exact, &racers[i].pool, err));
    assert_int_equal(pthread_create(&threads[i], NULL, i ? race : last, &racers[i]), 0);
  }
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  for (int i = 0; i < THREADS; i++) {
    assert_int_equal(racers[i].failures, 0);
    pool_bench_ok(gm_pool_destroy(racers[i].pool, err));
  }
  assert_true(atomic_load(&grants) >= 4);
  assert_true(atomic_load(&most_granted) <= CAPACITY * MIB);
  assert_true(atomic_load(&shared_card->most) <= CAPACITY * MIB);
  for (int i = 0; i < CONTEXTS; i++) pool_bench_close(&benches[i]);
}

static void test_threads_never_get_more_than_the_card_has(void **state) {
  (void)state;
  race_all(race);
}

static void test_growth_never_takes_what_is_promised(void **state) {
  (void)state;
  race_all(grow);
}

/* ---- a pool that grows while promises are bound to it and end ---- */

static void *commit_and_cancel(void *arg) {
  racer *self = arg;
  for (int round = 0; round < ROUNDS; round++) {
    gm_reservation *held = NULL;
    gm_reservation_info info = {.struct_size = sizeof info};
    if (gm_pool_reserve(self->pool, 8 * MIB, &held, NULL)) continue;
    if (gm_reservation_read(held, &info, NULL) || info.taken_bytes + info.left_bytes != info.bytes) self->failures++;
    gm_reservation_cancel(held);
  }
  return NULL;
}

static void test_commit_and_growth_at_once(void **state) {
  (void)state;
  pool_bench bench;
  racer racers[4];
  pthread_t threads[4];
  gm_memory_info memory = {.struct_size = sizeof memory};
  shared_card_reset(CAPACITY * MIB);
  shared_card_open(&bench, &exact);
  for (int i = 0; i < 4; i++) {
    racers[i] = (racer){.bench = &bench, .pool = bench.pool};
    assert_int_equal(pthread_create(&threads[i], NULL, i % 2 ? grow : commit_and_cancel, &racers[i]), 0);
  }
  for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
  for (int i = 0; i < 4; i++) assert_int_equal(racers[i].failures, 0);
  assert_true(atomic_load(&shared_card->most) <= CAPACITY * MIB);
  pool_bench_ok(gm_device_memory_info(bench.device, &memory, err));
  assert_int_equal(memory.promised_bytes, 0);
  pool_bench_close(&bench);
}

/* ---- fork ---- */

static int child_run(pool_bench *parent, gm_reservation *held) {
  pool_bench bench;
  gm_reservation *more = NULL;
  gm_reservation_info info = {.struct_size = sizeof info};
  const gm_reserve_params params = {.struct_size = sizeof params, .bytes = 48 * MIB};
  if (gm_reserve(parent->device, &params, &more, NULL) != GM_ERR_FORKED) return 1;
  if (gm_pool_reserve(parent->pool, MIB, &more, NULL) != GM_ERR_FORKED) return 2;
  if (gm_reservation_read(held, &info, NULL) != GM_ERR_FORKED) return 3;
  if (gm_reservation_commit(held, parent->pool, NULL) != GM_ERR_FORKED) return 4;
  gm_reservation_cancel(held);
  if (gm_pool_destroy(parent->pool, NULL) || gm_device_close(parent->device, NULL)) return 5;
  if (gm_context_destroy(parent->ctx, NULL)) return 6;
  shared_card_open(&bench, &exact); /* a fresh gm, which has promised nothing */
  if (gm_reserve(bench.device, &params, &more, NULL)) return 7;
  gm_reservation_cancel(more);
  pool_bench_close(&bench);
  return 0;
}

static void test_a_forked_child_has_no_promises(void **state) {
  (void)state;
  pool_bench bench;
  gm_reservation *held = NULL;
  gm_memory_info memory = {.struct_size = sizeof memory};
  int status = 0;
  shared_card_reset(CAPACITY * MIB);
  shared_card_open(&bench, &exact);
  pool_bench_ok(gm_pool_reserve(bench.pool, 48 * MIB, &held, err));
  const pid_t child = fork();
  if (child == 0) _exit(child_run(&bench, held));
  assert_true(child > 0 && waitpid(child, &status, 0) == child);
  assert_true(WIFEXITED(status));
  assert_int_equal(WEXITSTATUS(status), 0);
  pool_bench_ok(gm_device_memory_info(bench.device, &memory, err));
  assert_int_equal(memory.promised_bytes, 48 * MIB);
  gm_reservation_cancel(held);
  pool_bench_close(&bench);
}

/* ---- host memory ---- */

static gm_status attempt(const gm_services *services) {
  const gm_context_params context = {.struct_size = sizeof context,
                                     .services = services,
                                     .backend_options = "null:capacity=64M",
                                     .ignore_environment = true};
  const gm_reserve_params params = {.struct_size = sizeof params, .bytes = 8 * MIB};
  gm_context *ctx = NULL;
  gm_device *device = NULL;
  gm_pool *pool = NULL;
  gm_reservation *held = NULL, *own = NULL;
  gm_status status = gm_context_create(&context, &ctx, NULL);
  if (!status) status = gm_device_open_index(ctx, "null", 0, &device, NULL);
  if (!status) status = gm_pool_create(device, &exact, &pool, NULL);
  if (!status) status = gm_reserve(device, &params, &held, NULL);
  if (!status) status = gm_reservation_commit(held, pool, NULL);
  if (!status) status = gm_pool_reserve(pool, 8 * MIB, &own, NULL);
  gm_reservation_cancel(own);
  gm_reservation_cancel(held);
  assert_int_equal(gm_pool_destroy(pool, NULL), GM_OK);
  assert_int_equal(gm_device_close(device, NULL), GM_OK);
  assert_int_equal(gm_context_destroy(ctx, NULL), GM_OK);
  return status;
}

static void test_host_memory_that_is_missing(void **state) {
  (void)state;
  fail_each_allocation(attempt, 6);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_threads_never_get_more_than_the_card_has),
      cmocka_unit_test(test_growth_never_takes_what_is_promised),
      cmocka_unit_test(test_commit_and_growth_at_once),
      cmocka_unit_test(test_a_forked_child_has_no_promises),
      cmocka_unit_test(test_host_memory_that_is_missing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

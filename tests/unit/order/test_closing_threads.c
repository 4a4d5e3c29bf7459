/* Streams close while other threads use the pool. The place of one that closed is the next one's. If memory still
 * named it, it would wait for a stream that has nothing to do with it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>

#include "core/base/thread.h"
#include "gm/cleanup.h"
#include "gm/stream.h"
#include "support/pool_bench.h"
#include "support/random.h"

enum { THREADS = 3, TURNS = 1200, TABLE = 512, FILL = 2500, STREAM_TURNS = 40 };

/* Blocks that any thread may free. */
typedef struct table_place {
  pthread_mutex_t lock;
  gm_block block; /* `bytes` 0: none */
} table_place;

static pool_bench bench;
static table_place table[TABLE];

typedef struct racer {
  uint64_t random;
  gm_stream *stream;
  uint32_t failures;
  gm_block fill[FILL];
} racer;

static void racer_note(racer *self, bool fine) { self->failures += !fine; }

static void racer_turn(racer *self) {
  table_place *place = &table[test_random(&self->random) % TABLE];
  const gm_request request = {.bytes = 256 + test_random(&self->random) % 8192,
                              .stream = test_random(&self->random) % 2 ? self->stream : NULL};
  pthread_mutex_lock(&place->lock);
  if (!place->block.bytes) {
    racer_note(self, gm_alloc(bench.pool, &request, &place->block) <= GM_ACQUIRE_FRESH);
  } else if (test_random(&self->random) % 3 == 0) {
    racer_note(self, gm_use_on(bench.pool, &place->block, self->stream) == GM_OK);
  } else {
    racer_note(self, gm_free(bench.pool, &place->block, request.stream) == GM_OK);
    place->block.bytes = 0;
  }
  pthread_mutex_unlock(&place->lock);
}

static void race(void *argument) {
  racer *self = argument;
  const gm_request request = {.bytes = 512};
  for (int i = 0; i < FILL; i++) {
    racer_note(self, gm_alloc(bench.pool, &request, &self->fill[i]) <= GM_ACQUIRE_FRESH);
  }
  for (int i = 0; i < TURNS; i++) {
    if (i % STREAM_TURNS == 0) racer_note(self, gm_stream_create(bench.device, &self->stream, NULL) == GM_OK);
    racer_turn(self);
    if ((i + 1) % STREAM_TURNS == 0) racer_note(self, gm_stream_close(self->stream, NULL) == GM_OK);
  }
  for (int i = 0; i < FILL; i++) racer_note(self, gm_free(bench.pool, &self->fill[i], NULL) == GM_OK);
}

static void check_race(const gm_pool_params *params) {
  static racer racers[THREADS];
  gm__thread threads[THREADS];
  pool_bench_open(&bench, "null", "null:capacity=4G", params);
  for (int i = 0; i < TABLE; i++) pthread_mutex_init(&table[i].lock, NULL);
  for (int i = 0; i < THREADS; i++) {
    racers[i] = (racer){.random = (uint64_t)i + 1};
    pool_bench_ok(gm__thread_create(&threads[i], "closer", race, &racers[i], err));
  }
  for (int i = 0; i < THREADS; i++) {
    gm__thread_join(&threads[i]);
    assert_int_equal(racers[i].failures, 0);
  }
  for (int i = 0; i < TABLE; i++) {
    if (table[i].block.bytes) assert_int_equal(gm_free(bench.pool, &table[i].block, NULL), GM_OK);
    table[i].block.bytes = 0;
    pthread_mutex_destroy(&table[i].lock);
  }
  assert_int_equal(pool_bench_stats(&bench).active, 0);
  gm_pool_trim(bench.pool, 0);
  assert_int_equal(pool_bench_stats(&bench).reserved_bytes, 0); /* nothing waits for anybody */
  pool_bench_close(&bench);
}

static void test_streams_close_while_others_use_the_pool(void **state) {
  (void)state;
  check_race(&(gm_pool_params){.struct_size = sizeof(gm_pool_params)});
  check_race(&(gm_pool_params){.struct_size = sizeof(gm_pool_params), .no_vmm = true});
  check_race(&(gm_pool_params){.struct_size = sizeof(gm_pool_params), .strategy = GM_STRATEGY_BUCKET});
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_streams_close_while_others_use_the_pool)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

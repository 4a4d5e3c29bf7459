/* Threads use relocatable buffers, make and release them, while others compact the pool and put it to sleep. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "core/base/thread.h"
#include "support/relocation_bench.h"

enum { WORKERS = 3, ROUNDS = 60, SHARED = 12 };

typedef struct scene {
  pool_bench bench;
  gm_buffer *shared[SHARED];
  _Atomic int working;
  _Atomic bool wrong;
} scene;

typedef struct worker {
  scene *scene;
  gm__thread thread;
  uint64_t seed;
} worker;

static bool bytes_are_right(gm_buffer *buffer) {
  const uint64_t bytes = gm_buffer_bytes(buffer);
  unsigned char *wanted = relocation_bytes(gm_buffer_id(buffer), bytes), *has = malloc((size_t)bytes);
  const bool right =
      has && gm_buffer_read(buffer, 0, has, bytes, NULL, NULL) == GM_OK && !memcmp(has, wanted, (size_t)bytes);
  free(wanted);
  free(has);
  return right;
}

static void work(void *arg) {
  worker *self = arg;
  gm_pool *pool = self->scene->bench.pool;
  gm_stream *stream = NULL;
  bool fine = gm_stream_create(self->scene->bench.device, &stream, NULL) == GM_OK;
  for (int i = 0; fine && i < ROUNDS; i++) {
    gm_buffer *shared = self->scene->shared[test_random(&self->seed) % SHARED];
    const gm_buffer_params params = {
        .struct_size = sizeof params,
        .request = {.bytes = 1 + test_random(&self->seed) % (64 * RELOCATION_KIB), .flags = GM_RELOCATABLE}};
    gm_buffer *own = NULL;
    fine = gm_buffer_create(pool, &params, &own, NULL) == GM_OK;
    if (!fine) break;
    relocation_fill(own);
    gm_buffer_retain(shared);
    fine = gm_buffer_lock(shared, NULL, NULL) == GM_OK && bytes_are_right(shared);
    fine = gm_buffer_unlock(shared, stream, NULL) == GM_OK && fine;
    gm_buffer_release(shared, stream);
    fine = fine && bytes_are_right(own);
    gm_buffer_release(own, stream);
  }
  gm_stream_close(stream, NULL);
  if (!fine) self->scene->wrong = true;
  self->scene->working--;
}

static void test_threads_use_what_others_move(void **state) {
  (void)state;
  static scene s;
  worker workers[WORKERS];
  pool_bench_open(&s.bench, "cpu", NULL, &(gm_pool_params){.struct_size = sizeof(gm_pool_params), .no_vmm = true});
  for (int i = 0; i < SHARED; i++) {
    s.shared[i] = relocation_make(s.bench.pool, 100 * RELOCATION_KIB, GM_RELOCATABLE);
    relocation_fill(s.shared[i]);
  }
  s.working = WORKERS;
  for (int i = 0; i < WORKERS; i++) {
    workers[i] = (worker){.scene = &s, .seed = (uint64_t)i + 1};
    pool_bench_ok(gm__thread_create(&workers[i].thread, "worker", work, &workers[i], err));
  }
  while (s.working) {
    gm_error failure;
    relocation_compact(s.bench.pool);
    const gm_status slept = gm_pool_sleep(s.bench.pool, true, NULL, NULL, &failure);
    assert_true(slept == GM_OK || slept == GM_ERR_BUSY);
    pool_bench_ok(gm_pool_wake(s.bench.pool, NULL, err));
  }
  for (int i = 0; i < WORKERS; i++) gm__thread_join(&workers[i].thread);
  assert_false(s.wrong);
  pool_bench_ok(gm_pool_wake(s.bench.pool, NULL, err));
  for (int i = 0; i < SHARED; i++) {
    relocation_check(s.shared[i]);
    gm_buffer_release(s.shared[i], NULL);
  }
  pool_bench_close(&s.bench);
}

/* Blocks come and go, and gm writes zeros into some, by the thread's stream. The thread touches none of them, because
 * the pool may sleep. A sleeping pool refuses. */
static void come_and_go(void *arg) {
  enum { HELD = 8 };
  worker *self = arg;
  gm_pool *pool = self->scene->bench.pool;
  gm_block held[HELD];
  gm_stream *stream = NULL;
  bool has[HELD] = {false}, fine = gm_stream_create(self->scene->bench.device, &stream, NULL) == GM_OK;
  for (int i = 0; fine && i < 200 * ROUNDS; i++) {
    const size_t at = test_random(&self->seed) % HELD;
    const gm_request request = {.bytes = 1 + test_random(&self->seed) % (i % 16 ? 2000 : 3000000),
                                .flags = i % 3 ? 0 : GM_ZERO,
                                .stream = stream};
    if (has[at]) fine = gm_free(pool, &held[at], stream) == GM_OK;
    const gm_acquire answer = gm_alloc(pool, &request, &held[at]);
    has[at] = gm_acquired(answer);
    fine = fine && (has[at] || answer == GM_ACQUIRE_EXHAUSTED);
  }
  for (size_t i = 0; i < HELD; i++) {
    if (has[i] && gm_free(pool, &held[i], stream)) fine = false;
  }
  if (gm_stream_close(stream, NULL)) fine = false;
  if (!fine) self->scene->wrong = true;
  self->scene->working--;
}

static void test_threads_allocate_while_the_pool_falls_asleep(void **state) {
  (void)state;
  static scene s;
  worker workers[WORKERS];
  int slept = 0;
  pool_bench_open(&s.bench, "cpu", "cpu:memfd", &(gm_pool_params){.struct_size = sizeof(gm_pool_params)});
  for (int i = 0; i < SHARED; i++) {
    s.shared[i] = relocation_make(s.bench.pool, 100 * RELOCATION_KIB, 0);
    relocation_fill(s.shared[i]);
  }
  s.working = WORKERS;
  for (int i = 0; i < WORKERS; i++) {
    workers[i] = (worker){.scene = &s, .seed = (uint64_t)i + 1};
    pool_bench_ok(gm__thread_create(&workers[i].thread, "worker", come_and_go, &workers[i], err));
  }
  for (bool once = false; s.working || !once; once = true) {
    gm_error failure;
    const gm_status status = gm_pool_sleep_whole(s.bench.pool, true, NULL, NULL, &failure);
    assert_true(status == GM_OK || status == GM_ERR_BUSY);
    slept += status == GM_OK;
    pool_bench_ok(gm_pool_wake(s.bench.pool, NULL, err));
    for (int i = 0; i < SHARED; i++) relocation_check(s.shared[i]);
  }
  for (int i = 0; i < WORKERS; i++) gm__thread_join(&workers[i].thread);
  assert_false(s.wrong);
  assert_true(slept > 0);
  for (int i = 0; i < SHARED; i++) gm_buffer_release(s.shared[i], NULL);
  pool_bench_close(&s.bench);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_threads_use_what_others_move),
      cmocka_unit_test(test_threads_allocate_while_the_pool_falls_asleep),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

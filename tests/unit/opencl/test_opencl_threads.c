/* Several threads on one OpenCL device and one stream. Meant for the thread sanitizer, too. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/base/thread.h"
#include "support/opencl_fixture.h"

enum { THREADS = 4, ROUNDS = 40, BYTES = 20000 };

typedef struct worker {
  const opencl_fixture *f;
  void *stream; /* NULL: gm's own, made by whoever is first */
  uint8_t mark;
  int bad;
  gm__thread thread;
} worker;

/* No cmocka here: it is for one thread. */
static int work_once(const worker *w) {
  const gm_backend_ops *ops = w->f->ops;
  void *device = w->f->device;
  const gm_memory_params params = {.struct_size = sizeof params, .bytes = BYTES};
  uint8_t got[BYTES] = {0};
  gm_memory memory;
  gm_backend_point point;
  if (ops->memory_alloc(device, &params, &memory, NULL) != GM_OK) return 1;
  int bad = ops->fill(device, w->stream, &memory, 0, BYTES, &w->mark, 1, &point, NULL) != GM_OK;
  if (!bad) {
    bad |= ops->point_wait_on(device, w->stream, &point, NULL) != GM_OK;
    bad |= ops->copy_to_host(device, w->stream, &memory, 0, got, BYTES, NULL, NULL) != GM_OK;
    bad |= ops->point_wait(device, &point, 1000000000, NULL) != GM_OK;
    ops->point_release(device, &point, GM_CLOSE_NORMAL);
  }
  bad |= ops->device_state(device, NULL) != GM_OK;
  bad |= ops->memory_free(device, &memory, GM_CLOSE_NORMAL, NULL) != GM_OK;
  for (size_t i = 0; i < BYTES; i++) bad |= got[i] != w->mark;
  return bad;
}

static void work(void *arg) {
  worker *w = arg;
  for (int round = 0; round < ROUNDS; round++) w->bad |= work_once(w);
}

static void run(const opencl_fixture *f, void *stream) {
  worker workers[THREADS];
  for (uint8_t i = 0; i < THREADS; i++) {
    workers[i] = (worker){.f = f, .stream = stream, .mark = (uint8_t)(i + 1)};
    assert_int_equal(gm__thread_create(&workers[i].thread, "worker", work, &workers[i], NULL), GM_OK);
  }
  for (int i = 0; i < THREADS; i++) gm__thread_join(&workers[i].thread);
  for (int i = 0; i < THREADS; i++) assert_int_equal(workers[i].bad, 0);
}

/* The specification asks for it. Oclgrind crashes in its queue. */
static bool thread_safe(const opencl_fixture *f) { return strcmp(f->info.driver, "oclgrind") != 0; }

static void test_threads_share_a_stream(void **state) {
  (void)state;
  opencl_fixture f;
  opencl_fixture_open(&f);
  if (!thread_safe(&f)) skip();
  run(&f, f.stream);
  opencl_fixture_close(&f);
}

static void test_threads_race_for_gms_own_queue(void **state) {
  (void)state;
  for (int round = 0; round < 5; round++) {
    opencl_fixture f;
    opencl_fixture_open(&f);
    if (!thread_safe(&f)) skip();
    run(&f, NULL);
    opencl_fixture_close(&f);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_threads_share_a_stream),
      cmocka_unit_test(test_threads_race_for_gms_own_queue),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Two threads need the process's file of promises at once. One makes it, and the other one sleeps meanwhile. So the
 * first gets on even with less priority on the same processor. The linker wraps the calls that show it. */
#include "core/room/card_turn.h"

#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "core/context/process.h"
#include "support/pool_bench.h"
#include "support/temp_folder.h"

static gm_context *ctx;
static sem_t waits, waited;
static _Atomic int slept, yielded;
static bool armed;

void __real_gm__sleep_ns(uint64_t ns);
void __real_gm__thread_yield(void);
gm_status __real_gm__promise_file_init(gm__promise_file *file, const char *folder, gm_error *err);
void __wrap_gm__sleep_ns(uint64_t ns);
void __wrap_gm__thread_yield(void);
gm_status __wrap_gm__promise_file_init(gm__promise_file *file, const char *folder, gm_error *err);

void __wrap_gm__sleep_ns(uint64_t ns) {
  if (armed && atomic_fetch_add(&slept, 1) == 0) sem_post(&waited);
  __real_gm__sleep_ns(ns);
}

void __wrap_gm__thread_yield(void) {
  if (armed && atomic_fetch_add(&yielded, 1) == 0) sem_post(&waited);
  __real_gm__thread_yield();
}

static void *look(void *promises) {
  gm__card_look(ctx, promises);
  return NULL;
}

/* The first thread is in here until the second one has waited for it. */
gm_status __wrap_gm__promise_file_init(gm__promise_file *file, const char *folder, gm_error *err) {
  sem_post(&waits);
  sem_wait(&waited);
  return __real_gm__promise_file_init(file, folder, err);
}

static void test_who_waits_for_the_file_sleeps(void **state) {
  (void)state;
  temp_folder folder;
  pthread_t first, second;
  gm__card *one = gm__card_of(1), *other = gm__card_of(2);
  const gm_context_params params = {.struct_size = sizeof params, .ignore_environment = true};
  atomic_store(&one->name, 1);
  atomic_store(&other->name, 2);
  temp_folder_make(&folder);
  assert_int_equal(sem_init(&waits, 0, 0) | sem_init(&waited, 0, 0), 0);
  pool_bench_ok(gm_context_create(&params, &ctx, err));
  pool_bench_ok(gm_config_set(ctx, "reserve.folder", folder.path, err));
  armed = true;
  assert_int_equal(pthread_create(&first, NULL, look, one), 0);
  sem_wait(&waits);
  assert_int_equal(pthread_create(&second, NULL, look, other), 0);
  pthread_join(first, NULL);
  pthread_join(second, NULL);
  assert_true(atomic_load(&slept) > 0);
  assert_int_equal(atomic_load(&yielded), 0);
  pool_bench_ok(gm_context_destroy(ctx, err));
  temp_folder_remove(&folder);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_who_waits_for_the_file_sleeps)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Locks keep counts right, waiting ends, threads carry name and mask. Run under TSan, the first ones check the locks
 * themselves. */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/base/clock.h"
#include "core/base/thread.h"

enum { THREADS = 4, ROUNDS = 5000 };

typedef struct shared {
  gm__mutex mutex;
  gm__cond cond;
  uint64_t count;
  bool ready;
} shared;

static void shared_init(shared *s) {
  memset(s, 0, sizeof *s);
  gm__mutex_init(&s->mutex, GM__RANK_LEAF);
  gm__cond_init(&s->cond);
}

static void shared_fini(shared *s) {
  gm__cond_destroy(&s->cond);
  gm__mutex_destroy(&s->mutex);
}

static void count_up(void *arg) {
  shared *s = arg;
  for (int i = 0; i < ROUNDS; i++) {
    gm__mutex_lock(&s->mutex);
    s->count++;
    gm__mutex_unlock(&s->mutex);
  }
}

static void run_threads(shared *s, void (*run)(void *)) {
  gm__thread threads[THREADS];
  for (int i = 0; i < THREADS; i++) assert_int_equal(gm__thread_create(&threads[i], "gm-test", run, s, NULL), GM_OK);
  for (int i = 0; i < THREADS; i++) gm__thread_join(&threads[i]);
}

static void test_a_mutex_excludes(void **state) {
  (void)state;
  shared s;
  shared_init(&s);
  run_threads(&s, count_up);
  assert_int_equal(s.count, THREADS * ROUNDS);
  shared_fini(&s);
}

static void try_and_count(void *arg) {
  shared *s = arg;
  if (!gm__mutex_try_lock(&s->mutex)) return;
  s->count++;
  gm__mutex_unlock(&s->mutex);
}

static void test_try_lock_does_not_wait(void **state) {
  (void)state;
  shared s;
  shared_init(&s);
  gm__mutex_lock(&s.mutex);
  run_threads(&s, try_and_count);
  assert_int_equal(s.count, 0);
  gm__mutex_unlock(&s.mutex);
  assert_true(gm__mutex_try_lock(&s.mutex));
  gm__mutex_unlock(&s.mutex);
  shared_fini(&s);
}

static void wait_until_ready(void *arg) {
  shared *s = arg;
  gm__mutex_lock(&s->mutex);
  while (!s->ready) gm__cond_wait_until(&s->cond, &s->mutex, GM__NEVER);
  s->count++;
  gm__cond_signal(&s->cond);
  gm__mutex_unlock(&s->mutex);
}

static void test_waiting_ends_with_a_broadcast(void **state) {
  (void)state;
  shared s;
  shared_init(&s);
  gm__thread threads[THREADS];
  for (int i = 0; i < THREADS; i++) {
    assert_int_equal(gm__thread_create(&threads[i], "waiter", wait_until_ready, &s, NULL), GM_OK);
  }
  gm__mutex_lock(&s.mutex);
  s.ready = true;
  gm__cond_broadcast(&s.cond);
  while (s.count < THREADS) gm__cond_wait(&s.cond, &s.mutex);
  gm__mutex_unlock(&s.mutex);
  for (int i = 0; i < THREADS; i++) gm__thread_join(&threads[i]);
  shared_fini(&s);
}

static void test_waiting_ends_at_the_deadline(void **state) {
  (void)state;
  shared s;
  shared_init(&s);
  gm__mutex_lock(&s.mutex);
  assert_false(gm__cond_wait_until(&s.cond, &s.mutex, 0));
  uint64_t deadline = gm__deadline_after(2000000);
  while (gm__cond_wait_until(&s.cond, &s.mutex, deadline)) continue;
  assert_true(gm__deadline_passed(deadline));
  assert_false(gm__mutex_try_lock(&s.mutex));
  gm__mutex_unlock(&s.mutex);
  shared_fini(&s);
}

typedef struct look {
  char name[16];
  sigset_t mask;
} look;

static void look_around(void *arg) {
  look *seen = arg;
  pthread_getname_np(pthread_self(), seen->name, sizeof seen->name);
  pthread_sigmask(SIG_SETMASK, NULL, &seen->mask);
}

static void test_a_thread_has_its_name_and_no_signals(void **state) {
  (void)state;
  look seen;
  sigset_t before, after;
  gm__thread thread;
  sigemptyset(&before);
  sigaddset(&before, SIGUSR1);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  assert_int_equal(gm__thread_create(&thread, "a-name-that-is-far-too-long", look_around, &seen, NULL), GM_OK);
  gm__thread_join(&thread);
  pthread_sigmask(SIG_SETMASK, NULL, &after);
  assert_string_equal(seen.name, "a-name-that-is-");
  static const int signals[] = {SIGINT, SIGTERM, SIGUSR1, SIGCHLD, SIGPIPE, SIGALRM};
  for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
    assert_true(sigismember(&seen.mask, signals[i]));
    assert_int_equal(sigismember(&before, signals[i]), sigismember(&after, signals[i]));
  }
}

static int once_runs;

static void once_count(void) { once_runs++; }

static void test_once_is_once(void **state) {
  (void)state;
  static gm__once once = GM__ONCE_INIT;
  for (int i = 0; i < 3; i++) gm__once_run(&once, once_count);
  assert_int_equal(once_runs, 1);
}

static void test_a_static_mutex_needs_no_init(void **state) {
  (void)state;
  static gm__mutex mutex = GM__MUTEX_INIT;
  gm__mutex_lock(&mutex);
  gm__mutex_unlock(&mutex);
  assert_true(gm__mutex_try_lock(&mutex));
  gm__mutex_unlock(&mutex);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_mutex_excludes),
      cmocka_unit_test(test_try_lock_does_not_wait),
      cmocka_unit_test(test_waiting_ends_with_a_broadcast),
      cmocka_unit_test(test_waiting_ends_at_the_deadline),
      cmocka_unit_test(test_a_thread_has_its_name_and_no_signals),
      cmocka_unit_test(test_once_is_once),
      cmocka_unit_test(test_a_static_mutex_needs_no_init),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

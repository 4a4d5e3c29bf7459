/* A thread's sign of life: when it ends, and for whom it is kept. */
#include "core/base/thread_here.h"

#include <limits.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static pthread_key_t early_key, late_key; /* made before gm's key, and after it: so their destructors run */
static gm__thread_life *life;
static unsigned calls, ended;

static void look(void *unused) {
  (void)unused;
  calls++;
  ended += gm__thread_life_ended(life);
}

static void *take_life(void *unused) {
  (void)unused;
  life = gm__thread_life_take();
  pthread_setspecific(early_key, &early_key);
  pthread_setspecific(late_key, &late_key);
  return NULL;
}

static void run(void *(*body)(void *)) {
  pthread_t thread;
  assert_int_equal(pthread_create(&thread, NULL, body, NULL), 0);
  assert_int_equal(pthread_join(thread, NULL), 0);
}

/* A program's own destructors may still free blocks. */
static void test_a_thread_has_not_ended_while_destructors_run(void **state) {
  (void)state;
  assert_int_equal(pthread_key_create(&early_key, look), 0);
  gm__thread_life *own = gm__thread_life_take(); /* makes gm's key */
  assert_non_null(own);
  assert_int_equal(pthread_key_create(&late_key, look), 0);
  run(take_life);
  assert_non_null(life);
  assert_int_equal(calls, 2);
  assert_int_equal(ended, 0);
  assert_true(gm__thread_life_ended(life));
  assert_false(gm__thread_life_ended(own));
  gm__thread_life_give(life);
  gm__thread_life_give(own);
  pthread_key_delete(early_key);
  pthread_key_delete(late_key);
}

enum { KEPT = 7 };
static unsigned rounds, late_calls, late_lives, late_finds; /* the last three: after the thread's end */

/* Comes again until the round that the thread ends in, behind gm's destructor; the last is the sanitizers'. */
static void linger(void *value) {
  if (++rounds < PTHREAD_DESTRUCTOR_ITERATIONS - 1) pthread_setspecific(late_key, value);
  if (!gm__thread_life_ended(life)) return;
  gm__thread_life *taken = gm__thread_life_take();
  late_calls++;
  late_lives += taken != NULL;
  late_finds += gm__here_find(KEPT) != NULL;
  gm__thread_life_give(taken);
}

static void *keep_and_linger(void *unused) {
  (void)unused;
  life = gm__thread_life_take();
  gm__here_keep(KEPT, &life);
  assert_ptr_equal(gm__here_find(KEPT), &life);
  pthread_setspecific(late_key, &late_key);
  return NULL;
}

/* The state that it kept may be another thread's by then. */
static void test_an_ended_thread_finds_nothing(void **state) {
  (void)state;
  gm__thread_life *own = gm__thread_life_take();             /* makes gm's key */
  assert_int_equal(pthread_key_create(&early_key, NULL), 0); /* in the gap before it, if there is one */
  assert_int_equal(pthread_key_create(&late_key, linger), 0);
  run(keep_and_linger);
  assert_true(late_calls > 0);
  assert_int_equal(late_lives, 0);
  assert_int_equal(late_finds, 0);
  gm__thread_life_give(life);
  gm__thread_life_give(own);
  pthread_key_delete(early_key);
  pthread_key_delete(late_key);
}

static void *take_twice(void *unused) {
  (void)unused;
  life = gm__thread_life_take();
  gm__thread_life *again = gm__thread_life_take();
  assert_ptr_equal(again, life);
  gm__thread_life_give(again);
  gm__thread_life_give(NULL);
  return NULL;
}

static void test_a_thread_has_one_life(void **state) {
  (void)state;
  run(take_twice);
  assert_true(gm__thread_life_ended(life));
  gm__thread_life_give(life);
}

static const void *self;

static void *take_life_and_self(void *unused) {
  (void)unused;
  life = gm__thread_life_take();
  self = gm__thread_self();
  return NULL;
}

/* A later thread often gets the stack of an ended one, and its thread-local memory with it. */
static void test_no_later_thread_is_taken_for_an_ended_one(void **state) {
  (void)state;
  run(take_life_and_self);
  gm__thread_life *first_life = life;
  const void *first = self;
  for (int i = 0; i < 8; i++) {
    run(take_life_and_self);
    assert_ptr_not_equal(self, first);
    gm__thread_life_give(life);
  }
  gm__thread_life_give(first_life);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_thread_has_not_ended_while_destructors_run),
      cmocka_unit_test(test_an_ended_thread_finds_nothing),
      cmocka_unit_test(test_a_thread_has_one_life),
      cmocka_unit_test(test_no_later_thread_is_taken_for_an_ended_one),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The lock that costs its owner little, and the thread's own words. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/base/barrier.h"
#include "core/base/bias_lock.h"
#include "core/base/clock.h"
#include "core/base/thread_here.h"

enum { TURNS = 60000, THREADS = 3 };

static gm__bias_lock lock;
static uint64_t counter; /* guarded by the lock, and no atomic: two inside would lose counts */

static void turn(const void *self) {
  gm__bias_lock_in(&lock, self);
  counter++;
  gm__bias_lock_out(&lock);
}

static void be_home(void *argument) {
  gm__thread_life_give(gm__thread_life_take()); /* from now on gm__thread_self is this thread's alone, until it ends */
  const void *self = gm__thread_self();
  gm__bias_lock_in(&lock, self);
  gm__bias_settle(&lock, self);
  gm__bias_lock_out(&lock);
  for (int i = 0; i < *(int *)argument; i++) turn(self);
}

static void be_a_stranger(void *argument) {
  for (int i = 0; i < *(int *)argument; i++) turn(gm__thread_self());
}

static void test_nobody_is_inside_with_another(void **state) {
  (void)state;
  gm__thread threads[THREADS];
  int many = TURNS, few = TURNS / 20;
  gm__bias_init(&lock, GM__RANK_LEAF);
  counter = 0;
  for (int i = 0; i < THREADS; i++) {
    assert_int_equal(gm__thread_create(&threads[i], "bias", i ? be_a_stranger : be_home, i ? &few : &many, NULL),
                     GM_OK);
  }
  for (int i = 0; i < THREADS; i++) gm__thread_join(&threads[i]);
  assert_int_equal(counter, many + (THREADS - 1) * few);
  gm__bias_destroy(&lock);
}

/* How often the home thread comes until it is the owner; 0: it is none after so many. */
static int turns_to_own(int most) {
  for (int i = 1; i <= most; i++) {
    turn(gm__thread_self());
    if (!gm__bias_enter(&lock)) continue;
    gm__bias_lock_out(&lock);
    return i;
  }
  return 0;
}

static void let_a_stranger_in(void) {
  gm__thread stranger;
  assert_int_equal(gm__thread_create(&stranger, "bias", be_a_stranger, &(int){1}, NULL), GM_OK);
  gm__thread_join(&stranger);
}

/* The sooner others come, the more it takes; up to a bound, and no more once they have stayed away for long. */
static void test_an_owner_must_earn_it(void **state) {
  (void)state;
  const uint64_t minute = UINT64_C(60000000000);
  int last = 0;
  gm__bias_init(&lock, GM__RANK_LEAF);
  be_home(&(int){0});
  for (int i = 0; i < 20 && gm__barrier_ready(); i++) {
    lock.since = gm__now_ns() + minute; /* however long the stranger takes to come */
    let_a_stranger_in();
    const int turns = turns_to_own(1 << 20);
    assert_true(turns > last || turns == (1 << 16) + 1);
    last = turns;
  }
  if (gm__barrier_ready()) {
    lock.since = gm__now_ns() - minute;
    let_a_stranger_in();
    assert_int_equal(turns_to_own(1 << 20), 65);
  }
  gm__bias_destroy(&lock);
}

static void test_the_home_thread_becomes_the_owner_again(void **state) {
  (void)state;
  gm__bias_init(&lock, GM__RANK_LEAF);
  assert_false(gm__bias_enter(&lock)); /* nobody's home yet */
  be_home(&(int){0});
  const void *self = gm__thread_self();
  if (gm__barrier_ready()) {
    assert_true(gm__bias_enter(&lock));
    gm__bias_lock_out(&lock);
  }
  let_a_stranger_in();
  assert_false(gm__bias_enter(&lock));
  for (int i = 0; i < 1000; i++) turn(self);
  if (gm__barrier_ready()) {
    assert_true(gm__bias_enter(&lock));
    gm__bias_lock_out(&lock);
  }
  gm__bias_destroy(&lock);
}

/* A scheduler runs threads of the highest priority first, on one processor. The owner runs on only while the thread
 * that waits for it sleeps. A wait that yields the processor, or spins, would never end. */
int __real_nanosleep(const struct timespec *time, struct timespec *left);
int __wrap_nanosleep(const struct timespec *time, struct timespec *left);
int __real_sched_yield(void);
int __wrap_sched_yield(void);
static _Atomic bool owner_is_held_up;
static _Atomic int sleeps, yields;

int __wrap_nanosleep(const struct timespec *time, struct timespec *left) {
  if (!atomic_load(&owner_is_held_up)) return __real_nanosleep(time, left);
  assert_true(time->tv_sec == 0 && time->tv_nsec <= 1000000); /* longer would be late */
  atomic_fetch_add(&sleeps, 1);
  atomic_store(&owner_is_held_up, false);
  atomic_store(&lock.busy, 0);
  return 0;
}

/* A sleeper needs an unknown time to wake up: whoever yields to it is played as one that waits so long. */
static _Atomic bool yield_waits;
static _Atomic int guests;

int __wrap_sched_yield(void) {
  while (atomic_load(&yield_waits) && !atomic_load(&guests)) {}
  if (atomic_load(&owner_is_held_up) && atomic_fetch_add(&yields, 1) > 100000) {
    fprintf(stderr, "the wait for an owner that is held up does not sleep\n");
    _exit(1);
  }
  return __real_sched_yield();
}

static void test_who_waits_for_the_owner_lets_it_run(void **state) {
  (void)state;
  if (!gm__barrier_ready()) return; /* then there is no owner */
  gm__bias_init(&lock, GM__RANK_LEAF);
  counter = 0;
  be_home(&(int){0});
  assert_true(gm__bias_enter(&lock));
  atomic_store(&owner_is_held_up, true);
  let_a_stranger_in(); /* the stranger's sleep is the owner's time to leave the lock */
  assert_int_equal(sleeps, 1);
  assert_int_equal(counter, 1);
  gm__rank_leave(lock.mutex.rank); /* of this thread, which has left the lock meanwhile */
  gm__bias_destroy(&lock);
}

static void live(void *argument) { *(gm__thread_life **)argument = gm__thread_life_take(); }

static void test_a_thread_leaves_a_sign_that_it_ended(void **state) {
  (void)state;
  gm__thread thread;
  gm__thread_life *own = gm__thread_life_take(), *other = NULL;
  assert_non_null(own);
  assert_int_equal(gm__thread_create(&thread, "life", live, &other, NULL), GM_OK);
  gm__thread_join(&thread);
  assert_non_null(other);
  assert_true(gm__thread_life_ended(other));
  assert_false(gm__thread_life_ended(own));
  gm__thread_life *again = gm__thread_life_take();
  assert_ptr_equal(own, again);
  gm__thread_life_give(again);
  gm__thread_life_give(own);
  gm__thread_life_give(other);
  gm__thread_life_give(NULL);
}

static void test_words_of_a_thread(void **state) {
  (void)state;
  int a, b;
  gm__here_keep(1000001, &a);
  gm__here_keep(1000002, &b);
  assert_ptr_equal(gm__here_find(1000001), &a);
  assert_ptr_equal(gm__here_find(1000002), &b);
  for (uint64_t key = 2000001; key < 2000001 + 16; key++) gm__here_keep(key, &a); /* pools of one thread */
  for (uint64_t key = 2000001; key < 2000001 + 16; key++) assert_ptr_equal(gm__here_find(key), &a);
  gm__here_keep(1000001, &a);
  assert_null(gm__here_find(1000001 + GM__HERE_SLOTS));
  gm__here_keep(1000001 + GM__HERE_SLOTS, &b); /* takes the place */
  assert_null(gm__here_find(1000001));
  assert_null(gm__here_find(0));
}

static void be_a_guest(void *unused) {
  (void)unused;
  gm__bias_lock_in(&lock, gm__thread_self());
  atomic_fetch_add(&guests, 1);
  gm__bias_lock_out(&lock);
}

static void test_a_sleeper_gets_in_between(void **state) {
  (void)state;
  gm__thread guest;
  gm__bias_init(&lock, GM__RANK_LEAF);
  be_home(&(int){0});
  gm__bias_lock_slow(&lock, gm__thread_self()); /* with the mutex, as after others have been here */
  atomic_store(&guests, 0);
  assert_int_equal(gm__thread_create(&guest, "bias", be_a_guest, NULL, NULL), GM_OK);
  while (!atomic_load(&lock.sleepers)) {}
  atomic_store(&yield_waits, true);
  gm__bias_breathe(&lock, gm__thread_self());
  atomic_store(&yield_waits, false);
  assert_int_equal(atomic_load(&guests), 1);
  gm__bias_lock_out(&lock);
  gm__thread_join(&guest);
  assert_int_equal(atomic_load(&lock.sleepers), 0);
  gm__bias_destroy(&lock);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_sleeper_gets_in_between),
      cmocka_unit_test(test_nobody_is_inside_with_another),
      cmocka_unit_test(test_the_home_thread_becomes_the_owner_again),
      cmocka_unit_test(test_an_owner_must_earn_it),
      cmocka_unit_test(test_who_waits_for_the_owner_lets_it_run),
      cmocka_unit_test(test_a_thread_leaves_a_sign_that_it_ended),
      cmocka_unit_test(test_words_of_a_thread),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

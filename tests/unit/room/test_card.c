/* A thread that waits for another one sleeps: the other one may have less priority and need the same processor. The
 * linker wraps the calls by which a thread waits. */
#include "core/room/card.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static gm__card card;
static int slept;

void __wrap_gm__sleep_ns(uint64_t ns);
void __wrap_gm__thread_yield(void);

/* Meanwhile the other thread gets on: at the third time it is done. */
void __wrap_gm__sleep_ns(uint64_t ns) {
  assert_true(ns > 0);
  if (++slept == 3) atomic_store(&card.state, 2);
}

/* With SCHED_FIFO nobody of less priority runs then. */
void __wrap_gm__thread_yield(void) { fail_msg("a thread yields instead of sleeping"); }

static void test_who_waits_sleeps(void **state) {
  (void)state;
  gm__card_prepare(&card);
  assert_int_equal(atomic_load(&card.state), 2);
  gm__card_prepare(&card);
  assert_int_equal(slept, 0);
  gm__mutex_destroy(&card.lock);
  atomic_store(&card.state, 1); /* another thread makes it */
  gm__card_prepare(&card);
  assert_int_equal(slept, 3);
}

static void test_used_bytes_are_found_again(void **state) {
  (void)state;
  gm__card *a = gm__card_of(7), *b = gm__card_of(8);
  assert_ptr_equal(gm__card_of(7), a);
  assert_ptr_not_equal(a, b);
  gm__card_add(a, 10, false);
  gm__card_add(a, 4, true);
  assert_int_equal(gm__card_used(a), 10);
  assert_int_equal(gm__card_pooled(a), 4);
  gm__card_sub(a, 4, true);
  gm__card_sub(a, 10, false);
  for (uint64_t key = 100; key < 500; key++) assert_non_null(gm__card_of(key));
  assert_ptr_equal(gm__card_of(777777), gm__card_of(888888)); /* a full table shares its last place */
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_who_waits_sleeps),
      cmocka_unit_test(test_used_bytes_are_found_again),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

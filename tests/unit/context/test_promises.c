/* A thread that waits for another one sleeps: the other one may have less priority and need the same processor. The
 * linker wraps the calls by which a thread waits. */
#include "core/context/promises.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static gm__promises promises;
static int slept;

void __wrap_gm__sleep_ns(uint64_t ns);
void __wrap_gm__thread_yield(void);

/* Meanwhile the other thread gets on: at the third time it is done. */
void __wrap_gm__sleep_ns(uint64_t ns) {
  assert_true(ns > 0);
  if (++slept == 3) atomic_store(&promises.state, 2);
}

/* With SCHED_FIFO nobody of less priority runs then. */
void __wrap_gm__thread_yield(void) { fail_msg("a thread yields instead of sleeping"); }

static void test_who_waits_sleeps(void **state) {
  (void)state;
  gm__promises_prepare(&promises);
  assert_int_equal(atomic_load(&promises.state), 2);
  gm__promises_prepare(&promises);
  assert_int_equal(slept, 0);
  gm__mutex_destroy(&promises.lock);
  atomic_store(&promises.state, 1); /* another thread makes it */
  gm__promises_prepare(&promises);
  assert_int_equal(slept, 3);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_who_waits_sleeps)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Slots of driver events: a point that was given back has passed, once; the cache has a bound; host memory may fail. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/base/event_slots.h"
#include "support/counted_services.h"

typedef struct fixture {
  counted_services host;
  gm__event_slots slots;
} fixture;

static int begin(void **state) {
  static fixture f;
  counted_services_init(&f.host);
  gm__event_slots_init(&f.slots, &f.host.services);
  *state = &f;
  return 0;
}

static int end(void **state) {
  fixture *f = *state;
  gm__event_slots_clear(&f->slots);
  counted_services_check(&f->host);
  return 0;
}

static gm__event_slot *find(const gm__event_slot *slot, uint64_t use) {
  return gm__event_slot_find((uintptr_t)slot, use);
}

static void test_a_point_given_back_has_passed(void **state) {
  fixture *f = *state;
  int event;
  gm__event_slot *slot = gm__event_slots_take(&f->slots, true);
  const uint64_t use = atomic_load(&slot->use);
  slot->event = &event;
  assert_ptr_equal(find(slot, use), slot);
  assert_true(gm__event_slot_retire(slot, use));
  assert_null(find(slot, use));
  assert_false(gm__event_slot_retire(slot, use));
  assert_null(gm__event_slots_put(&f->slots, slot));
  gm__event_slot *again = gm__event_slots_take(&f->slots, true);
  assert_ptr_equal(again, slot);
  assert_ptr_equal(again->event, &event);
  assert_null(find(again, use));
  assert_ptr_equal(find(again, use + 1), again);
}

static void test_nothing_has_passed(void **state) {
  (void)state;
  assert_null(gm__event_slot_find(0, 0));
}

static void test_an_engines_event_is_let_go(void **state) {
  fixture *f = *state;
  int event;
  gm__event_slot *slot = gm__event_slots_take(&f->slots, false);
  slot->event = &event;
  slot->lent = true;
  assert_null(gm__event_slots_put(&f->slots, slot)); /* not to be destroyed */
  gm__event_slot *again = gm__event_slots_take(&f->slots, true);
  assert_ptr_equal(again, slot);
  assert_null(again->event);
  assert_false(again->lent);
}

static void test_surplus_comes_out(void **state) {
  fixture *f = *state;
  enum { MANY = 65 };
  gm__event_slot *taken[MANY];
  char events[MANY];
  for (int i = 0; i < MANY; i++) {
    taken[i] = gm__event_slots_take(&f->slots, true);
    taken[i]->event = &events[i];
  }
  for (int i = 0; i < MANY - 1; i++) assert_null(gm__event_slots_put(&f->slots, taken[i]));
  assert_ptr_equal(gm__event_slots_put(&f->slots, taken[MANY - 1]), &events[MANY - 1]);
  assert_null(taken[MANY - 1]->event);
}

static void test_no_host_memory(void **state) {
  fixture *f = *state;
  f->host.fail_at = 1;
  assert_null(gm__event_slots_take(&f->slots, true));
  f->host.fail_at = 0;
  assert_non_null(gm__event_slots_take(&f->slots, true));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_a_point_given_back_has_passed, begin, end),
      cmocka_unit_test_setup_teardown(test_an_engines_event_is_let_go, begin, end),
      cmocka_unit_test_setup_teardown(test_surplus_comes_out, begin, end),
      cmocka_unit_test_setup_teardown(test_no_host_memory, begin, end),
      cmocka_unit_test(test_nothing_has_passed),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

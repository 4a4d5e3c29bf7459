/* Slots of driver events: a point that was given back has passed, once; the cache has a bound; host memory may fail. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "backends/shared/event_slots.h"
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

/* The event is nobody else's until the point and its copies were given back, in whatever order. */
static void test_a_copy_keeps_the_event(void **state) {
  fixture *f = *state;
  int event;
  bool passed = true;
  for (int copy_last = 0; copy_last < 2; copy_last++) {
    gm__event_slot *slot = gm__event_slots_take(&f->slots, true);
    slot->event = &event;
    const uint64_t use = atomic_load(&slot->use);
    gm__event_slot *copy = gm__event_slots_copy(&f->slots, slot, use, &passed);
    assert_non_null(copy);
    assert_false(passed);
    assert_ptr_equal(copy->event, &event);
    gm__event_slot *first = copy_last ? slot : copy, *last = copy_last ? copy : slot;
    assert_true(gm__event_slot_retire(first, atomic_load(&first->use)));
    assert_null(gm__event_slots_put(&f->slots, first));
    gm__event_slot *other = gm__event_slots_take(&f->slots, true);
    assert_null(other->event);
    assert_ptr_equal(last->event, &event);
    assert_true(gm__event_slot_retire(last, atomic_load(&last->use)));
    assert_null(gm__event_slots_put(&f->slots, last));
    gm__event_slot *again = gm__event_slots_take(&f->slots, true);
    assert_ptr_equal(again->event, &event); /* the next point's now */
    again->lent = true;
    gm__event_slots_put(&f->slots, again);
    gm__event_slots_put(&f->slots, other);
  }
}

static void test_a_copy_of_what_was_given_back(void **state) {
  fixture *f = *state;
  bool passed = false;
  gm__event_slot *slot = gm__event_slots_take(&f->slots, true);
  const uint64_t use = atomic_load(&slot->use);
  assert_true(gm__event_slot_retire(slot, use));
  gm__event_slots_put(&f->slots, slot);
  assert_null(gm__event_slots_copy(&f->slots, slot, use, &passed));
  assert_true(passed);
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
      cmocka_unit_test_setup_teardown(test_a_copy_keeps_the_event, begin, end),
      cmocka_unit_test_setup_teardown(test_a_copy_of_what_was_given_back, begin, end),
      cmocka_unit_test_setup_teardown(test_no_host_memory, begin, end),
      cmocka_unit_test(test_nothing_has_passed),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

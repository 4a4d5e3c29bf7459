/* Growing arrays and the sort of the model reader. */
#include "core/model/model_memory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "support/counted_services.h"

typedef struct counted_keys {
  const uint32_t *keys;
  uint64_t *compares;
} counted_keys;

static int compare_keys(const void *items, uint32_t a, uint32_t b) {
  const counted_keys *keys = items;
  (*keys->compares)++;
  return (keys->keys[a] > keys->keys[b]) - (keys->keys[a] < keys->keys[b]);
}

static void check_order(uint32_t *keys, uint32_t count) {
  uint64_t compares = 0;
  uint32_t *order = NULL;
  counted_keys items = {keys, &compares};
  assert_int_equal(gm__model_order(NULL, &items, count, compare_keys, &order, NULL), GM_OK);
  for (uint32_t i = 1; i < count; i++) {
    assert_true(keys[order[i - 1]] <= keys[order[i]]);
    if (keys[order[i - 1]] == keys[order[i]]) assert_true(order[i - 1] < order[i]); /* stable, so a permutation */
  }
  assert_true(compares <= (uint64_t)count * 11); /* log2 of the largest count here, rounded up */
  gm__model_release(NULL, order, count, sizeof *order);
}

static void test_orders_are_sorted_stable_and_not_quadratic(void **state) {
  (void)state;
  static uint32_t keys[1025];
  for (uint32_t count = 0; count <= 1025; count = count < 20 ? count + 1 : count * 2 - 15) {
    uint32_t random = 12345;
    for (uint32_t i = 0; i < count; i++) {
      random = random * 1664525 + 1013904223;
      keys[i] = random >> 25;
    }
    check_order(keys, count);
    for (uint32_t i = 0; i < count; i++) keys[i] = i;
    check_order(keys, count);
    for (uint32_t i = 0; i < count; i++) keys[i] = count - i;
    check_order(keys, count);
    for (uint32_t i = 0; i < count; i++) keys[i] = 7;
    check_order(keys, count);
  }
}

static void test_nothing_is_sorted_into_nothing(void **state) {
  (void)state;
  uint32_t *order = (uint32_t *)&order;
  assert_int_equal(gm__model_order(NULL, NULL, 0, compare_keys, &order, NULL), GM_OK);
  assert_null(order);
}

static void test_growing_keeps_what_is_there(void **state) {
  (void)state;
  counted_services counted;
  counted_services_init(&counted);
  uint64_t *items = NULL, capacity = 0;
  for (uint64_t i = 0; i < 1000; i++) {
    assert_int_equal(gm__model_grow(&counted.services, &items, &capacity, i, sizeof *items, NULL), GM_OK);
    items[i] = i * i;
  }
  for (uint64_t i = 0; i < 1000; i++) assert_int_equal(items[i], i * i);
  assert_int_equal(capacity, 1024);
  assert_true(counted.calls < 10);
  gm__model_release(&counted.services, items, capacity, sizeof *items);
  counted_services_check(&counted);
}

static void test_failed_growth_changes_nothing(void **state) {
  (void)state;
  counted_services counted;
  counted_services_init(&counted);
  counted.fail_at = 2;
  counted.fail_count = 1;
  uint64_t *items = NULL, capacity = 0;
  gm_error err;
  assert_int_equal(gm__model_grow(&counted.services, &items, &capacity, 0, sizeof *items, &err), GM_OK);
  uint64_t *before = items;
  assert_int_equal(gm__model_grow(&counted.services, &items, &capacity, 16, sizeof *items, &err),
                   GM_ERR_OUT_OF_HOST_MEMORY);
  assert_string_equal(err.message, "no host memory for 32 items of 8 bytes");
  assert_ptr_equal(items, before);
  assert_int_equal(capacity, 16);
  gm__model_release(&counted.services, items, capacity, sizeof *items);
  counted_services_check(&counted);
}

static void test_sizes_that_overflow_are_refused(void **state) {
  (void)state;
  void *out = NULL;
  assert_int_equal(gm__model_alloc(NULL, UINT64_MAX / 4, 8, &out, NULL), GM_ERR_OUT_OF_HOST_MEMORY);
  assert_null(out);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_orders_are_sorted_stable_and_not_quadratic),
      cmocka_unit_test(test_nothing_is_sorted_into_nothing),
      cmocka_unit_test(test_growing_keeps_what_is_there),
      cmocka_unit_test(test_failed_growth_changes_nothing),
      cmocka_unit_test(test_sizes_that_overflow_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

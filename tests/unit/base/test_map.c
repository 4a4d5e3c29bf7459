/* The hash map against a plain array, with colliding keys, and with a host that runs out of memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/base/map.h"
#include "support/counted_services.h"

/* xorshift64*: the same sequence everywhere. */
static uint64_t random_next(uint64_t *seed) {
  *seed ^= *seed >> 12;
  *seed ^= *seed << 25;
  *seed ^= *seed >> 27;
  return *seed * UINT64_C(2685821657736338717);
}

enum { MODEL_KEYS = 300 };

typedef struct model {
  bool present[MODEL_KEYS];
  uint64_t value[MODEL_KEYS];
  size_t count;
} model;

/* Key 0, page-like addresses, and the largest keys. */
static uint64_t model_key(size_t i) {
  if (i < 100) return i << 12;
  if (i < 200) return UINT64_MAX - i;
  return UINT64_C(0x7f0000000000) + ((uint64_t)i << 21);
}

static void model_compare(const model *m, const gm__map *map) {
  assert_int_equal(map->count, m->count);
  for (size_t i = 0; i < MODEL_KEYS; i++) {
    uint64_t value = 0;
    assert_int_equal(gm__map_find(map, model_key(i), &value), m->present[i]);
    if (m->present[i]) assert_true(value == m->value[i]);
  }
}

static void model_compare_iteration(const model *m, const gm__map *map) {
  size_t cursor = 0, seen = 0;
  uint64_t key, value, sum = 0, expected = 0;
  while (gm__map_next(map, &cursor, &key, &value)) {
    uint64_t found = ~value;
    assert_true(gm__map_find(map, key, &found) && found == value);
    sum += key ^ value;
    seen++;
  }
  assert_false(gm__map_next(map, &cursor, &key, &value));
  for (size_t i = 0; i < MODEL_KEYS; i++) expected += m->present[i] ? model_key(i) ^ m->value[i] : 0;
  assert_int_equal(seen, m->count);
  assert_true(sum == expected);
}

static void model_insert(model *m, gm__map *map, size_t i, uint64_t value) {
  assert_int_equal(gm__map_insert(map, model_key(i), value), GM_OK);
  m->count += !m->present[i];
  m->present[i] = true;
  m->value[i] = value;
}

static void model_remove(model *m, gm__map *map, size_t i) {
  uint64_t value = 0;
  assert_int_equal(gm__map_remove(map, model_key(i), &value), m->present[i]);
  if (!m->present[i]) return;
  assert_true(value == m->value[i]);
  m->present[i] = false;
  m->count--;
}

static void test_random_operations_match_an_array(void **state) {
  (void)state;
  counted_services host;
  counted_services_init(&host);
  gm__map map;
  gm__map_init(&map, &host.services);
  model m = {0};
  uint64_t seed = 0x9e3779b97f4a7c15;
  for (int step = 0; step < 40000; step++) {
    uint64_t dice = random_next(&seed);
    size_t i = (size_t)(dice >> 32) % MODEL_KEYS;
    /* Phases that mostly fill and mostly empty it, so that all loads are met. */
    if (dice % 10 < (step / 2000 % 2 ? 3u : 7u)) {
      model_insert(&m, &map, i, dice);
    } else {
      model_remove(&m, &map, i);
    }
    if (step % 500 == 0) {
      model_compare(&m, &map);
      model_compare_iteration(&m, &map);
    }
  }
  model_compare(&m, &map);
  gm__map_clear(&map);
  assert_int_equal(map.count, 0);
  counted_services_check(&host);
}

/* map.c's hash is a bijection; running it backwards gives keys whose home is any slot one wants. */
static uint64_t key_with_hash(uint64_t hash) {
  uint64_t key = hash;
  key ^= key >> 33;
  key *= UINT64_C(0x9cb4b2f8129337db);
  key ^= key >> 33;
  key *= UINT64_C(0x4f74430c22a54005);
  return key ^ key >> 33;
}

static void test_colliding_keys_around_the_end_of_the_table(void **state) {
  (void)state;
  for (uint64_t home = 12; home < 20; home++) {
    gm__map map;
    gm__map_init(&map, NULL);
    /* 12 keys of 16 slots in one run that wraps; two homes, mixed. */
    for (uint64_t i = 0; i < 12; i++) {
      uint64_t key = key_with_hash(((i + 1) << 32) | ((home + i % 2) & 15));
      assert_int_equal(gm__map_insert(&map, key, i), GM_OK);
    }
    assert_int_equal(map.capacity, 16);
    for (uint64_t gone = 0; gone < 12; gone++) {
      uint64_t victim = gone * 5 % 12;
      assert_true(gm__map_remove(&map, key_with_hash(((victim + 1) << 32) | ((home + victim % 2) & 15)), NULL));
      for (uint64_t later = gone + 1; later < 12; later++) {
        uint64_t i = later * 5 % 12, value = 99;
        assert_true(gm__map_find(&map, key_with_hash(((i + 1) << 32) | ((home + i % 2) & 15)), &value));
        assert_int_equal(value, i);
      }
    }
    assert_int_equal(map.count, 0);
    gm__map_clear(&map);
  }
}

static void test_an_empty_map(void **state) {
  (void)state;
  counted_services host;
  counted_services_init(&host);
  gm__map map;
  gm__map_init(&map, &host.services);
  uint64_t value = 77;
  size_t cursor = 0;
  assert_false(gm__map_find(&map, 0, &value));
  assert_false(gm__map_find(&map, 5, &value));
  assert_false(gm__map_remove(&map, 0, &value));
  assert_false(gm__map_remove(&map, 5, &value));
  assert_false(gm__map_next(&map, &cursor, &value, &value));
  assert_int_equal(value, 77);
  gm__map_clear(&map);
  assert_int_equal(host.calls, 0);
}

static void test_key_zero_needs_no_memory(void **state) {
  (void)state;
  counted_services host;
  counted_services_init(&host);
  host.fail_at = 1;
  gm__map map;
  gm__map_init(&map, &host.services);
  uint64_t key = 9, value = 9;
  size_t cursor = 0;
  assert_int_equal(gm__map_insert(&map, 0, 1), GM_OK);
  assert_int_equal(gm__map_insert(&map, 0, 2), GM_OK);
  assert_int_equal(map.count, 1);
  assert_true(gm__map_next(&map, &cursor, &key, &value));
  assert_int_equal(key, 0);
  assert_int_equal(value, 2);
  assert_false(gm__map_next(&map, &cursor, &key, &value));
  assert_true(gm__map_remove(&map, 0, NULL));
  assert_false(gm__map_find(&map, 0, NULL));
  assert_int_equal(map.count, 0);
}

static void test_replacing_changes_value_not_count(void **state) {
  (void)state;
  gm__map map;
  gm__map_init(&map, NULL);
  uint64_t value = 0;
  assert_int_equal(gm__map_insert(&map, 7, 1), GM_OK);
  assert_int_equal(gm__map_insert(&map, 7, 2), GM_OK);
  assert_int_equal(map.count, 1);
  assert_true(gm__map_find(&map, 7, &value));
  assert_int_equal(value, 2);
  gm__map_clear(&map);
}

/* Inserts until the n-th request fails; what was there must still be. */
static bool fail_insert(size_t n) {
  counted_services host;
  counted_services_init(&host);
  host.fail_at = n;
  gm__map map;
  gm__map_init(&map, &host.services);
  uint64_t there = 0;
  gm_status status = GM_OK;
  while (there < 200 && status == GM_OK) {
    status = gm__map_insert(&map, there + 1, 3);
    there += status == GM_OK;
  }
  bool failed = status != GM_OK;
  if (failed) assert_int_equal(status, GM_ERR_OUT_OF_HOST_MEMORY);
  assert_int_equal(map.count, there);
  if (there) assert_int_equal(gm__map_insert(&map, there, 5), GM_OK);
  for (uint64_t i = 1; i <= there; i++) assert_true(gm__map_find(&map, i, NULL));
  assert_false(gm__map_find(&map, there + 1, NULL));
  gm__map_clear(&map);
  counted_services_check(&host);
  return failed;
}

static void test_every_request_may_fail(void **state) {
  (void)state;
  size_t n = 1;
  while (fail_insert(n)) n++;
  assert_true(n > 3);
}

static void test_reserved_room_needs_no_more_memory(void **state) {
  (void)state;
  counted_services host;
  counted_services_init(&host);
  gm__map map;
  gm__map_init(&map, &host.services);
  assert_int_equal(gm__map_reserve(&map, 1000), GM_OK);
  host.fail_at = 1;
  for (uint64_t i = 0; i < 1000; i++) assert_int_equal(gm__map_insert(&map, i, i), GM_OK);
  assert_int_equal(gm__map_reserve(&map, 10), GM_OK);
  assert_int_equal(gm__map_reserve(&map, SIZE_MAX), GM_ERR_OUT_OF_HOST_MEMORY);
  assert_int_equal(gm__map_reserve(&map, SIZE_MAX / 32), GM_ERR_OUT_OF_HOST_MEMORY);
  assert_int_equal(map.count, 1000);
  gm__map_clear(&map);
  counted_services_check(&host);
}

static size_t slots_used(const gm__map *map) {
  size_t used = 0;
  for (size_t i = 0; i < map->capacity; i++) used += map->slots[i].key != 0;
  return used;
}

/* However many entries there are, an insertion moves a few of them. All are there meanwhile, and each is given once. */
static void test_a_map_grows_by_a_few_entries(void **state) {
  (void)state;
  enum { KEYS = 4000, MOST = 64 }; /* 16 slots go over with an insertion; some are the home of several entries */
  gm__map map;
  gm__map_init(&map, NULL);
  size_t between = 0;
  for (uint64_t key = 1; key <= KEYS; key++) {
    const size_t used = slots_used(&map), capacity = map.capacity;
    assert_int_equal(gm__map_insert(&map, key * 4096, key), GM_OK);
    assert_true(slots_used(&map) <= (map.capacity == capacity ? used : 0) + MOST + 1);
    if (!map.old_slots) continue;
    uint64_t value = 0, other = between * 7919 % key + 1, seen = 0;
    size_t cursor = 0;
    between++;
    assert_true(gm__map_find(&map, other * 4096, &value) && value == other);
    if (between % 16 == 0) {
      for (uint64_t k; gm__map_next(&map, &cursor, &k, &value);) seen += k == value * 4096;
      assert_int_equal(seen, key);
    }
    assert_true(gm__map_remove(&map, other * 4096, &value) && value == other);
    assert_false(gm__map_find(&map, other * 4096, NULL));
    assert_int_equal(gm__map_insert(&map, other * 4096, other), GM_OK);
    assert_int_equal(map.count, key);
  }
  assert_true(between > 200);
  gm__map_clear(&map);
}

/* Room that is reserved while entries still go over to a larger table. */
static void test_room_is_reserved_while_a_map_grows(void **state) {
  (void)state;
  counted_services host;
  counted_services_init(&host);
  gm__map map;
  gm__map_init(&map, &host.services);
  uint64_t key = 1;
  for (; key < 1000 || !map.old_slots; key++) assert_int_equal(gm__map_insert(&map, key, key), GM_OK);
  host.fail_at = atomic_load(&host.calls) + 1;
  assert_int_equal(gm__map_reserve(&map, 50000), GM_ERR_OUT_OF_HOST_MEMORY);
  for (uint64_t i = 1; i < key; i++) assert_true(gm__map_find(&map, i, NULL));
  host.fail_at = 0;
  assert_int_equal(gm__map_reserve(&map, 50000), GM_OK);
  host.fail_at = atomic_load(&host.calls) + 1;
  for (uint64_t i = 1; i <= 50000; i++) assert_int_equal(gm__map_insert(&map, i, 2 * i), GM_OK);
  assert_int_equal(map.count, 50000);
  for (uint64_t i = 1, value = 0; i <= 50000; i++) assert_true(gm__map_find(&map, i, &value) && value == 2 * i);
  gm__map_clear(&map);
  counted_services_check(&host);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_random_operations_match_an_array),
      cmocka_unit_test(test_colliding_keys_around_the_end_of_the_table),
      cmocka_unit_test(test_an_empty_map),
      cmocka_unit_test(test_key_zero_needs_no_memory),
      cmocka_unit_test(test_replacing_changes_value_not_count),
      cmocka_unit_test(test_every_request_may_fail),
      cmocka_unit_test(test_reserved_room_needs_no_more_memory),
      cmocka_unit_test(test_a_map_grows_by_a_few_entries),
      cmocka_unit_test(test_room_is_reserved_while_a_map_grows),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

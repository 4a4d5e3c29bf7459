/* The map of keys: held against a list, and to a bound of steps for each call. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/base/alloc.h"
#include "core/base/key_map.h"
#include "support/counted_services.h"
#include "support/random.h"

typedef struct thing {
  gm__key_entry head;
  bool there, seen;
} thing;

static size_t key_of(size_t id, char out[24]) { return (size_t)snprintf(out, 24, "key/%zu", id); }

static bool insert(gm__key_map *map, thing *entry, size_t id) {
  char key[24];
  const size_t bytes = key_of(id, key);
  if (!gm__key_map_prepare(map, &entry->head, key, bytes)) return false;
  gm__key_map_link(map, &entry->head);
  return entry->there = true;
}

static void test_it_is_its_model(void **state) {
  enum { KEYS = 5000, STEPS = 60000 };
  (void)state;
  static thing things[KEYS];
  counted_services counted;
  gm__key_map map;
  uint64_t seed = 3;
  size_t count = 0, cursor = 0;
  char key[24];
  counted_services_init(&counted);
  gm__key_map_init(&map, &counted.services);
  assert_null(gm__key_map_find(&map, "key", 3));
  assert_null(gm__key_map_next(&map, &cursor, NULL));
  for (int step = 0; step < STEPS; step++) {
    const size_t id = test_random(&seed) % KEYS;
    const size_t bytes = key_of(id, key);
    assert_ptr_equal(gm__key_map_find(&map, key, bytes), things[id].there ? &things[id].head : NULL);
    if (!things[id].there) {
      assert_true(insert(&map, &things[id], id));
      count++;
    } else if (test_random(&seed) % 3 == 0) {
      gm__key_map_remove(&map, &things[id].head);
      things[id].there = false;
      count--;
    }
    assert_int_equal(map.count, count);
  }
  cursor = 0;
  for (gm__key_entry *at = gm__key_map_next(&map, &cursor, NULL), *next; at; at = next) {
    thing *entry = (thing *)at;
    next = gm__key_map_next(&map, &cursor, at);
    assert_true(entry->there && !entry->seen);
    entry->seen = true;
    count--;
    gm__key_map_remove(&map, at);
  }
  assert_int_equal(count, 0);
  gm__key_map_clear(&map);
  counted_services_check(&counted);
}

static size_t chain(const gm__key_map *map, size_t place) {
  size_t length = 0;
  for (const gm__key_entry *at = *(gm__key_entry **)gm__places_at(&map->places, place); at; at = at->next) length++;
  return length;
}

/* With each entry one place comes at most, and one list alone gives entries to it. All lists are short, so no call
 * takes many steps; and no call asks for much memory. */
static void test_no_call_takes_many_steps(void **state) {
  enum { KEYS = 300000, LONGEST = 24, MEMORY = GM__PLACES_CHUNK * 8 + 20000 };
  (void)state;
  counted_services counted;
  gm__key_map map;
  counted_services_init(&counted);
  gm__key_map_init(&map, &counted.services);
  thing *things = calloc(KEYS, sizeof *things);
  assert_non_null(things);
  size_t longest = 0;
  for (size_t i = 0; i < KEYS; i++) {
    const size_t places = map.places.count, bytes = atomic_load(&counted.live_bytes);
    const size_t splits = places ? chain(&map, places & map.places.mask >> (places <= map.places.mask)) : 0;
    assert_true(insert(&map, &things[i], i));
    assert_true(map.places.count <= (places ? places + 1 : GM__PLACES_LEAST));
    assert_true(atomic_load(&counted.live_bytes) - bytes <= MEMORY);
    if (splits > longest) longest = splits;
  }
  assert_in_range(longest, 1, LONGEST);
  for (size_t i = 0; i < map.places.count; i++) {
    const size_t length = chain(&map, i);
    if (length > longest) longest = length;
  }
  assert_in_range(longest, 1, LONGEST);
  assert_true(map.places.count >= KEYS);
  for (size_t i = 0; i < KEYS; i++) gm__key_map_remove(&map, &things[i].head);
  gm__key_map_clear(&map);
  free(things);
  counted_services_check(&counted);
}

/* Whichever request for memory fails, the map stays what it was. */
static void test_no_memory(void **state) {
  enum { KEYS = 2000 };
  (void)state;
  static thing things[KEYS];
  counted_services counted;
  gm__key_map map;
  uint64_t seed = 9;
  char key[24];
  size_t failed = 0;
  counted_services_init(&counted);
  gm__key_map_init(&map, &counted.services);
  for (size_t i = 0; i < KEYS; i++) {
    atomic_store(&counted.calls, 0);
    counted.fail_at = test_random(&seed) % 4;
    counted.fail_count = 1;
    while (!insert(&map, &things[i], i)) {
      failed++;
      assert_int_equal(map.count, i);
      counted.fail_at = 0;
    }
    counted.fail_at = 0;
    for (size_t at = i > 20 ? i - 20 : 0; at <= i; at++) {
      assert_ptr_equal(gm__key_map_find(&map, key, key_of(at, key)), &things[at].head);
    }
  }
  assert_true(failed > KEYS / 8);
  for (size_t i = 0; i < KEYS; i++) gm__key_map_remove(&map, &things[i].head);
  gm__key_map_clear(&map);
  counted_services_check(&counted);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_it_is_its_model),
                                     cmocka_unit_test(test_no_call_takes_many_steps), cmocka_unit_test(test_no_memory)};
  return cmocka_run_group_tests_name("key_map", tests, NULL, NULL);
}

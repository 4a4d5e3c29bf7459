/* Spans, bins and the look-up by address, against plain models. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/algo/address_index.h"
#include "core/algo/tlsf_search.h"
#include "support/counted_services.h"
#include "support/random.h"

enum { GRANULE = 256, ALL = 1 << 16 };

typedef struct world {
  counted_services host;
  gm__chunks spans;
  gm__tlsf heap;
  uint32_t edge;
} world;

static uint32_t reserve_and_take(world *w) {
  assert_true(gm__chunks_reserve(&w->spans, 1));
  return gm__chunks_pop(&w->spans);
}

static gm__chunk *at(const world *w, uint32_t number) { return gm__chunk_at(&w->spans, number); }

/* One hole of `granules` at `address`. */
static uint32_t open_world(world *w, uint64_t address, uint32_t granules) {
  memset(w, 0, sizeof *w);
  counted_services_init(&w->host);
  assert_true(gm__chunks_init(&w->spans, &w->host.services, 7));
  w->edge = reserve_and_take(w);
  const uint32_t hole = reserve_and_take(w);
  at(w, w->edge)->state = GM__CHUNK_EDGE;
  at(w, w->edge)->granules = 0;
  at(w, hole)->address = address;
  at(w, hole)->granules = granules;
  at(w, hole)->state = GM__CHUNK_FREE;
  gm__chunk_insert(&w->spans, w->edge, hole, 0);
  gm__tlsf_put(&w->spans, &w->heap, hole);
  return hole;
}

static void close_world(world *w) {
  gm__chunks_clear(&w->spans);
  counted_services_check(&w->host);
}

static void test_a_bin_is_a_part_of_a_power_of_two(void **state) {
  (void)state;
  uint32_t last = 0;
  for (uint32_t granules = 1; granules < 1 << 20; granules++) {
    const uint32_t bin = gm__tlsf_bin(granules);
    assert_true(bin == last || bin == last + 1);
    last = bin;
  }
  for (uint32_t power = 6; power < 32; power++) {
    assert_int_equal(gm__tlsf_bin(UINT32_C(1) << power), (power - 5) * 64);
    assert_int_equal(gm__tlsf_bin((UINT32_C(1) << power) + (UINT32_C(1) << (power - 6))), (power - 5) * 64 + 1);
  }
  assert_int_equal(gm__tlsf_bin(UINT32_MAX), GM__TLSF_BINS - 1);
}

/* The memory, walked from the edge: pieces tile it, and every hole is found in its bin. */
static void check_world(const world *w, uint64_t address, uint32_t granules) {
  uint32_t left = w->edge, total = 0, holes = 0, listed = 0;
  for (uint32_t number = at(w, left)->right; number; number = at(w, number)->right) {
    const gm__chunk *span = at(w, number);
    assert_int_equal(span->left, left);
    assert_int_equal(span->address, address + (uint64_t)total * GRANULE);
    assert_true(span->granules > 0);
    total += span->granules;
    holes += span->state == GM__CHUNK_FREE;
    left = number;
  }
  assert_int_equal(total, granules);
  for (uint32_t bin = gm__tlsf_next(&w->heap, 0); bin < GM__TLSF_BINS; bin = gm__tlsf_next_after(&w->heap, bin)) {
    uint32_t prev = 0;
    assert_int_not_equal(w->heap.heads[bin], 0);
    for (uint32_t number = w->heap.heads[bin]; number; number = at(w, number)->next) {
      assert_int_equal(at(w, number)->prev, prev);
      assert_int_equal(gm__tlsf_bin(at(w, number)->granules), bin);
      assert_int_equal(at(w, number)->state, GM__CHUNK_FREE);
      listed++;
      prev = number;
    }
  }
  assert_int_equal(listed, holes);
}

static gm__tlsf_wish wish_of(uint32_t granules, uint64_t align) {
  return (gm__tlsf_wish){.granules = granules, .align = align, .granule = GRANULE};
}

static uint32_t search(const world *w, uint32_t granules, uint64_t align) {
  const gm__tlsf_wish wish = wish_of(granules, align);
  return gm__tlsf_search(&w->spans, &w->heap, &wish);
}

/* The smallest hole that fits; 0: none. */
static uint32_t best_by_hand(const world *w, uint32_t granules, uint64_t align) {
  const gm__tlsf_wish wish = wish_of(granules, align);
  uint32_t best = 0;
  for (uint32_t number = at(w, w->edge)->right; number; number = at(w, number)->right) {
    if (at(w, number)->state != GM__CHUNK_FREE || !gm__tlsf_serves(&wish, at(w, number))) continue;
    if (!best || at(w, number)->granules < at(w, best)->granules) best = number;
  }
  return best;
}

static uint32_t cut(world *w, uint32_t hole, uint32_t granules) {
  uint32_t front = hole;
  if (at(w, hole)->granules == granules) {
    gm__tlsf_take(&w->spans, &w->heap, hole);
  } else {
    front = reserve_and_take(w);
    gm__tlsf_cut(&w->spans, &w->heap, hole, granules, (uint64_t)granules * GRANULE, front);
  }
  at(w, front)->state = GM__CHUNK_LIVE;
  return front;
}

static void test_random_cuts_and_holes(void **state) {
  (void)state;
  enum { LIVE = 200 };
  uint64_t random = 3;
  world w;
  uint32_t live[LIVE] = {0}, found_late = 0;
  open_world(&w, 1 << 20, ALL);
  for (int i = 0; i < 20000; i++) {
    uint32_t *place = &live[test_random(&random) % LIVE];
    if (*place) {
      at(&w, *place)->state = GM__CHUNK_FREE;
      gm__tlsf_put(&w.spans, &w.heap, *place);
      *place = 0;
    } else {
      const uint32_t granules = (uint32_t)test_log_uniform(&random, 600);
      const uint32_t hole = gm__tlsf_find(&w.spans, &w.heap, granules), best = best_by_hand(&w, granules, GRANULE);
      const uint32_t sure = search(&w, granules, GRANULE);
      assert_int_equal(sure != 0, best != 0);
      found_late += sure && !hole;
      if (!sure) continue;
      assert_true(at(&w, sure)->granules >= granules);
      if (hole) assert_true(at(&w, hole)->granules >= granules);
      *place = cut(&w, hole ? hole : sure, granules);
      assert_int_equal(at(&w, *place)->granules, granules);
    }
    if (i % 500 == 0) check_world(&w, 1 << 20, ALL);
  }
  check_world(&w, 1 << 20, ALL);
  assert_true(found_late < 1000);
  close_world(&w);
}

static void test_any_alignment_is_found(void **state) {
  (void)state;
  world w;
  open_world(&w, 4096 + 256, 1000);
  for (uint32_t shift = 8; shift < 18; shift++) {
    const uint64_t align = UINT64_C(1) << shift;
    const uint32_t found = search(&w, 10, align), best = best_by_hand(&w, 10, align);
    assert_int_equal(found, best);
    if (found) assert_true((at(&w, found)->address + gm__chunk_pad(at(&w, found), align)) % align == 0);
  }
  assert_int_equal(search(&w, 10, 1 << 20), 0);
  assert_int_equal(search(&w, 1001, GRANULE), 0);
  close_world(&w);
}

static bool is_behind(const gm__tlsf_wish *wish, const gm__chunk *chunk) {
  return chunk->address > *(const uint64_t *)wish->user;
}

/* Holes that suit are found behind any number that do not. */
static void test_a_search_takes_what_suits(void **state) {
  (void)state;
  enum { HOLES = 300 };
  uint32_t parts[2 * HOLES];
  world w;
  const uint32_t hole = open_world(&w, 4096, 20 * HOLES);
  for (int i = 0; i < 2 * HOLES; i++) parts[i] = cut(&w, hole, 10);
  for (int i = 2 * HOLES - 2; i >= 0; i -= 2) {
    at(&w, parts[i])->state = GM__CHUNK_FREE;
    gm__tlsf_put(&w.spans, &w.heap, parts[i]);
  }
  const uint64_t border = at(&w, parts[2 * HOLES - 4])->address;
  const uint64_t end = UINT64_MAX;
  gm__tlsf_wish wish = wish_of(10, GRANULE);
  wish.suits = is_behind;
  wish.user = &border;
  assert_int_equal(gm__tlsf_search(&w.spans, &w.heap, &wish), parts[2 * HOLES - 2]);
  wish.user = &end;
  assert_int_equal(gm__tlsf_search(&w.spans, &w.heap, &wish), 0);
  close_world(&w);
}

static void test_a_drain_takes_all(void **state) {
  (void)state;
  world w;
  const uint32_t hole = open_world(&w, 0, 1000);
  for (uint32_t i = 1; i < 10; i++) cut(&w, hole, i);
  for (uint32_t number = at(&w, w.edge)->right; number != hole; number = at(&w, number)->right) {
    at(&w, number)->state = GM__CHUNK_FREE;
    gm__tlsf_put(&w.spans, &w.heap, number);
  }
  uint32_t count = 0;
  for (uint32_t number = gm__tlsf_drain(&w.spans, &w.heap); number; number = at(&w, number)->next) count++;
  assert_int_equal(count, 10);
  assert_int_equal(gm__tlsf_drain(&w.spans, &w.heap), 0);
  close_world(&w);
}

static void test_spans_end_where_they_must(void **state) {
  (void)state;
  world w;
  open_world(&w, 0, 1);
  w.host.fail_at = atomic_load(&w.host.calls) + 1;
  const uint32_t left = w.spans.unused_count;
  for (uint32_t i = 0; i < left; i++) {
    const uint32_t number = reserve_and_take(&w);
    assert_int_not_equal(number, 0);
    assert_int_equal(at(&w, number)->check, 7);
  }
  assert_false(gm__chunks_reserve(&w.spans, 1));
  w.host.fail_at = 0;
  assert_true(gm__chunks_reserve(&w.spans, 2));
  close_world(&w);
  w.host.fail_at = atomic_load(&w.host.calls) + 1;
  assert_false(gm__chunks_init(&w.spans, &w.host.services, 0));
  counted_services_check(&w.host);
}

static uint64_t address_anywhere(uint64_t random, uint32_t i) { return (random << 20 | i) << 8; }

/* The address whose product with the hash's factor that is: its high bits are its place in the table. */
static uint64_t address_of_product(uint64_t product) {
  const uint64_t factor = UINT64_C(0x9e3779b97f4a7c15);
  uint64_t inverse = factor;
  for (int turn = 0; turn < 6; turn++) inverse *= 2 - factor * inverse;
  return product * inverse;
}

/* All in one place, whatever the table's size. */
static uint64_t address_of_one_place(uint64_t random, uint32_t i) {
  return address_of_product(UINT64_C(0xfffc) << 48 | (random << 32 >> 16) | i);
}

/* In seven places of 4096, one beside the other. */
static uint64_t address_of_few_places(uint64_t random, uint32_t i) {
  return address_of_product((UINT64_C(0xff0) + i % 7) << 52 | (random << 32 >> 16) | i);
}

static void addresses_are_looked_up(uint64_t (*address_of)(uint64_t random, uint32_t i), uint32_t count, int turns) {
  enum { COUNT = 3000 };
  world w;
  gm__lookup lookup;
  uint64_t random = 11;
  bool there[COUNT] = {false};
  uint32_t numbers[COUNT];
  open_world(&w, 0, 1);
  gm__lookup_init(&lookup);
  for (uint32_t i = 0; i < count; i++) {
    numbers[i] = reserve_and_take(&w);
    at(&w, numbers[i])->address = address_of(test_random(&random), i);
  }
  assert_int_equal(gm__lookup_find(&lookup, &w.spans, 256), 0);
  for (int turn = 0; turn < turns; turn++) {
    const uint32_t i = (uint32_t)(test_random(&random) % count);
    const uint64_t address = at(&w, numbers[i])->address;
    assert_int_equal(gm__lookup_find(&lookup, &w.spans, address), there[i] ? numbers[i] : 0);
    if (there[i]) {
      gm__lookup_remove(&lookup, &w.spans, numbers[i]);
    } else {
      assert_true(gm__lookup_reserve(&lookup, &w.spans));
      gm__lookup_insert(&lookup, &w.spans, numbers[i]);
    }
    there[i] = !there[i];
  }
  for (uint32_t i = 0; i < count; i++) {
    assert_int_equal(gm__lookup_find(&lookup, &w.spans, at(&w, numbers[i])->address), there[i] ? numbers[i] : 0);
  }
  gm__lookup_clear(&lookup, &w.host.services);
  close_world(&w);
}

static void test_addresses_are_looked_up(void **state) {
  (void)state;
  addresses_are_looked_up(address_anywhere, 3000, 40000);
}

/* More than a slot can count the steps of; the last places go on at the first. */
static void test_addresses_of_one_place_are_looked_up(void **state) {
  (void)state;
  addresses_are_looked_up(address_of_one_place, 900, 8000);
  addresses_are_looked_up(address_of_few_places, 900, 8000);
}

/* The number of the span that contains the granule, looked for by hand; 0: none that is in the table. */
static uint32_t inside_by_hand(world *w, const uint32_t *numbers, const bool *there, uint32_t count, uint64_t granule) {
  for (uint32_t i = 0; i < count; i++) {
    const uint64_t first = at(w, numbers[i])->address / GRANULE;
    if (there[i] && granule >= first && granule - first < at(w, numbers[i])->granules) return numbers[i];
  }
  return 0;
}

static void test_any_address_inside_is_looked_up(void **state) {
  (void)state;
  enum { COUNT = 1200, GAP = 3 };
  world w;
  gm__lookup lookup;
  uint64_t random = 12, first = 1;
  bool there[COUNT] = {false};
  uint32_t numbers[COUNT];
  open_world(&w, 0, 1);
  gm__lookup_init(&lookup);
  assert_false(gm__lookup_open_inside(&lookup, &w.spans, 8)); /* no table, no spans */
  for (uint32_t i = 0; i < COUNT; i++) {
    numbers[i] = reserve_and_take(&w);
    at(&w, numbers[i])->address = first * GRANULE;
    at(&w, numbers[i])->granules = (uint32_t)test_log_uniform(&random, 1 << 12);
    first += at(&w, numbers[i])->granules + test_random(&random) % GAP;
  }
  for (int turn = 0; turn < 20000; turn++) {
    const uint32_t i = (uint32_t)(test_random(&random) % COUNT);
    if (there[i]) {
      gm__lookup_remove(&lookup, &w.spans, numbers[i]);
    } else {
      assert_true(gm__lookup_reserve(&lookup, &w.spans));
      gm__lookup_insert(&lookup, &w.spans, numbers[i]);
    }
    there[i] = !there[i];
    if (turn < 100) continue; /* opened with spans in it, and grown afterwards */
    assert_true(gm__lookup_open_inside(&lookup, &w.spans, 8));
    const uint64_t granule = test_random(&random) % (first + 10);
    const uint64_t address = granule * GRANULE + test_random(&random) % GRANULE;
    assert_int_equal(gm__lookup_find_inside(&lookup, &w.spans, address),
                     inside_by_hand(&w, numbers, there, COUNT, granule));
  }
  gm__lookup_clear(&lookup, &w.host.services);
  close_world(&w);
}

enum { MANY = 40000, MANY_GRANULES = 5 };

static uint32_t many_numbers[MANY];

static void many_insert(world *w, gm__lookup *lookup, uint32_t i) {
  assert_true(gm__lookup_reserve(lookup, &w->spans));
  gm__lookup_insert(lookup, &w->spans, many_numbers[i]);
}

static void many_add(world *w, gm__lookup *lookup, uint32_t i) {
  many_numbers[i] = reserve_and_take(w);
  at(w, many_numbers[i])->address = (uint64_t)(i + 1) * MANY_GRANULES * GRANULE;
  at(w, many_numbers[i])->granules = MANY_GRANULES;
  many_insert(w, lookup, i);
}

/* The first searches for an address inside, beside so many spans, while others come and go. */
static void first_searches_inside(uint32_t opened, bool grows) {
  world w;
  gm__lookup lookup;
  uint32_t count = 0, searches = 0;
  open_world(&w, 0, 1);
  gm__lookup_init(&lookup);
  while (count < opened) many_add(&w, &lookup, count++);
  assert_int_equal(lookup.old.slots != NULL, grows);
  assert_true(gm__lookup_open_inside(&lookup, &w.spans, 8));
  for (uint32_t i = opened - 1; lookup.inside.end != GM__LOOKUP_ALL; i -= 7, searches++) {
    const uint32_t before = lookup.inside.end;
    const uint64_t address = at(&w, many_numbers[i])->address + GRANULE * (MANY_GRANULES - 1) + 17;
    assert_int_equal(gm__lookup_find_inside(&lookup, &w.spans, address), many_numbers[i]);
    if (lookup.inside.end != GM__LOOKUP_ALL) assert_true(lookup.inside.end - before <= GM__LOOKUP_SCAN);
    gm__lookup_remove(&lookup, &w.spans, many_numbers[i]);
    assert_int_equal(gm__lookup_find_inside(&lookup, &w.spans, address), 0);
    many_insert(&w, &lookup, i);
    for (int more = 0; more < 200; more++) many_add(&w, &lookup, count++);
  }
  assert_true(searches > opened / GM__LOOKUP_SCAN / 3);
  for (uint32_t i = 0; i < count; i++) {
    assert_int_equal(gm__lookup_find_inside(&lookup, &w.spans, at(&w, many_numbers[i])->address + 300),
                     many_numbers[i]);
  }
  assert_int_equal(gm__lookup_find_inside(&lookup, &w.spans, 300), 0);
  gm__lookup_clear(&lookup, &w.host.services);
  close_world(&w);
}

/* A search looks at a few spans, however many there are. */
static void test_a_first_search_inside_looks_at_few_spans(void **state) {
  (void)state;
  first_searches_inside(20000, false);
  first_searches_inside(32000, false); /* it grows meanwhile */
  first_searches_inside(33500, true);  /* it grows already */
}

/* The slots in use of the larger table. */
static uint32_t slots_used(const gm__lookup *lookup) {
  uint32_t used = 0;
  for (uint32_t i = 0; i <= lookup->mask; i++) used += lookup->slots[i] != 0;
  return used;
}

/* However many there are, a call moves a few spans to a larger table, and every span is found meanwhile. */
static void test_an_index_grows_by_a_few_spans(void **state) {
  (void)state;
  enum { COUNT = 9000, MOST = GM__LOOKUP_SCAN / 2 };
  world w;
  gm__lookup lookup;
  static uint32_t numbers[COUNT];
  uint32_t between = 0;
  open_world(&w, 0, 1);
  gm__lookup_init(&lookup);
  for (uint32_t i = 0; i < COUNT; i++) {
    const bool works = !lookup.room;
    const uint32_t bits = lookup.bits, used = works ? slots_used(&lookup) : 0;
    numbers[i] = reserve_and_take(&w);
    at(&w, numbers[i])->address = (uint64_t)(i + 1) * GRANULE;
    assert_true(gm__lookup_reserve(&lookup, &w.spans));
    if (works && lookup.bits == bits) assert_true(slots_used(&lookup) - used <= MOST);
    if (works && lookup.bits != bits) assert_true(slots_used(&lookup) <= MOST);
    gm__lookup_insert(&lookup, &w.spans, numbers[i]);
    if (!lookup.old.slots) continue;
    between++;
    const uint32_t other = numbers[between * 7919 % (i + 1)];
    assert_int_equal(gm__lookup_find(&lookup, &w.spans, at(&w, other)->address), other);
  }
  assert_true(between > 500);
  for (uint32_t i = 0; i < COUNT; i++) {
    assert_int_equal(gm__lookup_find(&lookup, &w.spans, at(&w, numbers[i])->address), numbers[i]);
  }
  gm__lookup_clear(&lookup, &w.host.services);
  close_world(&w);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_bin_is_a_part_of_a_power_of_two),
      cmocka_unit_test(test_random_cuts_and_holes),
      cmocka_unit_test(test_any_alignment_is_found),
      cmocka_unit_test(test_a_search_takes_what_suits),
      cmocka_unit_test(test_a_drain_takes_all),
      cmocka_unit_test(test_spans_end_where_they_must),
      cmocka_unit_test(test_addresses_are_looked_up),
      cmocka_unit_test(test_addresses_of_one_place_are_looked_up),
      cmocka_unit_test(test_any_address_inside_is_looked_up),
      cmocka_unit_test(test_an_index_grows_by_a_few_spans),
      cmocka_unit_test(test_a_first_search_inside_looks_at_few_spans),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

/* gm_pages: keys. Idle pages are found by them, evicted by priority and age, and lose them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "core/pages/pages_state.h"
#include "gm/pages.h"
#include "support/counted_services.h"
#include "support/page_scene.h"

static void test_idle_pages_are_found_and_evicted_by_priority_and_age(void **state) {
  (void)state;
  enum { PAGES = 4 };
  static const uint32_t priorities[PAGES] = {7, 0, 63, 0};
  page_scene s;
  gm_page pages[PAGES];
  page_scene_open(&s, PAGES, 0, 0, NULL);
  const uint32_t owner = page_owner(&s, "cache");
  assert_int_equal(gm_pages_take(s.pages, owner, PAGES, 0, pages, NULL), GM_OK);
  for (uint32_t i = 0; i < PAGES; i++) {
    const gm_page_key key = {i + 1, 0};
    gm_page there = GM_NO_PAGE;
    assert_int_equal(gm_pages_set_key(s.pages, owner, pages[i], key, priorities[i], &there, NULL), GM_OK);
    assert_int_equal(there, pages[i]);
  }
  assert_int_equal(gm_pages_release(s.pages, owner, pages, PAGES, NULL), GM_OK);
  assert_int_equal(page_stats(&s).idle, PAGES);
  assert_int_equal(find_one(&s, owner, (gm_page_key){2, 0}), pages[1]); /* it is young again */
  assert_int_equal(release_one(&s, owner, pages[1]), GM_OK);
  assert_int_equal(take_one(&s, owner), pages[3]);
  assert_int_equal(take_one(&s, owner), pages[1]);
  assert_int_equal(find_one(&s, owner, (gm_page_key){2, 0}), GM_NO_PAGE);
  assert_int_equal(take_one(&s, owner), pages[0]);
  assert_int_equal(find_one(&s, owner, (gm_page_key){3, 0}), pages[2]);
  const gm_pages_stats stats = page_stats(&s);
  assert_int_equal(stats.evicted, 3);
  assert_int_equal(stats.found, 2);
  assert_int_equal(gm_page_owner_close(s.pages, owner, NULL), GM_OK);
  page_scene_close(&s);
}

static void test_the_longest_prefix_is_found(void **state) {
  (void)state;
  page_scene s;
  gm_page page, out[3] = {0};
  uint32_t count = 0;
  const gm_page_key keys[] = {key_a, key_b, {5, 5}};
  page_scene_open(&s, 4, 0, 0, NULL);
  const uint32_t a = page_owner(&s, "a"), b = page_owner(&s, "b");
  page = take_one(&s, a);
  assert_int_equal(gm_pages_set_key(s.pages, a, page, key_a, 0, NULL, NULL), GM_OK);
  const gm_page second = take_one(&s, a), third = take_one(&s, a);
  assert_int_equal(gm_pages_set_key(s.pages, a, second, key_b, 0, NULL, NULL), GM_OK);
  gm_page there = GM_NO_PAGE; /* the page that had a key first keeps it */
  assert_int_equal(gm_pages_set_key(s.pages, a, third, key_b, 0, &there, NULL), GM_OK);
  assert_int_equal(there, second);
  assert_int_equal(gm_page_owner_close(s.pages, a, NULL), GM_OK);
  assert_int_equal(page_stats(&s).idle, 2);
  assert_int_equal(gm_pages_find(s.pages, b, keys, 3, out, &count, NULL), GM_OK);
  assert_int_equal(count, 2);
  assert_int_equal(out[0], page);
  assert_int_equal(out[1], second);
  assert_int_equal(find_one(&s, b, no_key), GM_NO_PAGE);
  assert_int_equal(gm_pages_set_key(s.pages, b, page, no_key, 0, &there, NULL), GM_OK);
  assert_int_equal(there, GM_NO_PAGE);
  assert_int_equal(find_one(&s, b, key_a), GM_NO_PAGE);
  assert_int_equal(gm_pages_drop_keys(s.pages, NULL), GM_OK);
  assert_int_equal(find_one(&s, b, key_b), GM_NO_PAGE);
  assert_int_equal(gm_pages_set_key(s.pages, b, page, key_b, 0, &there, NULL), GM_OK); /* nobody has it any more */
  assert_int_equal(there, page);
  assert_int_equal(release_one(&s, b, second), GM_OK); /* its key was dropped: free, not idle */
  assert_int_equal(page_stats(&s).idle, 0);
  assert_int_equal(gm_page_owner_close(s.pages, b, NULL), GM_OK);
  assert_int_equal(page_stats(&s).idle, 1);
  page_scene_close(&s);
}

static void test_pages_with_dropped_keys_go_before_those_with_keys(void **state) {
  (void)state;
  page_scene s;
  gm_page pages[3];
  page_scene_open(&s, 3, 0, 0, NULL);
  const uint32_t owner = page_owner(&s, "cache");
  assert_int_equal(gm_pages_take(s.pages, owner, 3, 0, pages, NULL), GM_OK);
  assert_int_equal(gm_pages_set_key(s.pages, owner, pages[0], key_a, 63, NULL, NULL), GM_OK);
  assert_int_equal(gm_pages_set_key(s.pages, owner, pages[1], key_b, 7, NULL, NULL), GM_OK);
  assert_int_equal(gm_pages_release(s.pages, owner, pages, 2, NULL), GM_OK);
  assert_int_equal(gm_pages_drop_keys(s.pages, NULL), GM_OK);
  assert_int_equal(gm_pages_set_key(s.pages, owner, pages[2], key_a, 0, NULL, NULL), GM_OK);
  assert_int_equal(release_one(&s, owner, pages[2]), GM_OK);
  assert_int_equal(take_one(&s, owner), pages[1]);
  assert_int_equal(take_one(&s, owner), pages[0]);
  assert_int_equal(find_one(&s, owner, key_a), pages[2]);
  assert_int_equal(gm_page_owner_close(s.pages, owner, NULL), GM_OK);
  page_scene_close(&s);
}

static void test_keys_are_dropped_more_often_than_generations_count(void **state) {
  (void)state;
  page_scene s;
  gm_page pages[2];
  page_scene_open(&s, 2, 0, 0, NULL);
  const uint32_t owner = page_owner(&s, "cache");
  assert_int_equal(gm_pages_take(s.pages, owner, 2, 0, pages, NULL), GM_OK);
  assert_int_equal(gm_pages_set_key(s.pages, owner, pages[0], key_a, 0, NULL, NULL), GM_OK);
  assert_int_equal(release_one(&s, owner, pages[0]), GM_OK);
  s.pages->keys.generation = UINT32_MAX;
  for (int i = 0; i < 2; i++) {
    assert_int_equal(gm_pages_drop_keys(s.pages, NULL), GM_OK);
    assert_int_equal(find_one(&s, owner, key_a), GM_NO_PAGE);
    assert_int_equal(gm_pages_set_key(s.pages, owner, pages[1], key_b, 0, NULL, NULL), GM_OK);
    assert_int_equal(release_one(&s, owner, pages[1]), GM_OK);
    assert_int_equal(find_one(&s, owner, key_b), pages[1]);
  }
  assert_int_equal(take_one(&s, owner), pages[0]);
  assert_int_equal(gm_page_owner_close(s.pages, owner, NULL), GM_OK);
  page_scene_close(&s);
}

/* Keys that a program numbers, a place in `lo` and a sequence somewhere in `hi`, spread over the buckets. */
static void test_numbered_keys_go_to_different_buckets(void **state) {
  (void)state;
  enum { SIDE = 64, PAGES = SIDE * SIDE };
  static gm_page pages[PAGES];
  for (uint32_t shift = 0; shift <= 56; shift += 4) {
    page_scene s;
    page_scene_open(&s, PAGES, 0, 0, NULL);
    const uint32_t owner = page_owner(&s, "cache");
    assert_int_equal(gm_pages_take(s.pages, owner, PAGES, 0, pages, NULL), GM_OK);
    for (uint64_t i = 0; i < PAGES; i++) {
      const gm_page_key key = {1 + i % SIDE, i / SIDE << shift};
      assert_int_equal(gm_pages_set_key(s.pages, owner, pages[i], key, 0, NULL, NULL), GM_OK);
    }
    for (uint32_t bucket = 0; bucket <= s.pages->keys.mask; bucket++) {
      uint32_t length = 0;
      for (uint32_t name = s.pages->keys.heads[bucket]; name; length++) name = s.pages->keys.names[name - 1].next;
      assert_in_range(length, 0, 12);
    }
    assert_int_equal(gm_page_owner_close(s.pages, owner, NULL), GM_OK);
    page_scene_close(&s);
  }
}

/* gm_pages_find gets no memory in the middle: the owner keeps none of the pages. */
static void test_a_find_without_memory_gives_back_what_it_found(void **state) {
  (void)state;
  enum { IDLE = 3, PAGES = 1100 }; /* holds beyond the first of a page ask for memory by 1024 */
  static gm_page pages[PAGES], out[PAGES];
  static gm_page_key keys[PAGES];
  page_scene s;
  counted_services host;
  uint32_t count = 7;
  counted_services_init(&host);
  page_scene_open(&s, PAGES, 0, 0, &host.services);
  const uint32_t a = page_owner(&s, "a"), b = page_owner(&s, "b"), c = page_owner(&s, "c");
  assert_int_equal(gm_pages_take(s.pages, a, PAGES, 0, pages, NULL), GM_OK);
  for (uint32_t i = 0; i < PAGES; i++) {
    keys[i] = (gm_page_key){i + 1, 0};
    assert_int_equal(gm_pages_set_key(s.pages, a, pages[i], keys[i], 0, NULL, NULL), GM_OK);
  }
  assert_int_equal(gm_pages_release(s.pages, a, pages, IDLE, NULL), GM_OK);
  assert_int_equal(gm_pages_share(s.pages, c, pages + IDLE, 1000, NULL), GM_OK);
  const gm_pages_stats before = page_stats(&s);
  host.fail_at = atomic_load(&host.calls) + 1;
  host.fail_count = 1;
  assert_refused(&s, gm_pages_find(s.pages, b, keys, PAGES, out, &count, &s.err), GM_ERR_OUT_OF_HOST_MEMORY,
                 "no host memory for a hold");
  assert_int_equal(count, 0);
  gm_pages_stats after = page_stats(&s);
  assert_memory_equal(&after, &before, sizeof after);
  assert_int_equal(gm_page_owner_list(s.pages, b, NULL, 0, &count, NULL), GM_OK);
  assert_int_equal(count, 0);
  assert_int_equal(gm_pages_find(s.pages, b, keys, PAGES, out, &count, NULL), GM_OK);
  assert_int_equal(count, PAGES);
  assert_memory_equal(out, pages, sizeof pages);
  const uint32_t owners[] = {a, b, c};
  for (int i = 0; i < 3; i++) assert_int_equal(gm_page_owner_close(s.pages, owners[i], NULL), GM_OK);
  page_scene_close(&s);
  counted_services_check(&host);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_idle_pages_are_found_and_evicted_by_priority_and_age),
      cmocka_unit_test(test_the_longest_prefix_is_found),
      cmocka_unit_test(test_pages_with_dropped_keys_go_before_those_with_keys),
      cmocka_unit_test(test_keys_are_dropped_more_often_than_generations_count),
      cmocka_unit_test(test_numbered_keys_go_to_different_buckets),
      cmocka_unit_test(test_a_find_without_memory_gives_back_what_it_found),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

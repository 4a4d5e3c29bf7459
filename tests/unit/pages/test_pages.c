/* gm_pages: takes, shares, releases, keys, steps; each misuse is refused with the owner's tag. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gm/pages.h"
#include "support/fail_each.h"
#include "support/page_scene.h"

/* ---- holds ---- */

static void test_all_pages_come_once(void **state) {
  (void)state;
  page_scene s;
  gm_page pages[8];
  bool seen[8] = {false};
  page_scene_open(&s, 8, 0, GM_PAGES_KEEP_FIRST, NULL);
  const uint32_t owner = page_owner(&s, "seq 1");
  assert_refused(&s, gm_pages_take(s.pages, owner, 8, 0, pages, &s.err), GM_ERR_OVER_LIMIT,
                 "\"seq 1\" asks for 8 pages, and 7 can be taken");
  assert_int_equal(page_stats(&s).held, 0); /* all or none */
  assert_int_equal(gm_pages_take(s.pages, owner, 7, 0, pages, NULL), GM_OK);
  for (int i = 0; i < 7; i++) {
    assert_in_range(pages[i], 1, 7); /* page 0 is kept */
    assert_false(seen[pages[i]]);
    seen[pages[i]] = true;
  }
  assert_int_equal(gm_pages_take(s.pages, owner, 1, 0, pages, NULL), GM_ERR_OVER_LIMIT);
  assert_int_equal(gm_pages_take(s.pages, owner, 0, 0, pages, NULL), GM_OK);
  const gm_pages_stats stats = page_stats(&s);
  assert_int_equal(stats.pages, 8);
  assert_int_equal(stats.held, 7);
  assert_int_equal(stats.free, 0);
  assert_int_equal(stats.taken, 7);
  assert_int_equal(stats.refused, 2);
  assert_int_equal(gm_page_owner_close(s.pages, owner, NULL), GM_OK);
  assert_int_equal(page_stats(&s).free, 7);
  page_scene_close(&s);
}

static void test_the_reserve_is_for_urgent_takes(void **state) {
  (void)state;
  page_scene s;
  gm_page pages[10];
  page_scene_open(&s, 10, 3, 0, NULL);
  const uint32_t owner = page_owner(&s, "decode");
  assert_int_equal(gm_pages_take(s.pages, owner, 8, 0, pages, NULL), GM_ERR_OVER_LIMIT);
  assert_int_equal(gm_pages_take(s.pages, owner, 7, 0, pages, NULL), GM_OK);
  assert_int_equal(gm_pages_take(s.pages, owner, 1, 0, pages, NULL), GM_ERR_OVER_LIMIT);
  assert_int_equal(gm_pages_take(s.pages, owner, 3, GM_PAGES_URGENT, pages, NULL), GM_OK);
  assert_int_equal(gm_pages_take(s.pages, owner, 1, GM_PAGES_URGENT, pages, NULL), GM_ERR_OVER_LIMIT);
  assert_int_equal(gm_page_owner_close(s.pages, owner, NULL), GM_OK);
  page_scene_close(&s);
}

static void test_a_find_may_have_the_reserve(void **state) {
  (void)state;
  page_scene s;
  page_scene_open(&s, 1, 1, 0, NULL);
  const uint32_t owner = page_owner(&s, "cache");
  gm_page page;
  assert_int_equal(gm_pages_take(s.pages, owner, 1, GM_PAGES_URGENT, &page, NULL), GM_OK);
  assert_int_equal(gm_pages_set_key(s.pages, owner, page, key_a, 0, NULL, NULL), GM_OK);
  assert_int_equal(release_one(&s, owner, page), GM_OK);
  assert_int_equal(find_one(&s, owner, key_a), page);
  assert_int_equal(gm_pages_take(s.pages, owner, 1, GM_PAGES_URGENT, &page, NULL), GM_ERR_OVER_LIMIT);
  assert_int_equal(gm_page_owner_close(s.pages, owner, NULL), GM_OK);
  page_scene_close(&s);
}

static void test_a_page_lives_until_its_last_hold(void **state) {
  (void)state;
  page_scene s;
  page_scene_open(&s, 4, 0, 0, NULL);
  const uint32_t a = page_owner(&s, "a"), b = page_owner(&s, "b");
  gm_page page = take_one(&s, a);
  assert_int_equal(gm_pages_share(s.pages, b, &page, 1, NULL), GM_OK);
  assert_int_equal(gm_pages_share(s.pages, b, &page, 1, NULL), GM_OK); /* twice */
  assert_int_equal(page_stats(&s).holds, 3);
  assert_int_equal(release_one(&s, a, page), GM_OK);
  assert_int_equal(gm_pages_share(s.pages, a, &page, 1, NULL), GM_OK); /* once more, while only b holds it */
  assert_int_equal(gm_pages_share(s.pages, b, &page, 1, NULL), GM_OK);
  assert_int_equal(release_one(&s, a, page), GM_OK);
  for (int i = 0; i < 3; i++) {
    assert_int_equal(page_stats(&s).held, 1);
    assert_int_equal(release_one(&s, b, page), GM_OK);
  }
  assert_int_equal(page_stats(&s).held, 0);
  assert_int_equal(page_stats(&s).holds, 0);
  assert_refused(&s, release_one(&s, b, page), GM_ERR_INVALID_ARGUMENT, "\"b\" does not hold page");
  assert_int_equal(gm_page_owner_close(s.pages, a, NULL), GM_OK);
  assert_int_equal(gm_page_owner_close(s.pages, b, NULL), GM_OK);
  page_scene_close(&s);
}

static void test_a_fork_holds_the_same_pages_in_the_same_order(void **state) {
  (void)state;
  enum { PAGES = 3000 }; /* tables grow meanwhile */
  page_scene s;
  static gm_page taken[PAGES], listed[PAGES];
  uint32_t count = 0;
  page_scene_open(&s, PAGES, 0, 0, NULL);
  const uint32_t parent = page_owner(&s, "parent"), child = page_owner(&s, "child");
  assert_int_equal(gm_pages_take(s.pages, parent, PAGES, 0, taken, NULL), GM_OK);
  assert_int_equal(gm_pages_fork(s.pages, parent, child, NULL), GM_OK);
  assert_int_equal(gm_page_owner_list(s.pages, child, listed, PAGES, &count, NULL), GM_OK);
  assert_int_equal(count, PAGES);
  assert_memory_equal(listed, taken, sizeof taken);
  assert_int_equal(gm_pages_release(s.pages, parent, taken + 10, 5, NULL), GM_OK);
  assert_int_equal(gm_page_owner_list(s.pages, parent, listed, 11, &count, NULL), GM_OK);
  assert_int_equal(count, PAGES - 5);
  assert_int_equal(listed[9], taken[9]);
  assert_int_equal(listed[10], taken[15]);
  assert_int_equal(gm_page_owner_close(s.pages, parent, NULL), GM_OK);
  assert_int_equal(page_stats(&s).held, PAGES);
  assert_int_equal(gm_pages_fork(s.pages, child, child, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_pages_fork(s.pages, parent, child, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_page_owner_close(s.pages, child, NULL), GM_OK);
  page_scene_close(&s);
}

/* More holds than the table of extra holds begins with: each is found again after its buckets were split. */
static void test_holds_are_found_in_a_table_that_grew(void **state) {
  enum { PAGES = 2500, OWNERS = 3 };
  (void)state;
  page_scene s;
  gm_page pages[PAGES];
  uint32_t owners[OWNERS];
  page_scene_open(&s, PAGES, 0, 0, NULL);
  const uint32_t first = page_owner(&s, "first");
  assert_int_equal(gm_pages_take(s.pages, first, PAGES, 0, pages, NULL), GM_OK);
  for (uint32_t i = 0; i < OWNERS; i++) {
    owners[i] = page_owner(&s, "more");
    if (i)
      assert_int_equal(gm_pages_fork(s.pages, first, owners[i], NULL), GM_OK);
    else
      assert_int_equal(gm_pages_share(s.pages, owners[i], pages, PAGES, NULL), GM_OK);
  }
  assert_int_equal(page_stats(&s).holds, PAGES * (OWNERS + 1));
  for (uint32_t i = 0; i < PAGES; i++) {
    assert_int_equal(release_one(&s, owners[i % OWNERS], pages[i]), GM_OK);
    assert_refused(&s, release_one(&s, owners[i % OWNERS], pages[i]), GM_ERR_INVALID_ARGUMENT,
                   "\"more\" does not hold");
    for (uint32_t k = 0; k < OWNERS; k++) {
      if (k != i % OWNERS) assert_int_equal(release_one(&s, owners[k], pages[i]), GM_OK);
    }
  }
  assert_int_equal(page_stats(&s).holds, PAGES);
  for (uint32_t i = 0; i < OWNERS; i++) assert_int_equal(gm_page_owner_close(s.pages, owners[i], NULL), GM_OK);
  assert_int_equal(gm_page_owner_close(s.pages, first, NULL), GM_OK);
  page_scene_close(&s);
}

/* ---- steps ---- */

static void test_a_page_that_a_step_reads_is_not_taken(void **state) {
  (void)state;
  page_scene s;
  gm_page page;
  uint64_t first = 0, second = 0;
  page_scene_open(&s, 2, 0, 0, NULL);
  const uint32_t owner = page_owner(&s, "seq");
  gm_page pages[2];
  assert_int_equal(gm_pages_take(s.pages, owner, 2, 0, pages, NULL), GM_OK);
  assert_int_equal(gm_pages_set_key(s.pages, owner, pages[1], key_a, 0, NULL, NULL), GM_OK);
  assert_int_equal(gm_pages_step_begin(s.pages, &first, NULL), GM_OK);
  assert_int_equal(gm_pages_step_begin(s.pages, &second, NULL), GM_OK);
  assert_int_equal(gm_pages_release(s.pages, owner, pages, 2, NULL), GM_OK);
  assert_int_equal(page_stats(&s).waiting, 2);
  assert_int_equal(gm_pages_take(s.pages, owner, 1, 0, &page, NULL), GM_ERR_OVER_LIMIT);
  assert_int_equal(find_one(&s, owner, key_a), pages[1]); /* to read it harms no step */
  assert_int_equal(release_one(&s, owner, pages[1]), GM_OK);
  assert_int_equal(gm_pages_step_end(s.pages, second, NULL), GM_OK);
  assert_int_equal(gm_pages_take(s.pages, owner, 1, 0, &page, NULL), GM_ERR_OVER_LIMIT); /* the first still reads */
  assert_int_equal(page_stats(&s).steps, 1);
  assert_int_equal(gm_pages_step_end(s.pages, first, NULL), GM_OK);
  assert_int_equal(page_stats(&s).waiting, 0);
  assert_int_equal(gm_pages_take(s.pages, owner, 2, 0, pages, NULL), GM_OK);
  assert_refused(&s, gm_pages_step_end(s.pages, first, &s.err), GM_ERR_INVALID_ARGUMENT, "step 1 is not open");
  assert_int_equal(gm_pages_step_end(s.pages, 3, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_page_owner_close(s.pages, owner, NULL), GM_OK);
  page_scene_close(&s);
}

static void test_a_step_that_never_ends_stops_further_ones(void **state) {
  (void)state;
  page_scene s;
  uint64_t stuck, step;
  page_scene_open(&s, 2, 0, 0, NULL);
  assert_int_equal(gm_pages_step_begin(s.pages, &stuck, NULL), GM_OK);
  for (int i = 1; i < GM_PAGE_STEPS_MOST; i++) {
    assert_int_equal(gm_pages_step_begin(s.pages, &step, NULL), GM_OK);
    assert_int_equal(gm_pages_step_end(s.pages, step, NULL), GM_OK);
  }
  assert_refused(&s, gm_pages_step_begin(s.pages, &step, &s.err), GM_ERR_OVER_LIMIT, "step 1, 64 steps ago, is still");
  assert_refused(&s, gm_pages_destroy(s.pages, &s.err), GM_ERR_BUSY, "1 steps are open, the oldest is 1");
  assert_int_equal(gm_pages_step_end(s.pages, stuck, NULL), GM_OK);
  assert_int_equal(gm_pages_step_begin(s.pages, &step, NULL), GM_OK);
  assert_int_equal(step, GM_PAGE_STEPS_MOST + 1);
  assert_int_equal(gm_pages_step_end(s.pages, step, NULL), GM_OK);
  page_scene_close(&s);
}

static void test_owners_of_another_set_are_refused(void **state) {
  (void)state;
  page_scene a, b;
  page_scene_open(&a, 4, 0, 0, NULL);
  page_scene_open(&b, 4, 0, 0, NULL);
  const uint32_t of_a = page_owner(&a, "of a"), of_b = page_owner(&b, "of b");
  assert_refused(&b, gm_pages_take(b.pages, of_a, 1, 0, &(gm_page){0}, &b.err), GM_ERR_INVALID_ARGUMENT, "never was");
  assert_int_equal(gm_page_owner_close(a.pages, of_b, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_page_owner_close(a.pages, of_a, NULL), GM_OK);
  assert_int_equal(gm_page_owner_close(b.pages, of_b, NULL), GM_OK);
  page_scene_close(&a);
  page_scene_close(&b);
}

/* ---- misuse ---- */

static void test_each_misuse_names_the_owner(void **state) {
  (void)state;
  page_scene s;
  page_scene_open(&s, 4, 0, 0, NULL);
  const uint32_t a = page_owner(&s, "seq a"), b = page_owner(&s, "a name of more than thirty-one bytes, which is cut");
  const gm_page page = take_one(&s, a), other = take_one(&s, b);
  const gm_page both[] = {page, other, page};
  assert_refused(&s, release_one(&s, b, page), GM_ERR_INVALID_ARGUMENT,
                 "\"a name of more than thirty-one \" does not hold page 0, which has 1 holds");
  assert_refused(&s, release_one(&s, a, 4), GM_ERR_INVALID_ARGUMENT, "page 4 is none of 4");
  assert_refused(&s, gm_pages_share(s.pages, a, (gm_page[]){other, 3}, 2, &s.err), GM_ERR_INVALID_ARGUMENT,
                 "nobody holds page 3");
  assert_int_equal(page_stats(&s).holds, 2); /* of no page after a failure */
  assert_refused(&s, gm_pages_share(s.pages, a, (gm_page[]){GM_NO_PAGE}, 1, &s.err), GM_ERR_INVALID_ARGUMENT,
                 "page 4294967295 is none of 4");
  assert_refused(&s, gm_pages_set_key(s.pages, a, other, key_a, 0, NULL, &s.err), GM_ERR_INVALID_ARGUMENT,
                 "\"seq a\" does not hold page 1");
  assert_refused(&s, gm_pages_set_key(s.pages, a, page, key_a, 64, NULL, &s.err), GM_ERR_INVALID_ARGUMENT,
                 "`priority` is 64, not below 64");
  assert_refused(&s, gm_pages_release(s.pages, a, both, 3, &s.err), GM_ERR_INVALID_ARGUMENT, "\"seq a\" does not");
  assert_refused(&s, release_one(&s, a, page), GM_ERR_INVALID_ARGUMENT, "which has 0 holds"); /* a double release */
  assert_refused(&s, gm_pages_destroy(s.pages, &s.err), GM_ERR_BUSY, "2 owners are open, of which \"seq a\" holds 0");
  assert_int_equal(gm_page_owner_close(s.pages, a, NULL), GM_OK);
  assert_refused(&s, gm_page_owner_close(s.pages, a, &s.err), GM_ERR_INVALID_ARGUMENT, "\"seq a\", is closed");
  assert_refused(&s, gm_pages_take(s.pages, a, 1, 0, &(gm_page){0}, &s.err), GM_ERR_INVALID_ARGUMENT, "is closed");
  const uint32_t c = page_owner(&s, "seq c");
  assert_int_not_equal(c, a);
  assert_refused(&s, gm_pages_release(s.pages, a, &page, 1, &s.err), GM_ERR_INVALID_ARGUMENT, "or never was one");
  assert_refused(&s, gm_pages_share(s.pages, 0, &other, 1, &s.err), GM_ERR_INVALID_ARGUMENT, "there is no owner 0");
  assert_int_equal(gm_page_owner_close(s.pages, b, NULL), GM_OK);
  assert_int_equal(gm_page_owner_close(s.pages, c, NULL), GM_OK);
  page_scene_close(&s);
}

static void test_a_page_has_so_many_holds(void **state) {
  (void)state;
  page_scene s;
  gm_page pages[2], out;
  uint32_t count = 1;
  page_scene_open(&s, 2, 0, 0, NULL);
  const uint32_t a = page_owner(&s, "a"), b = page_owner(&s, "b");
  assert_int_equal(gm_pages_take(s.pages, a, 2, 0, pages, NULL), GM_OK);
  assert_int_equal(gm_pages_set_key(s.pages, a, pages[1], key_a, 0, NULL, NULL), GM_OK);
  for (int i = 1; i < GM_PAGE_HOLDS_MOST; i++) assert_int_equal(gm_pages_share(s.pages, b, &pages[1], 1, NULL), GM_OK);
  assert_refused(&s, gm_pages_share(s.pages, b, pages, 2, &s.err), GM_ERR_OVER_LIMIT, "has 65535 holds");
  assert_refused(&s, gm_pages_fork(s.pages, a, b, &s.err), GM_ERR_OVER_LIMIT, "has 65535 holds");
  assert_int_equal(gm_pages_find(s.pages, a, &key_a, 1, &out, &count, NULL), GM_OK);
  assert_int_equal(count, 0);
  assert_int_equal(page_stats(&s).holds, 1 + GM_PAGE_HOLDS_MOST);
  assert_int_equal(gm_page_owner_close(s.pages, a, NULL), GM_OK);
  assert_int_equal(gm_page_owner_close(s.pages, b, NULL), GM_OK);
  assert_int_equal(page_stats(&s).holds, 0);
  page_scene_close(&s);
}

static void test_numbers_of_owners_come_again_late(void **state) {
  (void)state;
  page_scene s;
  page_scene_open(&s, 2, 0, 0, NULL);
  const uint32_t first = page_owner(&s, "first");
  assert_int_equal(gm_page_owner_close(s.pages, first, NULL), GM_OK);
  uint32_t others = 0, owner;
  for (; (owner = page_owner(&s, "next")) != first; others++)
    assert_int_equal(gm_page_owner_close(s.pages, owner, NULL), GM_OK);
  assert_true(others >= 4094);
  assert_int_equal(gm_page_owner_close(s.pages, first, NULL), GM_OK);
  page_scene_close(&s);
}

static void test_wrong_arguments_are_told(void **state) {
  (void)state;
  page_scene s;
  page_scene_open(&s, 2, 0, 0, NULL);
  gm_pages *none = NULL;
  gm_pages_params params = {.struct_size = sizeof params};
  const uint32_t owner = page_owner(&s, "a");
  uint32_t count = 0;
  gm_page page = 0;
  assert_int_equal(gm_pages_create(s.ctx, NULL, &none, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_refused(&s, gm_pages_create(s.ctx, &params, &none, &s.err), GM_ERR_INVALID_ARGUMENT,
                 "`params->max_pages` is 0");
  params.max_pages = 3;
  assert_int_equal(gm_pages_create(s.ctx, &params, NULL, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_pages_create(NULL, &params, &none, NULL), GM_ERR_INVALID_ARGUMENT);
  params.reserve = 4;
  assert_refused(&s, gm_pages_create(s.ctx, &params, &none, &s.err), GM_ERR_INVALID_ARGUMENT, "`params->reserve` is 4");
  params.flags = 2;
  assert_refused(&s, gm_pages_create(s.ctx, &params, &none, &s.err), GM_ERR_INVALID_ARGUMENT, "`params->flags` is 0x2");
  assert_null(none);
  assert_int_equal(gm_pages_take(NULL, owner, 1, 0, &page, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_pages_take(s.pages, owner, 1, 0, NULL, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_pages_take(s.pages, owner, 1, 2, &page, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_pages_share(s.pages, owner, NULL, 1, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_pages_release(s.pages, owner, NULL, 1, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_pages_find(s.pages, owner, NULL, 1, &page, &count, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_pages_find(s.pages, owner, &key_a, 1, &page, NULL, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_pages_find(s.pages, 99, &key_a, 1, &page, &count, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_pages_set_key(s.pages, 99, 0, key_a, 0, NULL, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_page_owner_open(s.pages, NULL, &count, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_page_owner_open(s.pages, "a", NULL, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_page_owner_list(s.pages, owner, NULL, 1, &count, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_page_owner_list(s.pages, 99, NULL, 0, &count, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_pages_step_begin(s.pages, NULL, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_pages_drop_keys(NULL, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_pages_get_stats(s.pages, &(gm_pages_stats){.struct_size = 1}, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_pages_destroy(NULL, NULL), GM_OK);
  assert_refused(&s, gm_context_destroy(s.ctx, &s.err), GM_ERR_BUSY, "");
  assert_int_equal(gm_page_owner_close(s.pages, owner, NULL), GM_OK);
  page_scene_close(&s);
}

/* ---- host memory, forks, threads ---- */

/* All that asks for memory: the set, an owner, holds beyond the first, and what grows then. */
static gm_status attempt_holds(gm_pages *pages) {
  enum { COUNT = 700, OWNERS = 3 };
  static gm_page taken[COUNT];
  uint32_t owners[OWNERS] = {0}, found = 0;
  gm_status status = GM_OK;
  for (int i = 0; i < OWNERS && !status; i++) status = gm_page_owner_open(pages, "owner", &owners[i], NULL);
  if (!status) status = gm_pages_take(pages, owners[0], COUNT, 0, taken, NULL);
  if (!status) status = gm_pages_set_key(pages, owners[0], taken[0], key_a, 0, NULL, NULL);
  if (!status) status = gm_pages_share(pages, owners[1], taken, COUNT, NULL);
  if (!status) status = gm_pages_fork(pages, owners[0], owners[2], NULL);
  if (!status) status = gm_pages_find(pages, owners[1], &key_a, 1, taken, &found, NULL);
  for (int i = 0; i < OWNERS && owners[i]; i++) assert_int_equal(gm_page_owner_close(pages, owners[i], NULL), GM_OK);
  gm_pages_stats stats = {.struct_size = sizeof stats};
  assert_int_equal(gm_pages_get_stats(pages, &stats, NULL), GM_OK);
  assert_int_equal(stats.holds, 0);
  assert_int_equal(stats.held, 0);
  return status;
}

static gm_status attempt(const gm_services *services) {
  const gm_context_params context = {.struct_size = sizeof context, .services = services, .ignore_environment = true};
  const gm_pages_params params = {.struct_size = sizeof params, .max_pages = 1000};
  gm_context *ctx = NULL;
  gm_pages *pages = NULL;
  gm_status status = gm_context_create(&context, &ctx, NULL);
  if (!status) status = gm_pages_create(ctx, &params, &pages, NULL);
  if (!status) status = attempt_holds(pages);
  assert_int_equal(gm_pages_destroy(pages, NULL), GM_OK);
  assert_int_equal(gm_context_destroy(ctx, NULL), GM_OK);
  return status;
}

static void test_every_refused_allocation_is_survived(void **state) {
  (void)state;
  fail_each_allocation(attempt, 10);
}

static int in_child(page_scene *s, counted_services *host, uint32_t owner) {
  gm_page page;
  if (gm_pages_take(s->pages, owner, 1, 0, &page, NULL) != GM_ERR_FORKED) return 1;
  if (gm_page_owner_close(s->pages, owner, NULL) != GM_ERR_FORKED) return 2;
  if (gm_pages_destroy(s->pages, NULL) != GM_OK) return 3;
  if (gm_context_destroy(s->ctx, NULL) != GM_OK) return 4;
  return atomic_load(&host->live_blocks) ? 5 : 0;
}

static void test_a_forked_child_only_closes(void **state) {
  (void)state;
  page_scene s;
  counted_services host;
  int status = -1;
  counted_services_init(&host);
  page_scene_open(&s, 8, 0, 0, &host.services);
  const uint32_t owner = page_owner(&s, "parent");
  take_one(&s, owner);
  const pid_t child = fork();
  if (child == 0) _exit(in_child(&s, &host, owner));
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFEXITED(status));
  assert_int_equal(WEXITSTATUS(status), 0);
  assert_int_equal(gm_page_owner_close(s.pages, owner, NULL), GM_OK);
  page_scene_close(&s);
  counted_services_check(&host);
}

static void *run_owner(void *arg) {
  page_scene *s = arg;
  gm_page pages[16];
  uint32_t owner = 0, failed = 0;
  for (int i = 0; i < 300; i++) {
    failed += gm_page_owner_open(s->pages, "thread", &owner, NULL) != GM_OK;
    failed += gm_pages_take(s->pages, owner, 16, 0, pages, NULL) != GM_OK;
    failed += gm_pages_share(s->pages, owner, pages, 8, NULL) != GM_OK;
    failed += gm_pages_release(s->pages, owner, pages, 8, NULL) != GM_OK;
    failed += gm_page_owner_close(s->pages, owner, NULL) != GM_OK;
  }
  return failed ? arg : NULL;
}

static void test_threads_use_one_set(void **state) {
  (void)state;
  enum { THREADS = 4 };
  page_scene s;
  pthread_t threads[THREADS];
  page_scene_open(&s, THREADS * 16, 0, 0, NULL);
  for (int i = 0; i < THREADS; i++) assert_int_equal(pthread_create(&threads[i], NULL, run_owner, &s), 0);
  for (int i = 0; i < THREADS; i++) {
    void *failed = &s;
    assert_int_equal(pthread_join(threads[i], &failed), 0);
    assert_null(failed);
  }
  assert_int_equal(page_stats(&s).free, THREADS * 16);
  page_scene_close(&s);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_all_pages_come_once),
      cmocka_unit_test(test_the_reserve_is_for_urgent_takes),
      cmocka_unit_test(test_holds_are_found_in_a_table_that_grew),
      cmocka_unit_test(test_a_find_may_have_the_reserve),
      cmocka_unit_test(test_a_page_lives_until_its_last_hold),
      cmocka_unit_test(test_a_fork_holds_the_same_pages_in_the_same_order),
      cmocka_unit_test(test_a_page_that_a_step_reads_is_not_taken),
      cmocka_unit_test(test_a_step_that_never_ends_stops_further_ones),
      cmocka_unit_test(test_owners_of_another_set_are_refused),
      cmocka_unit_test(test_each_misuse_names_the_owner),
      cmocka_unit_test(test_a_page_has_so_many_holds),
      cmocka_unit_test(test_numbers_of_owners_come_again_late),
      cmocka_unit_test(test_wrong_arguments_are_told),
      cmocka_unit_test(test_every_refused_allocation_is_survived),
      cmocka_unit_test(test_a_forked_child_only_closes),
      cmocka_unit_test(test_threads_use_one_set),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

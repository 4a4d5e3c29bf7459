/* Random calls of a page set beside a plain model that looks at everything each time. A step reads the pages that were
 * held when it began: until it ends, none of them may be taken for other contents. The control begins no steps in the
 * set, and must read wrong contents soon. GM_TEST_SEED repeats a seed, GM_TEST_OPS is another count of calls. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "support/great_many.h"
#include "support/page_scene.h"
#include "support/random.h"

enum { PAGES = 48, OWNERS = 8, KEYS = 70, RESERVE = 3, STEPS = 6, MOST = 8 };

typedef struct model_page {
  uint32_t count;
  uint32_t key; /* 0: none */
  uint32_t priority;
  bool idle;      /* it had a key when its last hold went */
  uint64_t age;   /* when that was */
  uint64_t waits; /* a bit for each place of `steps` that was open then and is still */
} model_page;

typedef struct model_owner {
  uint32_t number; /* 0: closed */
  uint32_t times[PAGES];
  uint64_t since[PAGES];
} model_owner;

typedef struct model_step {
  bool open;
  uint64_t number;
  bool reads[PAGES];
} model_step;

typedef struct model {
  page_scene scene;
  bool with_steps;
  uint64_t random, clock;
  model_page pages[PAGES];
  model_owner owners[OWNERS];
  model_step steps[STEPS];
  uint64_t taken, refused, found, evicted, wrong;
} model;

static uint32_t pick(model *m, uint32_t below) { return (uint32_t)(test_random(&m->random) % below); }

static model_owner *pick_owner(model *m) { return &m->owners[pick(m, OWNERS)]; }

static gm_page_key key_of(uint32_t key) { return (gm_page_key){key, key ? 1 : 0}; }

static uint64_t open_steps(const model *m) {
  uint64_t mask = 0;
  for (uint32_t i = 0; i < STEPS && m->with_steps; i++) mask |= (uint64_t)m->steps[i].open << i;
  return mask;
}

/* ---- what the model does ---- */

static void model_hold(model *m, model_owner *owner, gm_page page) {
  if (!owner->times[page]++) owner->since[page] = ++m->clock;
  m->pages[page].count++;
  m->pages[page].idle = false;
}

static void model_drop(model *m, model_owner *owner, gm_page page) {
  model_page *record = &m->pages[page];
  owner->times[page]--;
  if (--record->count) return;
  record->idle = record->key != 0;
  record->age = ++m->clock;
  record->waits = open_steps(m);
}

static uint32_t model_available(const model *m) {
  uint32_t count = 0;
  for (gm_page page = 0; page < PAGES; page++) count += !m->pages[page].count && !m->pages[page].waits;
  return count;
}

/* Is `page` what must be taken next? */
static void model_check_next(const model *m, gm_page page) {
  const model_page *taken = &m->pages[page];
  assert_int_equal(taken->count, 0);
  assert_int_equal(taken->waits, 0);
  for (gm_page other = 0; taken->idle && other < PAGES; other++) {
    const model_page *left = &m->pages[other];
    if (left->count || left->waits || other == page) continue;
    assert_true(left->idle);               /* those without a key come first */
    assert_true(!taken->key || left->key); /* then those whose keys were dropped */
    if (!taken->key && left->key) continue;
    assert_true(left->priority > taken->priority || (left->priority == taken->priority && left->age > taken->age));
  }
}

static void model_take(model *m, model_owner *owner, gm_page page) {
  model_check_next(m, page);
  for (uint32_t i = 0; i < STEPS; i++) m->wrong += m->steps[i].open && m->steps[i].reads[page];
  m->evicted += m->pages[page].idle;
  m->pages[page].key = 0;
  model_hold(m, owner, page);
}

static gm_page model_find(const model *m, uint32_t key) {
  for (gm_page page = 0; page < PAGES; page++) {
    if (key && m->pages[page].key == key) return page;
  }
  return GM_NO_PAGE;
}

/* ---- calls, each beside the model ---- */

static void call_owner(model *m) {
  model_owner *owner = pick_owner(m);
  if (!owner->number) {
    owner->number = page_owner(&m->scene, "model");
    return;
  }
  if (pick(m, 2)) return;
  assert_int_equal(gm_page_owner_close(m->scene.pages, owner->number, NULL), GM_OK);
  for (;;) { /* the page that it got last goes first */
    gm_page last = GM_NO_PAGE;
    for (gm_page page = 0; page < PAGES; page++) {
      if (owner->times[page] && (last == GM_NO_PAGE || owner->since[page] > owner->since[last])) last = page;
    }
    if (last == GM_NO_PAGE) break;
    while (owner->times[last]) model_drop(m, owner, last);
  }
  owner->number = 0;
}

static void call_take(model *m) {
  model_owner *owner = pick_owner(m);
  gm_page out[MOST];
  const uint32_t count = pick(m, MOST) + 1, flags = pick(m, 2);
  const uint32_t available = model_available(m), reserve = flags ? 0 : RESERVE;
  const gm_status wanted = !owner->number                ? GM_ERR_INVALID_ARGUMENT
                           : count + reserve > available ? GM_ERR_OVER_LIMIT
                                                         : GM_OK;
  assert_int_equal(gm_pages_take(m->scene.pages, owner->number, count, flags, out, NULL), wanted);
  m->refused += wanted == GM_ERR_OVER_LIMIT;
  for (uint32_t i = 0; i < count && !wanted; i++) model_take(m, owner, out[i]);
  m->taken += wanted ? 0 : count;
}

static void call_share(model *m) {
  model_owner *owner = pick_owner(m);
  gm_page which[MOST];
  const uint32_t count = pick(m, MOST) + 1;
  bool fine = owner->number != 0;
  for (uint32_t i = 0; i < count; i++) {
    which[i] = pick(m, PAGES);
    for (int looks = 0; looks < 20 && !m->pages[which[i]].count; looks++) which[i] = pick(m, PAGES);
    fine = fine && m->pages[which[i]].count;
  }
  assert_int_equal(gm_pages_share(m->scene.pages, owner->number, which, count, NULL),
                   fine ? GM_OK : GM_ERR_INVALID_ARGUMENT);
  for (uint32_t i = 0; i < count && fine; i++) model_hold(m, owner, which[i]);
}

static void call_release(model *m) {
  model_owner *owner = pick_owner(m);
  gm_page which[MOST];
  const uint32_t count = pick(m, MOST) + 1;
  gm_status wanted = owner->number ? GM_OK : GM_ERR_INVALID_ARGUMENT;
  for (uint32_t i = 0; i < count; i++) {
    which[i] = pick(m, PAGES);
    for (int looks = 0; looks < 200 && !owner->times[which[i]]; looks++) which[i] = pick(m, PAGES);
  }
  const gm_status status = gm_pages_release(m->scene.pages, owner->number, which, count, NULL);
  for (uint32_t i = 0; i < count && !wanted; i++) {
    if (owner->times[which[i]])
      model_drop(m, owner, which[i]);
    else
      wanted = GM_ERR_INVALID_ARGUMENT;
  }
  assert_int_equal(status, wanted);
}

static void call_fork(model *m) {
  model_owner *from = pick_owner(m), *to = pick_owner(m);
  const bool fine = from->number && to->number && from != to;
  assert_int_equal(gm_pages_fork(m->scene.pages, from->number, to->number, NULL),
                   fine ? GM_OK : GM_ERR_INVALID_ARGUMENT);
  for (uint64_t after = 0; fine;) { /* in the order in which `from` got them */
    gm_page next = GM_NO_PAGE;
    for (gm_page page = 0; page < PAGES; page++) {
      if (!from->times[page] || from->since[page] <= after) continue;
      if (next == GM_NO_PAGE || from->since[page] < from->since[next]) next = page;
    }
    if (next == GM_NO_PAGE) break;
    after = from->since[next];
    model_hold(m, to, next);
  }
}

static void call_set_key(model *m) {
  model_owner *owner = pick_owner(m);
  gm_page page = pick(m, PAGES), out = 12345;
  for (int looks = 0; looks < 30 && !owner->times[page]; looks++) page = pick(m, PAGES);
  const uint32_t key = pick(m, KEYS), priority = pick(m, 3) * 31;
  const bool fine = owner->number && owner->times[page];
  assert_int_equal(gm_pages_set_key(m->scene.pages, owner->number, page, key_of(key), priority, &out, NULL),
                   fine ? GM_OK : GM_ERR_INVALID_ARGUMENT);
  if (!fine) return;
  const gm_page there = model_find(m, key);
  m->pages[page].priority = priority;
  m->pages[page].key = there == GM_NO_PAGE || there == page ? key : 0;
  assert_int_equal(out, !key ? GM_NO_PAGE : there == GM_NO_PAGE ? page : there);
}

static void call_find(model *m) {
  model_owner *owner = pick_owner(m);
  gm_page_key keys[MOST];
  uint32_t wanted[MOST];
  gm_page out[MOST];
  uint32_t count = 99, at = 0;
  for (uint32_t i = 0; i < MOST; i++) {
    wanted[i] = pick(m, KEYS);
    for (int looks = 0; looks < 9 && model_find(m, wanted[i]) == GM_NO_PAGE; looks++) wanted[i] = pick(m, KEYS);
    keys[i] = key_of(wanted[i]);
  }
  assert_int_equal(gm_pages_find(m->scene.pages, owner->number, keys, MOST, out, &count, NULL),
                   owner->number ? GM_OK : GM_ERR_INVALID_ARGUMENT);
  for (gm_page page; owner->number && at < MOST && (page = model_find(m, wanted[at])) != GM_NO_PAGE; at++) {
    assert_int_equal(out[at], page);
    model_hold(m, owner, page);
  }
  assert_int_equal(count, at);
  m->found += at;
}

static void call_drop_keys(model *m) {
  if (pick(m, 100)) return;
  assert_int_equal(gm_pages_drop_keys(m->scene.pages, NULL), GM_OK);
  for (gm_page page = 0; page < PAGES; page++) m->pages[page].key = 0;
}

static void step_begin(model *m, model_step *step) {
  step->open = true;
  for (gm_page page = 0; page < PAGES; page++) step->reads[page] = m->pages[page].count != 0;
  if (m->with_steps) assert_int_equal(gm_pages_step_begin(m->scene.pages, &step->number, NULL), GM_OK);
}

static void step_end(model *m, model_step *step, uint32_t place) {
  step->open = false;
  if (m->with_steps) assert_int_equal(gm_pages_step_end(m->scene.pages, step->number, NULL), GM_OK);
  for (gm_page page = 0; page < PAGES; page++) m->pages[page].waits &= ~(UINT64_C(1) << place);
}

static bool step_is_too_old(const model *m) {
  uint64_t newest = 0, oldest = UINT64_MAX;
  for (uint32_t i = 0; i < STEPS; i++) {
    if (m->steps[i].number > newest) newest = m->steps[i].number;
    if (m->steps[i].open && m->steps[i].number < oldest) oldest = m->steps[i].number;
  }
  return oldest != UINT64_MAX && newest - oldest + 1 >= GM_PAGE_STEPS_MOST;
}

static void call_step(model *m) {
  const uint32_t place = pick(m, STEPS);
  model_step *step = &m->steps[place];
  if (step->open)
    step_end(m, step, place);
  else if (!step_is_too_old(m) && pick(m, 3) == 0)
    step_begin(m, step);
}

static void check_all(model *m) {
  const gm_pages_stats stats = page_stats(&m->scene);
  uint32_t held = 0, idle = 0, waiting = 0;
  uint64_t holds = 0;
  for (gm_page page = 0; page < PAGES; page++) {
    held += m->pages[page].count != 0;
    holds += m->pages[page].count;
    idle += m->pages[page].idle;
    waiting += !m->pages[page].count && m->pages[page].waits;
  }
  assert_int_equal(stats.held, held);
  assert_int_equal(stats.holds, holds);
  assert_int_equal(stats.idle, idle);
  assert_int_equal(stats.free, PAGES - held - idle);
  assert_int_equal(stats.waiting, waiting);
  assert_int_equal(stats.taken, m->taken);
  assert_int_equal(stats.refused, m->refused);
  assert_int_equal(stats.found, m->found);
  assert_int_equal(stats.evicted, m->evicted);
  const model_owner *owner = pick_owner(m);
  gm_page listed[PAGES];
  uint32_t count = 0, wanted = 0;
  if (!owner->number) return;
  assert_int_equal(gm_page_owner_list(m->scene.pages, owner->number, listed, PAGES, &count, NULL), GM_OK);
  for (gm_page page = 0; page < PAGES; page++) wanted += owner->times[page] != 0;
  assert_int_equal(count, wanted);
  for (uint32_t i = 0; i < count; i++) assert_true(owner->times[listed[i]]);
  for (uint32_t i = 1; i < count; i++) assert_true(owner->since[listed[i - 1]] < owner->since[listed[i]]);
}

static void model_close(model *m) {
  for (uint32_t i = 0; i < STEPS; i++) {
    if (m->steps[i].open) step_end(m, &m->steps[i], i);
  }
  for (uint32_t i = 0; i < OWNERS; i++) {
    if (m->owners[i].number) assert_int_equal(gm_page_owner_close(m->scene.pages, m->owners[i].number, NULL), GM_OK);
  }
  assert_int_equal(page_stats(&m->scene).held, 0);
  page_scene_close(&m->scene);
}

/* Returns how often a step read wrong contents. */
static uint64_t run_model(uint64_t seed, size_t calls, bool with_steps) {
  static void (*const kinds[])(model *) = {call_owner,   call_owner,     call_owner,   call_take,    call_take,
                                           call_take,    call_take,      call_share,   call_release, call_release,
                                           call_release, call_release,   call_set_key, call_set_key, call_fork,
                                           call_find,    call_drop_keys, call_step};
  model *m = calloc(1, sizeof *m);
  assert_non_null(m);
  m->random = seed;
  m->with_steps = with_steps;
  page_scene_open(&m->scene, PAGES, RESERVE, 0, NULL);
  for (size_t i = 0; i < calls; i++) {
    kinds[pick(m, sizeof kinds / sizeof kinds[0])](m);
    if (i % 16 == 0) check_all(m);
  }
  const uint64_t wrong = m->wrong;
  printf("seed %llu: %llu taken, %llu refused, %llu found, %llu evicted, %llu wrong\n", (unsigned long long)seed,
         (unsigned long long)m->taken, (unsigned long long)m->refused, (unsigned long long)m->found,
         (unsigned long long)m->evicted, (unsigned long long)wrong);
  model_close(m);
  free(m);
  return wrong;
}

static size_t calls_asked(size_t usual) {
  const char *asked = getenv("GM_TEST_OPS");
  return asked ? (size_t)strtoull(asked, NULL, 10) : great_many(usual);
}

static void test_calls_are_those_of_the_model(void **state) {
  (void)state;
  assert_int_equal(run_model(1, calls_asked(500000), true), 0);
  const char *asked = getenv("GM_TEST_SEED");
  const uint64_t seed = asked ? strtoull(asked, NULL, 10) : (uint64_t)time(NULL);
  assert_int_equal(run_model(seed, calls_asked(500000), true), 0);
}

static void test_without_steps_contents_are_wrong(void **state) {
  (void)state;
  assert_int_not_equal(run_model(1, 10000, false), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_calls_are_those_of_the_model),
      cmocka_unit_test(test_without_steps_contents_are_wrong),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The order in which values leave the device: held against LRU on the same accesses, and held to what is busy or in
 * use. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "core/base/alloc.h"
#include "core/store/victims.h"
#include "gm/store.h"
#include "support/counted_services.h"
#include "support/store_bench.h"

/* ---- the store beside LRU ---- */

enum { ROOM = 32, KEYS = 256, VALUE_BYTES = 4096, ACCESSES = 4096 };

/* The value that was used last comes first. */
typedef struct lru {
  uint32_t keys[ROOM];
  size_t count;
  uint64_t misses;
} lru;

static void lru_use(lru *model, uint32_t key) {
  size_t at = 0;
  while (at < model->count && model->keys[at] != key) at++;
  model->misses += at == model->count;
  if (at == model->count && model->count < ROOM) model->count++;
  if (at == ROOM) at = ROOM - 1;
  memmove(model->keys + 1, model->keys, at * sizeof *model->keys);
  model->keys[0] = key;
}

static void key_of(uint32_t id, char *out, size_t bytes) { snprintf(out, bytes, "k/%u", id); }

static void use(gm_store *store, lru *model, uint32_t id) {
  char key[16];
  key_of(id, key, sizeof key);
  store_expect(store, key, id, 0, VALUE_BYTES);
  lru_use(model, id);
}

typedef struct misses {
  uint64_t store, lru;
} misses;

/* Plays accesses on a store that has ROOM values on the device, and on LRU of ROOM entries. */
static misses play(uint32_t (*next)(uint32_t step, uint64_t *seed)) {
  pool_bench bench;
  lru model = {.count = 0};
  uint64_t seed = 5;
  char key[16];
  pool_bench_open(&bench, "cpu", NULL, NULL);
  const gm_store_params params = {.max_device_bytes = ROOM * VALUE_BYTES, .keep = GM_STORE_KEEP_LONG};
  gm_store *store = store_open(bench.pool, &params);
  for (uint32_t i = 0; i < KEYS; i++) {
    key_of(i, key, sizeof key);
    store_put(store, key, i, 0, VALUE_BYTES);
    lru_use(&model, i);
  }
  const uint64_t before = model.misses;
  for (uint32_t i = 0; i < ACCESSES; i++) use(store, &model, next(i, &seed));
  const gm_store_stats stats = store_stats(store);
  assert_true(stats.device_bytes <= ROOM * VALUE_BYTES);
  assert_int_equal(stats.gets, ACCESSES);
  store_close(store);
  pool_bench_close(&bench);
  return (misses){stats.came_back, model.misses - before};
}

/* Three quarters of the room are used by turns, and every other access goes on through all other keys. */
static uint32_t next_of_scan(uint32_t step, uint64_t *seed) {
  enum { HOT = ROOM * 3 / 4 };
  return step % 2 ? HOT + step / 2 % (KEYS - HOT) : (uint32_t)(test_random(seed) % HOT);
}

/* Round and round through a little more than there is room for. */
static uint32_t next_of_loop(uint32_t step, uint64_t *seed) {
  (void)seed;
  return step % (ROOM + ROOM / 4);
}

static void test_a_scan_pushes_little_out(void **state) {
  (void)state;
  const misses got = play(next_of_scan);
  print_message("a scan beside a working set: of %d gets, the store misses %u, LRU %u\n", ACCESSES, (unsigned)got.store,
                (unsigned)got.lru);
  assert_true(got.lru > ACCESSES * 5 / 8);
  assert_true(got.store < ACCESSES * 9 / 16); /* half of them are the scan's, which nobody can hold */
}

static void test_a_loop_has_hits(void **state) {
  (void)state;
  const misses got = play(next_of_loop);
  print_message("a loop of 5/4 of the room: of %d gets, the store misses %u, LRU %u\n", ACCESSES, (unsigned)got.store,
                (unsigned)got.lru);
  assert_true(got.lru > ACCESSES * 9 / 10);
  assert_true(got.store < got.lru * 3 / 4);
}

/* ---- the order itself ---- */

typedef struct thing {
  gm__victim link; /* first */
  bool may, out;
} thing;

static gm__victim_answer thing_may(void *user, gm__victim *link) {
  ++*(unsigned *)user;
  return ((thing *)link)->may ? GM__VICTIM_GOES : GM__VICTIM_STAYS;
}

static void test_only_those_leave_that_may(void **state) {
  enum { THINGS = 100 };
  (void)state;
  static thing things[THINGS];
  gm__victims victims;
  unsigned looks = 0;
  gm__victims_init(&victims, gm__default_services());
  for (size_t i = 0; i < THINGS; i++) gm__victims_insert(&victims, &things[i].link, i * 7919, 1);
  assert_null(gm__victims_leave(&victims, thing_may, &looks));
  assert_int_equal(looks, THINGS); /* each once */
  for (size_t i = 0; i < THINGS; i += 3) things[i].may = true;
  for (size_t i = 0; i < THINGS; i += 3) {
    thing *gone = (thing *)gm__victims_leave(&victims, thing_may, &looks);
    assert_non_null(gone);
    assert_true(gone->may && !gone->out);
    gone->out = true;
  }
  assert_null(gm__victims_leave(&victims, thing_may, &looks));
  gm__victims_return(&victims, &things[30].link);
  assert_ptr_equal(gm__victims_leave(&victims, thing_may, &looks), &things[30].link);
  gm__victims_remove(&victims, &things[30].link); /* nothing: it is out */
  for (size_t i = 0; i < THINGS; i++) things[i].may = true;
  gm__victims_insert(&victims, &things[1].link, 7919, 5); /* another weight */
  gm__victims_remove(&victims, &things[2].link);
  size_t left = 0;
  while (gm__victims_leave(&victims, thing_may, &looks)) left++;
  assert_int_equal(left, THINGS - 34 - 1);
  gm__victims_drop(&victims);
}

/* Without memory for what it remembers, the order still lets everything go once. */
static void test_no_memory_to_remember(void **state) {
  (void)state;
  static thing things[200];
  counted_services counted;
  gm__victims victims;
  unsigned looks = 0, left = 0;
  counted_services_init(&counted);
  counted.fail_at = 1;
  gm__victims_init(&victims, &counted.services);
  for (size_t i = 0; i < 200; i++) {
    things[i].may = true;
    gm__victims_insert(&victims, &things[i].link, i, i % 5);
    if (i % 2) gm__victims_touch(&victims, &things[i].link);
  }
  while (gm__victims_leave(&victims, thing_may, &looks)) left++;
  assert_int_equal(left, 200);
  gm__victims_drop(&victims);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_scan_pushes_little_out), cmocka_unit_test(test_a_loop_has_hits),
      cmocka_unit_test(test_only_those_leave_that_may), cmocka_unit_test(test_no_memory_to_remember)};
  return cmocka_run_group_tests_name("store_victims", tests, NULL, NULL);
}

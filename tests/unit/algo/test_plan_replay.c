/* The engine's planner step by step, against the same rules written down as plainly as they can be: a list of holes. */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "gm/plan.h"
#include "support/counted_services.h"
#include "support/random.h"

enum { HOLES = 4096, LIVE = 512, STEPS = 60000 };

/* Sorted by offset; the last one is the open end. */
typedef struct plain {
  uint64_t offset[HOLES], bytes[HOLES], align, peak;
  uint32_t count;
} plain;

static void plain_open(plain *p, uint64_t align) {
  p->align = align;
  p->peak = 0;
  p->count = 1;
  p->offset[0] = 0;
  p->bytes[0] = UINT64_MAX / 2;
}

static uint64_t plain_pad(const plain *p, uint64_t bytes) { return (bytes + p->align - 1) / p->align * p->align; }

static uint64_t plain_alloc(plain *p, uint64_t bytes) {
  uint32_t best = p->count - 1;
  bytes = plain_pad(p, bytes);
  for (uint32_t i = 0; i + 1 < p->count; i++) {
    if (p->bytes[i] >= bytes && p->bytes[i] <= p->bytes[best]) best = i;
  }
  uint64_t offset = p->offset[best];
  p->offset[best] += bytes;
  p->bytes[best] -= bytes;
  if (best + 1 == p->count && p->offset[best] > p->peak) p->peak = p->offset[best];
  if (!p->bytes[best]) {
    p->count--;
    memmove(&p->offset[best], &p->offset[best + 1], (p->count - best) * sizeof *p->offset);
    memmove(&p->bytes[best], &p->bytes[best + 1], (p->count - best) * sizeof *p->bytes);
  }
  return offset;
}

static void plain_free(plain *p, uint64_t offset, uint64_t bytes) {
  uint32_t at = 0;
  bytes = plain_pad(p, bytes);
  while (p->offset[at] < offset) at++;
  memmove(&p->offset[at + 1], &p->offset[at], (p->count - at) * sizeof *p->offset);
  memmove(&p->bytes[at + 1], &p->bytes[at], (p->count - at) * sizeof *p->bytes);
  p->offset[at] = offset;
  p->bytes[at] = bytes;
  p->count++;
  for (uint32_t i = at + 1; i-- > (at ? at - 1 : 0);) {
    if (p->offset[i] + p->bytes[i] != p->offset[i + 1]) continue;
    p->bytes[i] += p->bytes[i + 1];
    p->count--;
    memmove(&p->offset[i + 1], &p->offset[i + 2], (p->count - i - 1) * sizeof *p->offset);
    memmove(&p->bytes[i + 1], &p->bytes[i + 2], (p->count - i - 1) * sizeof *p->bytes);
  }
}

static void replay_against_plain(uint64_t align, uint64_t seed, uint64_t largest) {
  plain *p = test_malloc(sizeof *p);
  uint64_t offsets[LIVE], sizes[LIVE], random = seed;
  uint32_t live = 0;
  gm_plan_replay *replay;
  plain_open(p, align);
  assert_int_equal(gm_plan_replay_open(NULL, align, &replay, NULL), GM_OK);
  for (uint32_t i = 0; i < STEPS; i++) {
    if (live == 0 || (live < LIVE && test_random(&random) % 100 < 53)) {
      /* Few sizes, so that equal holes are common. */
      uint64_t bytes =
          test_random(&random) % 2 ? test_log_uniform(&random, largest) : 1 + test_random(&random) % 4 * align;
      assert_int_equal(gm_plan_replay_alloc(replay, bytes, &offsets[live], NULL), GM_OK);
      assert_int_equal(offsets[live], plain_alloc(p, bytes));
      sizes[live++] = bytes;
    } else {
      uint32_t at = (uint32_t)(test_random(&random) % live);
      assert_int_equal(gm_plan_replay_free(replay, offsets[at], sizes[at], NULL), GM_OK);
      plain_free(p, offsets[at], sizes[at]);
      offsets[at] = offsets[--live];
      sizes[at] = sizes[live];
    }
    assert_int_equal(gm_plan_replay_peak(replay), p->peak);
  }
  gm_plan_replay_close(replay);
  test_free(p);
}

static void test_against_the_plain_rules(void **state) {
  (void)state;
  replay_against_plain(1, 1, 64);
  replay_against_plain(32, 2, 4096);
  replay_against_plain(128, 3, UINT64_C(1) << 33);
}

/* By hand: holes of 64 at 0, of 32 at 128, of 32 at 224. */
static void test_of_equal_holes_the_later_is_taken(void **state) {
  (void)state;
  gm_plan_replay *replay;
  uint64_t at[6], offset;
  const uint64_t sizes[6] = {64, 64, 32, 64, 32, 64};
  assert_int_equal(gm_plan_replay_open(NULL, 32, &replay, NULL), GM_OK);
  for (int i = 0; i < 6; i++) assert_int_equal(gm_plan_replay_alloc(replay, sizes[i] - 5, &at[i], NULL), GM_OK);
  for (int i = 0; i < 6; i += 2) assert_int_equal(gm_plan_replay_free(replay, at[i], sizes[i], NULL), GM_OK);
  assert_int_equal(gm_plan_replay_alloc(replay, 1, &offset, NULL), GM_OK);
  assert_int_equal(offset, 224);
  assert_int_equal(gm_plan_replay_alloc(replay, 32, &offset, NULL), GM_OK);
  assert_int_equal(offset, 128);
  assert_int_equal(gm_plan_replay_alloc(replay, 40, &offset, NULL), GM_OK);
  assert_int_equal(offset, 0);
  assert_int_equal(gm_plan_replay_alloc(replay, 40, &offset, NULL), GM_OK);
  assert_int_equal(offset, 320);
  assert_int_equal(gm_plan_replay_peak(replay), 384);
  gm_plan_replay_close(replay);
}

static void test_what_is_not_taken_is_not_freed(void **state) {
  (void)state;
  gm_plan_replay *replay;
  gm_error err;
  uint64_t a, b, c;
  assert_int_equal(gm_plan_replay_open(NULL, 16, &replay, NULL), GM_OK);
  assert_int_equal(gm_plan_replay_free(replay, 0, 16, &err), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_plan_replay_alloc(replay, 16, &a, NULL), GM_OK);
  assert_int_equal(gm_plan_replay_alloc(replay, 48, &b, NULL), GM_OK);
  assert_int_equal(gm_plan_replay_alloc(replay, 16, &c, NULL), GM_OK);
  assert_int_equal(gm_plan_replay_free(replay, b, 48, NULL), GM_OK);
  const uint64_t wrong[][2] = {
      {b, 48},      {b, 16},    {b + 16, 16},    {b + 32, 16},          {a, 32},         {b + 32, 32},          {c, 32},
      {c + 16, 16}, {a + 8, 8}, {UINT64_MAX, 1}, {UINT64_MAX - 15, 16}, {0, UINT64_MAX}, {0, UINT64_C(1) << 63}};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    assert_int_equal(gm_plan_replay_free(replay, wrong[i][0], wrong[i][1], &err), GM_ERR_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "not taken"));
  }
  assert_int_equal(gm_plan_replay_free(replay, c, 16, NULL), GM_OK);
  assert_int_equal(gm_plan_replay_free(replay, a, 16, NULL), GM_OK);
  assert_int_equal(gm_plan_replay_free(replay, 12345, 0, NULL), GM_OK); /* no bytes, no block */
  assert_int_equal(gm_plan_replay_alloc(replay, 1000, &a, NULL), GM_OK);
  assert_int_equal(a, 0); /* all of it was free again */
  gm_plan_replay_close(replay);
}

static void test_sizes_up_to_the_limit(void **state) {
  (void)state;
  gm_plan_replay *replay;
  gm_error err;
  uint64_t at = 7;
  assert_int_equal(gm_plan_replay_open(NULL, 64, &replay, NULL), GM_OK);
  assert_int_equal(gm_plan_replay_alloc(replay, 0, &at, NULL), GM_OK);
  assert_int_equal(at, 0);
  assert_int_equal(gm_plan_replay_alloc(replay, GM_PLAN_MAX_BYTES + 1, &at, &err), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_plan_replay_alloc(replay, UINT64_MAX, &at, &err), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_plan_replay_alloc(replay, GM_PLAN_MAX_BYTES, &at, NULL), GM_OK);
  assert_int_equal(gm_plan_replay_alloc(replay, 1, &at, &err), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_plan_replay_peak(replay), GM_PLAN_MAX_BYTES);
  assert_int_equal(gm_plan_replay_free(replay, 0, GM_PLAN_MAX_BYTES, NULL), GM_OK);
  gm_plan_replay_close(replay);
  assert_int_equal(gm_plan_replay_open(NULL, GM_PLAN_MAX_BYTES, &replay, NULL), GM_OK);
  assert_int_equal(gm_plan_replay_alloc(replay, 1, &at, NULL), GM_OK);
  assert_int_equal(gm_plan_replay_peak(replay), GM_PLAN_MAX_BYTES);
  gm_plan_replay_close(replay);
}

static void test_bad_arguments(void **state) {
  (void)state;
  gm_plan_replay *replay;
  gm_error err;
  uint64_t at;
  assert_int_equal(gm_plan_replay_open(NULL, 0, &replay, &err), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_plan_replay_open(NULL, 48, &replay, &err), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_plan_replay_open(NULL, 16, NULL, &err), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_plan_replay_alloc(NULL, 1, &at, &err), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_plan_replay_free(NULL, 0, 1, &err), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_plan_replay_open(NULL, 16, &replay, &err), GM_OK);
  assert_int_equal(gm_plan_replay_alloc(replay, 1, NULL, &err), GM_ERR_INVALID_ARGUMENT);
  gm_plan_replay_close(replay);
  assert_int_equal(gm_plan_replay_peak(NULL), 0);
  gm_plan_replay_close(NULL);
}

/* 300 blocks, every second one given back: more holes than there was room for. Each request for memory is refused once;
 * what failed changed nothing, and is done again. */
static gm_status replay_scene(counted_services *host) {
  enum { BLOCKS = 300 };
  gm_plan_replay *replay;
  uint64_t at[BLOCKS], next = 0;
  gm_status first = gm_plan_replay_open(&host->services, 16, &replay, NULL);
  if (first != GM_OK) return first;
  for (int i = 0; i < BLOCKS; i++) assert_int_equal(gm_plan_replay_alloc(replay, 16, &at[i], NULL), GM_OK);
  for (int i = 0; i < BLOCKS; i += 2) {
    gm_status status = gm_plan_replay_free(replay, at[i], 16, NULL);
    if (status == GM_OK) continue;
    first = status;
    assert_int_equal(gm_plan_replay_free(replay, at[i], 16, NULL), GM_OK);
  }
  for (int i = 0; i < BLOCKS; i += 2) {
    assert_int_equal(gm_plan_replay_alloc(replay, 16, &next, NULL), GM_OK);
    assert_int_equal(next, at[BLOCKS - 2 - i]);
  }
  gm_plan_replay_close(replay);
  return first;
}

static void test_without_host_memory(void **state) {
  (void)state;
  counted_services host;
  counted_services_init(&host);
  assert_int_equal(replay_scene(&host), GM_OK);
  counted_services_check(&host);
  size_t calls = host.calls;
  assert_true(calls > 3);
  for (size_t i = 1; i <= calls; i++) {
    counted_services_init(&host);
    host.fail_at = i;
    host.fail_count = 1;
    assert_int_equal(replay_scene(&host), GM_ERR_OUT_OF_HOST_MEMORY);
    counted_services_check(&host);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_against_the_plain_rules),
      cmocka_unit_test(test_of_equal_holes_the_later_is_taken),
      cmocka_unit_test(test_what_is_not_taken_is_not_freed),
      cmocka_unit_test(test_sizes_up_to_the_limit),
      cmocka_unit_test(test_bad_arguments),
      cmocka_unit_test(test_without_host_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

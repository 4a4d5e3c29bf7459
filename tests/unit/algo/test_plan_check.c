/* The proof of a plan against every pair compared, on plans that are right and on such that were spoilt. */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "gm/plan.h"
#include "support/counted_services.h"
#include "support/plan_tensors.h"

enum { SETS = 3000, MOST = 40 };

static uint64_t padded(uint64_t bytes, uint64_t align) { return (bytes + align - 1) / align * align; }

/* Tensor `b` is written in the place of `a`, which no one before it took. */
static bool in_place(const gm_plan_tensor *t, uint64_t a, uint64_t b, const uint64_t *offsets, uint64_t align) {
  if (t[b].take_over != a + 1 || t[a].last_op != t[b].first_op || offsets[a] != offsets[b]) return false;
  if (t[a].first_op == t[b].first_op) return false;
  if (padded(t[a].bytes, align) != padded(t[b].bytes, align)) return false;
  for (uint64_t i = a + 1; i < b; i++) {
    if (in_place(t, a, i, offsets, align)) return false;
  }
  return true;
}

static bool plain_check(const gm_plan_tensor *t, uint64_t count, const uint64_t *offsets) {
  uint64_t align = 1;
  for (uint64_t i = 0; i < count; i++) align = t[i].align > align ? t[i].align : align;
  for (uint64_t b = 0; b < count; b++) {
    if (!t[b].bytes) continue;
    if (t[b].align && offsets[b] % t[b].align) return false;
    for (uint64_t a = 0; a < b; a++) {
      if (!t[a].bytes || t[a].first_op > t[b].last_op || t[b].first_op > t[a].last_op) continue;
      if (offsets[a] + t[a].bytes <= offsets[b] || offsets[b] + t[b].bytes <= offsets[a]) continue;
      if (!in_place(t, a, b, offsets, align)) return false;
    }
  }
  return true;
}

static void test_every_spoilt_plan_is_found(void **state) {
  (void)state;
  uint64_t random = 23;
  uint32_t wrong = 0, right = 0;
  for (uint32_t set = 0; set < SETS; set++) {
    gm_plan_tensor tensors[MOST];
    uint64_t offsets[MOST], count = 2 + test_random(&random) % (MOST - 1), ops = 1 + test_random(&random) % 12, peak;
    plan_random_tensors(&random, tensors, count, ops, 200);
    gm_plan_policy policy = set % 2 ? GM_PLAN_BEST : GM_PLAN_ENGINE;
    assert_int_equal(gm_plan_make(NULL, policy, tensors, count, offsets, &peak, NULL), GM_OK);
    assert_true(plain_check(tensors, count, offsets));
    for (uint32_t spoil = 0; spoil < 4; spoil++) {
      uint64_t at = test_random(&random) % count, other = test_random(&random) % count;
      switch (test_random(&random) % 4) {
        case 0: offsets[at] = offsets[other]; break;
        case 1: offsets[at] += test_random(&random) % 9; break;
        case 2: offsets[at] = offsets[other] + tensors[other].bytes; break;
        default: offsets[at] = test_random(&random) % (peak + 1); break;
      }
      gm_status status = gm_plan_check(NULL, tensors, count, offsets, NULL, NULL);
      bool good = plain_check(tensors, count, offsets);
      assert_int_equal(status, good ? GM_OK : GM_ERR_FORMAT);
      *(good ? &right : &wrong) += 1;
    }
  }
  assert_true(wrong > SETS && right > SETS / 4);
}

static void test_what_is_wrong_is_said(void **state) {
  (void)state;
  gm_plan_tensor tensors[] = {{.bytes = 64, .last_op = 4}, {.bytes = 64, .align = 32, .first_op = 4, .last_op = 5}};
  uint64_t offsets[] = {0, 32}, peak = 0;
  gm_error err;
  assert_int_equal(gm_plan_check(NULL, tensors, 2, offsets, &peak, &err), GM_ERR_FORMAT);
  assert_string_equal(err.message, "tensors 0 and 1 overlap at operation 4");
  offsets[1] = 72;
  assert_int_equal(gm_plan_check(NULL, tensors, 2, offsets, &peak, &err), GM_ERR_FORMAT);
  assert_non_null(strstr(err.message, "tensor 1 at 72 is not aligned to 32"));
  offsets[1] = GM_PLAN_MAX_BYTES - 32;
  assert_int_equal(gm_plan_check(NULL, tensors, 2, offsets, &peak, &err), GM_ERR_FORMAT);
  assert_non_null(strstr(err.message, "above 2^63"));
  offsets[1] = 64;
  assert_int_equal(gm_plan_check(NULL, tensors, 2, offsets, &peak, &err), GM_OK);
  assert_int_equal(peak, 128);
  tensors[1].first_op = 5;
  offsets[1] = 0;
  assert_int_equal(gm_plan_check(NULL, tensors, 2, offsets, &peak, &err), GM_OK);
  assert_int_equal(peak, 64);
  assert_int_equal(gm_plan_check(NULL, tensors, 2, NULL, &peak, &err), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_plan_check(NULL, NULL, 0, NULL, NULL, &err), GM_OK);
}

/* A chain in one place, with a neighbour that may have the end of it only once the operand was read. */
static void test_places_that_go_on(void **state) {
  (void)state;
  gm_plan_tensor tensors[] = {
      {.bytes = 60, .align = 16, .last_op = 2},
      {.bytes = 50, .first_op = 2, .last_op = 3, .take_over = 1},
      {.bytes = 64, .first_op = 3, .last_op = 4, .take_over = 2},
      {.bytes = 64, .first_op = 3, .last_op = 3, .take_over = 2}, /* the place has gone */
      {.bytes = 10, .first_op = 2, .last_op = 2},
  };
  uint64_t offsets[5], peak, bound;
  for (int policy = GM_PLAN_ENGINE; policy <= GM_PLAN_BEST; policy++) {
    assert_int_equal(gm_plan_make(NULL, (gm_plan_policy)policy, tensors, 5, offsets, &peak, NULL), GM_OK);
    assert_true(offsets[1] == offsets[0] && offsets[2] == offsets[0] && offsets[3] != offsets[0]);
    assert_int_equal(gm_plan_check(NULL, tensors, 5, offsets, NULL, NULL), GM_OK);
    assert_int_equal(peak, 128);
  }
  assert_int_equal(gm_plan_peak_live(NULL, tensors, 5, &bound, NULL), GM_OK);
  assert_int_equal(bound, 128);
  const uint64_t tail[] = {0, 0, 0, 64, 50};
  assert_int_equal(gm_plan_check(NULL, tensors, 5, tail, NULL, NULL), GM_ERR_FORMAT);
  tensors[0].last_op = tensors[1].first_op = 1;
  assert_int_equal(gm_plan_check(NULL, tensors, 5, tail, NULL, NULL), GM_OK);
  tensors[1].bytes = 40; /* no longer as large once padded */
  assert_int_equal(gm_plan_check(NULL, tensors, 5, tail, NULL, NULL), GM_ERR_FORMAT);
}

static void test_without_host_memory(void **state) {
  (void)state;
  enum { COUNT = 200 };
  gm_plan_tensor tensors[COUNT] = {{0}};
  uint64_t offsets[COUNT], bound;
  counted_services host;
  for (uint64_t i = 0; i < COUNT; i++) {
    tensors[i] = (gm_plan_tensor){.bytes = 8, .last_op = i};
    offsets[i] = i * 8;
  }
  counted_services_init(&host);
  assert_int_equal(gm_plan_check(&host.services, tensors, COUNT, offsets, NULL, NULL), GM_OK);
  counted_services_check(&host);
  size_t calls = host.calls;
  assert_true(calls >= 7);
  for (size_t i = 1; i <= calls; i++) {
    counted_services_init(&host);
    host.fail_at = i;
    assert_int_equal(gm_plan_check(&host.services, tensors, COUNT, offsets, NULL, NULL), GM_ERR_OUT_OF_HOST_MEMORY);
    counted_services_check(&host);
  }
  counted_services_init(&host);
  host.fail_at = 3;
  assert_int_equal(gm_plan_peak_live(&host.services, tensors, COUNT, &bound, NULL), GM_ERR_OUT_OF_HOST_MEMORY);
  counted_services_check(&host);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_every_spoilt_plan_is_found),
      cmocka_unit_test(test_what_is_wrong_is_said),
      cmocka_unit_test(test_places_that_go_on),
      cmocka_unit_test(test_without_host_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Address ranges against a plain model: a byte for each unit of addresses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "backends/cpu/cpu_spans.h"
#include "support/counted_services.h"
#include "support/random.h"

enum { UNITS = 60, STEPS = 20000 };

/* 0: free; else the number of the range that holds the unit. */
static unsigned model[UNITS + 1];

static bool model_touched(unsigned begin, unsigned end) {
  for (unsigned i = begin; i < end; i++) {
    if (model[i]) return true;
  }
  return false;
}

static bool model_covered(unsigned begin, unsigned end) {
  for (unsigned i = begin; i < end; i++) {
    if (!model[i]) return false;
  }
  return true;
}

static bool model_tiled(unsigned begin, unsigned end) {
  return model_covered(begin, end) && (begin == 0 || model[begin - 1] != model[begin]) && model[end] != model[end - 1];
}

static void step(gm__cpu_spans *spans, unsigned begin, unsigned end, unsigned number) {
  const gm__cpu_span span = {begin, end};
  const bool same = model_covered(begin, end) && model[begin] == model[end - 1];
  assert_int_equal(gm__cpu_spans_touch(spans, span), model_touched(begin, end));
  assert_int_equal(gm__cpu_spans_cover(spans, span), model_covered(begin, end));
  assert_int_equal(gm__cpu_spans_tile(spans, span), model_tiled(begin, end));
  assert_int_equal(gm__cpu_spans_hold(spans, span), same);
  if (!model_touched(begin, end)) {
    assert_true(gm__cpu_spans_room(spans));
    gm__cpu_spans_add(spans, span);
    for (unsigned i = begin; i < end; i++) model[i] = number;
  } else if (model_tiled(begin, end)) {
    gm__cpu_spans_remove(spans, span);
    for (unsigned i = begin; i < end; i++) model[i] = 0;
  }
}

static void test_random_ranges(void **state) {
  (void)state;
  counted_services host;
  counted_services_init(&host);
  gm__cpu_spans spans;
  gm__cpu_spans_init(&spans, &host.services);
  uint64_t random = 20251121;
  for (unsigned i = 1; i <= STEPS; i++) {
    const unsigned begin = (unsigned)(test_random(&random) % UNITS);
    const unsigned length = 1 + (unsigned)(test_random(&random) % 6);
    step(&spans, begin, begin + length < UNITS ? begin + length : UNITS, i);
  }
  gm__cpu_spans_clear(&spans);
  counted_services_check(&host);
}

static void test_without_host_memory_all_stays(void **state) {
  (void)state;
  counted_services host;
  counted_services_init(&host);
  gm__cpu_spans spans;
  gm__cpu_spans_init(&spans, &host.services);
  host.fail_at = 2;
  uint64_t at = 0;
  while (gm__cpu_spans_room(&spans)) {
    gm__cpu_spans_add(&spans, (gm__cpu_span){at, at + 1});
    at += 2;
  }
  assert_true(at > 0);
  for (uint64_t i = 0; i < at; i += 2) assert_true(gm__cpu_spans_hold(&spans, (gm__cpu_span){i, i + 1}));
  gm__cpu_spans_clear(&spans);
  counted_services_check(&host);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_random_ranges),
      cmocka_unit_test(test_without_host_memory_all_stays),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

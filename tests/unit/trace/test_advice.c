/* The words of a trace, and the rules of advice, each at its threshold. */
#include "gm/advice.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/counted_services.h"
#include "support/great_many.h"
#include "support/test_folder.h"

static gm_trace_profile profile_of(const char *text) {
  gm_trace_profile profile = {.struct_size = sizeof profile};
  gm_error err = {.status = GM_OK};
  const char *path = temp_folder_write(&folder, "trace", text, strlen(text));
  if (gm_trace_profile_read(NULL, path, &profile, &err) != GM_OK) fail_msg("%s", err.message);
  return profile;
}

static void test_a_trace_is_counted(void **state) {
  (void)state;
  gm_trace_profile p = profile_of(
      "gmtrace 1\nm a\na 1 4096 0\na 2 4000 2\na 3 2000000 0\nf 1\nf 2 0\na 4 4096 0\nm b\na 5 4096 0\nf 5\n");
  assert_int_equal(p.events, 10);
  assert_int_equal(p.allocs, 5);
  assert_int_equal(p.frees, 3);
  assert_int_equal(p.marks, 2);
  assert_int_equal(p.total_bytes, 3 * 4096 + 4000 + 2000000);
  assert_int_equal(p.peak_live_bytes, 4096 + 4096 + 2000000);
  assert_int_equal(p.peak_live_blocks, 3);
  assert_int_equal(p.end_live_blocks, 2);
  assert_int_equal(p.end_live_bytes, 4096 + 2000000);
  assert_int_equal(p.distinct_sizes, 3);
  assert_int_equal(p.repeats, 2);
  assert_int_equal(p.small_allocs, 4);
  assert_int_equal(p.brief_allocs, 3);
  assert_int_equal(p.streams, 3);
  assert_int_equal(p.moved_frees, 1);
  assert_int_equal(p.class_peak_blocks[12], 2);
  assert_int_equal(p.class_largest_bytes[12], 4096);
  assert_int_equal(p.class_peak_blocks[21], 1);
  assert_int_equal(p.class_largest_bytes[21], 2000000);
}

static void test_an_empty_trace_is_nothing(void **state) {
  (void)state;
  char text[8] = "old";
  gm_trace_profile p = profile_of("gmtrace 1\n");
  assert_int_equal(p.events + p.streams + p.peak_live_bytes + p.distinct_sizes, 0);
  assert_int_equal(gm_trace_profile_warm_up(&p, text, sizeof text), 0);
  assert_string_equal(text, "");
  assert_int_equal(gm_advise(NULL, &p, NULL, 0), 0);
  assert_int_equal(gm_advise(NULL, NULL, NULL, 0), 0);
}

/* Sums that do not fit 64 bits stay at the top and do not come round. */
static void test_sizes_that_cannot_be(void **state) {
  (void)state;
  gm_trace_profile p = profile_of("gmtrace 1\na 1 18446744073709551615 0\na 2 10 0\nf 1\nf 2\n");
  assert_true(p.peak_live_bytes == UINT64_MAX);
  assert_true(p.total_bytes == UINT64_MAX);
  assert_int_equal(p.end_live_bytes, 0);
}

static void test_the_list_to_warm_up_is_what_the_key_takes(void **state) {
  (void)state;
  gm_trace_profile p = profile_of("gmtrace 1\na 1 4096 0\na 2 4000 2\na 3 2000000 0\na 4 3145728 0\na 5 1 0\n");
  char text[64];
  assert_int_equal(gm_trace_profile_warm_up(&p, text, sizeof text), strlen("3M:1,2000000:1,4K:2,1:1"));
  assert_string_equal(text, "3M:1,2000000:1,4K:2,1:1");
  gm_trace_profile_warm_up(&p, text, 19); /* never cut within an entry */
  assert_string_equal(text, "3M:1,2000000:1");
  gm_trace_profile_warm_up(&p, text, 3);
  assert_string_equal(text, "");
  assert_int_equal(gm_trace_profile_warm_up(NULL, text, sizeof text), 0);
  assert_int_equal(gm_trace_profile_warm_up(&p, NULL, 0), 0);
}

static size_t advise(const gm_stats *stats, const gm_trace_profile *profile, gm_advice *out) {
  return gm_advise(stats, profile, out, 1);
}

static void test_hit_rate_below_a_half(void **state) {
  (void)state;
  gm_advice advice;
  gm_trace_profile p = profile_of("gmtrace 1\na 1 4096 0\n");
  gm_stats stats = {.struct_size = sizeof stats, .allocs = 10, .stream_hits = 3, .global_hits = 2, .misses = 5};
  assert_int_equal(advise(&stats, &p, &advice), 0);
  stats = (gm_stats){.struct_size = sizeof stats, .allocs = 10, .stream_hits = 2, .global_hits = 2, .misses = 6};
  assert_int_equal(advise(&stats, &p, &advice), 1);
  assert_int_equal(advice.kind, GM_ADVICE_WARM_UP);
  assert_string_equal(advice.setting, "warmup = 4K:1");
  assert_string_equal(advice.call, "gm_pool_warm_up");
  assert_string_equal(advice.why, "hit rate 0.40 is below 0.50: 6 of 10 allocations went to the driver");
  assert_int_equal(advise(&stats, NULL, &advice), 1);
  assert_string_equal(advice.setting, "");
}

static void test_fragmentation_above_three_tenths(void **state) {
  (void)state;
  gm_advice advice;
  gm_stats stats = {.struct_size = sizeof stats, .reserved_bytes = 1000, .hole_bytes = 400, .scattered_bytes = 120};
  assert_int_equal(advise(&stats, NULL, &advice), 0);
  stats.scattered_bytes = 121;
  assert_int_equal(advise(&stats, NULL, &advice), 1);
  assert_int_equal(advice.kind, GM_ADVICE_COALESCE);
  assert_string_equal(advice.setting, "");
  assert_string_equal(advice.call, "gm_pool_compact");
  assert_string_equal(advice.why,
                      "fragmentation 0.30 is above 0.30: 121 B of 1000 B reserved lie in holes between blocks, "
                      "which moving buffers (GM_RELOCATABLE) joins");
  stats.reserved_bytes = 1210; /* a tenth of what the pool has */
  assert_int_equal(advise(&stats, NULL, &advice), 0);
}

/* Memory that is kept for reuse is no fault, however much that is. */
static void test_idle_memory_is_no_reason(void **state) {
  (void)state;
  const gm_stats stats = {.struct_size = sizeof stats,
                          .reserved_bytes = 1000,
                          .pooled_bytes = 1000,
                          .reclaimable_bytes = 1000,
                          .peak_requested_bytes = 20,
                          .peak_reserved_bytes = 1000};
  assert_int_equal(gm_advise(&stats, NULL, NULL, 0), 0);
}

/* `growth` blocks that are never freed between each two of `steps` marks, one more after the first. */
static gm_trace_profile growing(const char *first, unsigned growth, unsigned steps) {
  size_t capacity = 1 << 20;
  char *text = malloc(capacity);
  unsigned id = 0;
  assert_non_null(text);
  size_t length = (size_t)snprintf(text, capacity, "gmtrace 1\nm %s\n", first);
  for (unsigned step = 0; step < steps; step++) {
    for (unsigned i = 0; i < growth + (step == 0); i++, id++) {
      length += (size_t)snprintf(text + length, capacity - length, "a %u 100 0\na %u 5 0\nf %u\n", 2 * id, 2 * id + 1,
                                 2 * id + 1);
    }
    length += (size_t)snprintf(text + length, capacity - length, "m step\n");
  }
  gm_trace_profile p = profile_of(text);
  free(text);
  return p;
}

static void test_growth_above_a_thousand_between_marks(void **state) {
  (void)state;
  gm_advice advice;
  gm_trace_profile p = growing("params", 1000, 3); /* the 1001 parameters are meant to stay */
  assert_int_equal(p.growth_blocks, 1000);
  assert_int_equal(advise(NULL, &p, &advice), 0);
  p = growing("step", 1000, 3);
  assert_int_equal(p.growth_blocks, 1001);
  assert_int_equal(p.growth_bytes, 100100);
  assert_int_equal(p.growth_times, 1);
  assert_int_equal(advise(NULL, &p, &advice), 1);
  assert_int_equal(advice.kind, GM_ADVICE_LEAK);
  assert_string_equal(advice.setting, "track_allocations = true");
  assert_string_equal(advice.call, "gm_tracker_report");
  p = growing("step", 1200, 3);
  assert_int_equal(p.growth_times, 3);
  p = growing("start", 2000, 1); /* no mark after it but the one that ends what stays */
  assert_int_equal(p.growth_blocks, 0);
}

static void write_lines(FILE *file, const char *line, size_t count) {
  for (size_t i = 0; i < count; i++) assert_true(fputs(line, file) >= 0);
}

static void write_blocks(FILE *file, unsigned first, unsigned count) {
  for (unsigned i = 0; i < count; i++) assert_true(fprintf(file, "a %u 100 4095\n", first + i) > 0);
}

/* Two steps 2^24 marks apart are two. */
static void test_growth_among_a_great_many_marks(void **state) {
  (void)state;
  const size_t many = great_many((size_t)1 << 24);
  const char *path = temp_folder_join(&folder, "marks");
  gm_trace_profile p = {.struct_size = sizeof p};
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  write_lines(file, "gmtrace 1\n", 1);
  write_lines(file, "m s\n", 1);
  write_blocks(file, 1, 600);
  write_lines(file, "m s\n", many);
  write_blocks(file, 601, 700);
  write_lines(file, "m s\n", 1);
  assert_int_equal(fclose(file), 0);
  assert_int_equal(gm_trace_profile_read(NULL, path, &p, NULL), GM_OK);
  assert_int_equal(remove(path), 0);
  assert_int_equal(p.marks, many + 2);
  assert_int_equal(p.growth_blocks, 700);
  assert_int_equal(p.growth_bytes, 70000);
  assert_int_equal(p.growth_times, 0);
}

static void test_advice_that_does_not_fit_is_counted(void **state) {
  (void)state;
  gm_advice two[2] = {{.kind = 0}, {.kind = 0}};
  gm_trace_profile p = growing("step", 1100, 1);
  const gm_stats stats = {.struct_size = sizeof stats,
                          .allocs = 9,
                          .misses = 9,
                          .reserved_bytes = 9,
                          .hole_bytes = 8,
                          .scattered_bytes = 7};
  assert_int_equal(gm_advise(&stats, &p, two, 1), 3);
  assert_int_equal(two[0].kind, GM_ADVICE_WARM_UP);
  assert_int_equal(two[1].kind, 0);
  assert_int_equal(gm_advise(&stats, &p, two, 2), 3);
  assert_int_equal(two[1].kind, GM_ADVICE_COALESCE);
}

static void test_failures(void **state) {
  (void)state;
  gm_trace_profile p = {.struct_size = sizeof p}, small = {.struct_size = 8};
  const char *path = temp_folder_write(&folder, "bad", "gmtrace 1\na 1 0 0\n", 18);
  assert_int_equal(gm_trace_profile_read(NULL, path, &p, NULL), GM_ERR_FORMAT);
  p.struct_size = sizeof p;
  assert_int_equal(gm_trace_profile_read(NULL, "/nowhere", &p, NULL), GM_ERR_NOT_FOUND);
  assert_int_equal(gm_trace_profile_read(NULL, path, NULL, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_trace_profile_read(NULL, path, &small, NULL), GM_ERR_INVALID_ARGUMENT);
}

static void test_every_lack_of_host_memory_is_told(void **state) {
  (void)state;
  static const char text[] = "gmtrace 1\nm a\na 1 5 0\na 2 6 3\nm b\na 3 7 0\nm c\n";
  const char *path = temp_folder_write(&folder, "trace", text, sizeof text - 1);
  gm_status status = GM_ERR_OUT_OF_HOST_MEMORY;
  for (size_t n = 1; status; n++) {
    counted_services host;
    counted_services_init(&host);
    host.fail_at = n;
    host.fail_count = 1;
    gm_trace_profile p = {.struct_size = sizeof p};
    gm_error err = {.status = GM_OK};
    status = gm_trace_profile_read(&host.services, path, &p, &err);
    assert_int_equal(err.status, status);
    if (status) assert_int_equal(status, GM_ERR_OUT_OF_HOST_MEMORY);
    if (!status) assert_true(n > 5);
    counted_services_check(&host);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_trace_is_counted),
      cmocka_unit_test(test_an_empty_trace_is_nothing),
      cmocka_unit_test(test_sizes_that_cannot_be),
      cmocka_unit_test(test_the_list_to_warm_up_is_what_the_key_takes),
      cmocka_unit_test(test_hit_rate_below_a_half),
      cmocka_unit_test(test_fragmentation_above_three_tenths),
      cmocka_unit_test(test_idle_memory_is_no_reason),
      cmocka_unit_test(test_growth_above_a_thousand_between_marks),
      cmocka_unit_test(test_growth_among_a_great_many_marks),
      cmocka_unit_test(test_advice_that_does_not_fit_is_counted),
      cmocka_unit_test(test_failures),
      cmocka_unit_test(test_every_lack_of_host_memory_is_told),
  };
  return cmocka_run_group_tests(tests, folder_setup, folder_teardown);
}

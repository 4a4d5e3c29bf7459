/* Trackers: what is alive, how old, by tag, between marks; also of a pool. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <pthread.h>

#include "core/manage/tracked.h"
#include "support/pool_bench.h"

typedef struct tracker_bench {
  counted_services host;
  gm_context *ctx;
  gm_tracker *tracker;
} tracker_bench;

static void open_bench(tracker_bench *bench) {
  counted_services_init(&bench->host);
  gm_context_params params = {
      .struct_size = sizeof params, .services = &bench->host.services, .ignore_environment = true};
  pool_bench_ok(gm_context_create(&params, &bench->ctx, err));
  pool_bench_ok(gm_tracker_create(bench->ctx, &bench->tracker, err));
}

static void close_bench(tracker_bench *bench) {
  gm_tracker_destroy(bench->tracker);
  pool_bench_ok(gm_context_destroy(bench->ctx, err));
  counted_services_check(&bench->host);
}

static uint64_t track(const tracker_bench *bench, uint64_t bytes, uint32_t tag) {
  gm_track_entry entry = {.address = 0x1000, .bytes = bytes, .tag = tag, .id = 99, .mark = 99};
  return gm_tracker_track(bench->tracker, &entry);
}

static void test_totals_follow_what_is_alive(void **state) {
  (void)state;
  tracker_bench bench;
  open_bench(&bench);
  uint64_t first = track(&bench, 100, 0), second = track(&bench, 50, 0);
  assert_true(first != 0 && second > first);
  assert_int_equal(gm_tracker_count(bench.tracker), 2);
  assert_int_equal(gm_tracker_total_bytes(bench.tracker), 150);
  assert_int_equal(gm_tracker_untrack(bench.tracker, first), GM_OK);
  assert_int_equal(gm_tracker_untrack(bench.tracker, first), GM_ERR_NOT_FOUND);
  assert_int_equal(gm_tracker_untrack(bench.tracker, 0), GM_ERR_NOT_FOUND);
  assert_int_equal(gm_tracker_untrack(NULL, second), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_tracker_total_bytes(bench.tracker), 50);
  assert_int_equal(gm_tracker_peak_bytes(bench.tracker), 150);
  close_bench(&bench);
}

static void test_a_sum_past_the_end_is_not_recorded(void **state) {
  (void)state;
  tracker_bench bench;
  open_bench(&bench);
  assert_int_not_equal(track(&bench, UINT64_MAX, 0), 0);
  assert_int_equal(track(&bench, 1, 0), 0);
  assert_int_equal(gm_tracker_count(bench.tracker), 1);
  close_bench(&bench);
}

static void test_a_reserve_that_is_set_is_not_recorded(void **state) {
  (void)state;
  tracker_bench bench;
  open_bench(&bench);
  for (int i = 0; i < 2; i++) {
    gm_track_entry entry = {.bytes = 1};
    entry.reserved[i] = 1;
    assert_int_equal(gm_tracker_track(bench.tracker, &entry), 0);
  }
  assert_int_equal(gm_tracker_count(bench.tracker), 0);
  close_bench(&bench);
}

static void test_old_entries_come_oldest_first(void **state) {
  (void)state;
  tracker_bench bench;
  open_bench(&bench);
  uint64_t ids[300];
  for (int i = 0; i < 300; i++) ids[i] = track(&bench, 1, 0);
  for (int i = 0; i < 300; i += 3) assert_int_equal(gm_tracker_untrack(bench.tracker, ids[i]), GM_OK);
  gm_track_entry entries[4];
  assert_int_equal(gm_tracker_find_old(bench.tracker, 0, entries, 4), 200);
  assert_int_equal(entries[0].id, ids[1]);
  assert_int_equal(entries[1].id, ids[2]);
  assert_int_equal(entries[2].id, ids[4]);
  assert_true(entries[0].born_ns <= entries[3].born_ns);
  assert_int_equal(gm_tracker_find_old(bench.tracker, UINT64_MAX, entries, 4), 0);
  assert_int_equal(gm_tracker_find_old(bench.tracker, 0, NULL, 0), 200);
  close_bench(&bench);
}

static void test_marks_tell_what_a_step_left_behind(void **state) {
  (void)state;
  tracker_bench bench;
  open_bench(&bench);
  track(&bench, 1, 0); /* before any mark */
  assert_int_equal(gm_tracker_mark(bench.tracker), 1);
  uint64_t left = track(&bench, 2, 0), gone = track(&bench, 3, 0);
  assert_int_equal(gm_tracker_mark(bench.tracker), 2);
  track(&bench, 4, 0);
  gm_tracker_untrack(bench.tracker, gone);
  gm_track_entry entry;
  assert_int_equal(gm_tracker_find_between(bench.tracker, 1, 2, &entry, 1), 1);
  assert_int_equal(entry.id, left);
  assert_int_equal(entry.mark, 1);
  assert_int_equal(gm_tracker_find_between(bench.tracker, 0, 1, NULL, 0), 1);
  assert_int_equal(gm_tracker_find_between(bench.tracker, 0, UINT64_MAX, NULL, 0), 3);
  close_bench(&bench);
}

static void test_no_tracker_has_nothing(void **state) {
  (void)state;
  const gm_track_entry entry = {.bytes = 1};
  assert_int_equal(gm_tracker_track(NULL, &entry), 0);
  assert_int_equal(gm_tracker_untrack(NULL, 1), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_tracker_mark(NULL), 0);
  assert_int_equal(gm_tracker_count(NULL), 0);
  assert_int_equal(gm_tracker_total_bytes(NULL), 0);
  assert_int_equal(gm_tracker_peak_bytes(NULL), 0);
}

static void test_tags_are_ranked_by_bytes(void **state) {
  (void)state;
  tracker_bench bench;
  open_bench(&bench);
  uint32_t kv = gm_tag(bench.ctx, "kv"), weights = gm_tag(bench.ctx, "weights");
  track(&bench, 10, kv);
  uint64_t big = track(&bench, 500, weights);
  track(&bench, 40, kv);
  for (uint32_t tag = 1000; tag < 1020; tag++) track(&bench, 1, tag);
  gm_tag_total totals[2];
  assert_int_equal(gm_tracker_by_tag(bench.tracker, totals, 2), 22);
  assert_int_equal(totals[0].tag, weights);
  assert_int_equal(totals[1].tag, kv);
  assert_int_equal(totals[1].bytes, 50);
  assert_int_equal(totals[1].count, 2);
  gm_tracker_untrack(bench.tracker, big);
  assert_int_equal(gm_tracker_by_tag(bench.tracker, totals, 1), 22);
  assert_int_equal(totals[0].tag, kv);
  char text[8192];
  size_t length = gm_tracker_report(bench.tracker, text, sizeof text);
  assert_int_equal(length, strlen(text));
  assert_non_null(strstr(text, "22 alive"));
  assert_non_null(strstr(text, "tag kv"));
  char cut[10];
  assert_int_equal(gm_tracker_report(bench.tracker, cut, sizeof cut), length);
  assert_int_equal(strlen(cut), 9);
  assert_int_equal(gm_tracker_report(bench.tracker, NULL, 0), length);
  close_bench(&bench);
}

static void test_without_host_memory_nothing_is_recorded(void **state) {
  (void)state;
  tracker_bench bench;
  open_bench(&bench);
  for (size_t n = 1; n <= 4; n++) { /* records, ids, totals, tags */
    bench.host.fail_at = atomic_load(&bench.host.calls) + n;
    bench.host.fail_count = 1;
    uint64_t before = gm_tracker_count(bench.tracker), bytes = gm_tracker_total_bytes(bench.tracker);
    for (uint32_t i = 0; i < 200; i++) {
      if (!track(&bench, 7, (uint32_t)n * 1000 + i)) break;
      before++;
      bytes += 7;
    }
    assert_int_equal(gm_tracker_count(bench.tracker), before);
    assert_int_equal(gm_tracker_total_bytes(bench.tracker), bytes);
  }
  bench.host.fail_at = atomic_load(&bench.host.calls) + 1;
  bench.host.fail_count = 0;
  gm_error failure;
  gm_tracker *none = NULL;
  assert_int_equal(gm_tracker_create(bench.ctx, &none, &failure), GM_ERR_OUT_OF_HOST_MEMORY);
  assert_null(none);
  bench.host.fail_at = 0;
  close_bench(&bench);
}

static void test_a_context_with_a_tracker_is_busy(void **state) {
  (void)state;
  tracker_bench bench;
  open_bench(&bench);
  gm_error failure;
  assert_int_equal(gm_context_destroy(bench.ctx, &failure), GM_ERR_BUSY);
  assert_int_equal(gm_tracker_create(bench.ctx, NULL, &failure), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_tracker_create(NULL, &bench.tracker, &failure), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_tracker_track(bench.tracker, NULL), 0);
  assert_int_equal(gm_tracker_track(NULL, NULL), 0);
  gm_tracker_destroy(NULL);
  close_bench(&bench);
}

static void test_a_pool_tracks_its_blocks(void **state) {
  (void)state;
  pool_bench bench;
  gm_pool_params params = {.struct_size = sizeof params, .track = true};
  pool_bench_open(&bench, "null", "null:capacity=64M", &params);
  gm_tracker *tracker = gm_pool_tracker(bench.pool);
  gm_request request = {.bytes = 1000, .tag = gm_tag(bench.ctx, "kv")};
  gm_block block;
  assert_int_equal(gm_alloc(bench.pool, &request, &block), GM_ACQUIRE_FRESH);
  gm_track_entry entry;
  assert_int_equal(gm_tracker_find_old(tracker, 0, &entry, 1), 1);
  assert_int_equal(entry.bytes, 1000);
  assert_int_equal(entry.address, block.address);
  assert_string_equal(gm_tag_name(bench.ctx, entry.tag), "kv");
  assert_int_equal(entry.location, GM_LOCATION_DEVICE);
  gm__tracked_annotate(bench.pool, &block, 250, GM_LOCATION_PINNED);
  gm__tracker_annotate(tracker, 12345, 1, GM_LOCATION_HOST);
  assert_int_equal(gm_tracker_find_old(tracker, 0, &entry, 1), 1);
  assert_int_equal(entry.elements, 250);
  assert_int_equal(entry.location, GM_LOCATION_PINNED);
  assert_int_equal(gm_free(bench.pool, &block, NULL), GM_OK);
  assert_int_equal(gm_tracker_count(tracker), 0);
  pool_bench_close(&bench);
}

/* Many blocks go and come, of several tags, in a pool of either strategy. The tracker answers as if it had been told of
 * each by itself. */
static void check_a_crowd(const char *strategy) {
  pool_bench bench;
  gm_pool_params params = {.struct_size = sizeof params, .track = true};
  params.strategy = strcmp(strategy, "bucket") == 0 ? GM_STRATEGY_BUCKET : GM_STRATEGY_BEST_FIT;
  pool_bench_open(&bench, "null", "null:capacity=4G", &params);
  gm_tracker *tracker = gm_pool_tracker(bench.pool);
  static gm_block blocks[600];
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < 600; i++) {
    gm_request request = {.bytes = 1000 + i, .tag = i % 40};
    assert_true(gm_alloc(bench.pool, &request, &blocks[i]) <= GM_ACQUIRE_FRESH);
    bytes += request.bytes;
  }
  const uint64_t peak = bytes;
  assert_int_equal(gm_tracker_mark(tracker), 1);
  for (uint32_t i = 0; i < 600; i += 2) {
    assert_int_equal(gm_free(bench.pool, &blocks[i], NULL), GM_OK);
    bytes -= 1000 + i;
  }
  const gm_track_entry own = {.bytes = 5, .tag = 39};
  const uint64_t id = gm_tracker_track(tracker, &own);
  gm_request late = {.bytes = 7, .tag = 50};
  assert_true(gm_alloc(bench.pool, &late, &blocks[0]) <= GM_ACQUIRE_FRESH);
  assert_int_equal(gm_tracker_count(tracker), 302);
  assert_int_equal(gm_tracker_total_bytes(tracker), bytes + 12);
  assert_in_range(gm_tracker_peak_bytes(tracker), peak, peak + 5);
  gm_track_entry entries[302];
  assert_int_equal(gm_tracker_find_old(tracker, 0, entries, 302), 302);
  for (int i = 1; i < 302; i++) {
    assert_true(entries[i - 1].born_ns < entries[i].born_ns ||
                (entries[i - 1].born_ns == entries[i].born_ns && entries[i - 1].id < entries[i].id));
  }
  gm_track_entry oldest[3];
  assert_int_equal(gm_tracker_find_between(tracker, 0, 1, oldest, 3), 300);
  for (int i = 0; i < 3; i++) assert_int_equal(oldest[i].bytes, 1001 + 2 * i);
  assert_int_equal(gm_tracker_find_between(tracker, 1, 2, entries, 302), 2);
  gm_tag_total totals[41];
  assert_int_equal(gm_tracker_by_tag(tracker, totals, 41), 41);
  assert_int_equal(totals[0].tag, 39);
  assert_int_equal(totals[0].count, 16);
  assert_int_equal(totals[40].tag % 2, 0); /* freed, all of them */
  assert_int_equal(totals[40].bytes, 0);
  assert_int_equal(totals[40].peak_bytes, 1000u * 15 + totals[40].tag * 15 + 40 * 105);
  assert_int_equal(gm_tracker_untrack(tracker, id), GM_OK);
  assert_int_equal(gm_tracker_untrack(tracker, oldest[0].id), GM_OK); /* of a block that is still alive */
  assert_int_equal(gm_tracker_untrack(tracker, oldest[0].id), GM_ERR_NOT_FOUND);
  assert_int_equal(gm_tracker_count(tracker), 300);
  for (uint32_t i = 1; i < 600; i += 2) assert_int_equal(gm_free(bench.pool, &blocks[i], NULL), GM_OK);
  assert_int_equal(gm_free(bench.pool, &blocks[0], NULL), GM_OK);
  assert_int_equal(gm_tracker_count(tracker), 0);
  assert_int_equal(gm_tracker_total_bytes(tracker), 0);
  pool_bench_close(&bench);
}

static void test_a_crowd_in_arenas(void **state) {
  (void)state;
  check_a_crowd("best_fit");
}

static void test_a_crowd_in_buckets(void **state) {
  (void)state;
  check_a_crowd("bucket");
}

enum { CROWD_THREADS = 4, CROWD_TURNS = 2000 };

typedef struct crowd_worker {
  const pool_bench *bench;
  uint32_t tag;
  gm_block left;
} crowd_worker;

static void *crowd_work(void *user) {
  crowd_worker *self = user;
  for (uint32_t i = 0; i < CROWD_TURNS; i++) {
    gm_request request = {.bytes = 4096 + i % 7 * 512, .tag = self->tag};
    if (gm_alloc(self->bench->pool, &request, &self->left) > GM_ACQUIRE_FRESH) return self;
    if (i % 64 == 0) gm_tracker_count(gm_pool_tracker(self->bench->pool));
    if (i % 512 == 0) gm_tracker_report(gm_pool_tracker(self->bench->pool), NULL, 0);
    if (i + 1 < CROWD_TURNS && gm_free(self->bench->pool, &self->left, NULL) != GM_OK) return self;
  }
  return NULL;
}

/* Each thread leaves one block, which another thread frees. */
static void test_threads_are_tracked_together(void **state) {
  (void)state;
  pool_bench bench;
  gm_pool_params params = {.struct_size = sizeof params, .track = true};
  pool_bench_open(&bench, "null", "null:capacity=4G", &params);
  gm_tracker *tracker = gm_pool_tracker(bench.pool);
  crowd_worker workers[CROWD_THREADS];
  pthread_t threads[CROWD_THREADS];
  for (uint32_t i = 0; i < CROWD_THREADS; i++) {
    workers[i] = (crowd_worker){.bench = &bench, .tag = i / 2};
    assert_int_equal(pthread_create(&threads[i], NULL, crowd_work, &workers[i]), 0);
  }
  for (int i = 0; i < CROWD_THREADS; i++) {
    void *failed = NULL;
    assert_int_equal(pthread_join(threads[i], &failed), 0);
    assert_null(failed);
  }
  const uint64_t each = 4096 + (CROWD_TURNS - 1) % 7 * 512;
  gm_track_entry entries[CROWD_THREADS + 1];
  assert_int_equal(gm_tracker_find_old(tracker, 0, entries, CROWD_THREADS + 1), CROWD_THREADS);
  for (int i = 0; i < CROWD_THREADS; i++) {
    assert_int_equal(entries[i].bytes, each);
    for (int j = 0; j < i; j++) assert_int_not_equal(entries[i].id, entries[j].id);
  }
  gm_tag_total totals[2];
  assert_int_equal(gm_tracker_by_tag(tracker, totals, 2), 2);
  for (int i = 0; i < 2; i++) assert_int_equal(totals[i].bytes, 2 * each);
  for (int i = 0; i < CROWD_THREADS; i++) assert_int_equal(gm_free(bench.pool, &workers[i].left, NULL), GM_OK);
  assert_int_equal(gm_tracker_count(tracker), 0);
  pool_bench_close(&bench);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_totals_follow_what_is_alive),
      cmocka_unit_test(test_a_sum_past_the_end_is_not_recorded),
      cmocka_unit_test(test_a_reserve_that_is_set_is_not_recorded),
      cmocka_unit_test(test_old_entries_come_oldest_first),
      cmocka_unit_test(test_marks_tell_what_a_step_left_behind),
      cmocka_unit_test(test_no_tracker_has_nothing),
      cmocka_unit_test(test_tags_are_ranked_by_bytes),
      cmocka_unit_test(test_without_host_memory_nothing_is_recorded),
      cmocka_unit_test(test_a_context_with_a_tracker_is_busy),
      cmocka_unit_test(test_a_pool_tracks_its_blocks),
      cmocka_unit_test(test_a_crowd_in_arenas),
      cmocka_unit_test(test_a_crowd_in_buckets),
      cmocka_unit_test(test_threads_are_tracked_together),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

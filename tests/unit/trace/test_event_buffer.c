/* Event buffers: what has no room in a word, and events of several event buffers in one trace. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/trace/recording.h"
#include "support/record_bench.h"

static gm__recorder *open_recorder(counted_services *host) {
  gm__recorder *recorder = NULL;
  counted_services_init(host);
  pool_bench_ok(gm__recorder_open(&host->services, plain, &recorder, err));
  return recorder;
}

static void close_recorder(counted_services *host, gm__recorder *recorder) {
  gm__recorder_close(recorder, false);
  counted_services_check(host);
}

static void finish(gm__recorder *recorder, const char *expected) {
  char text[512] = "";
  gm_recording recording = {.struct_size = sizeof recording};
  pool_bench_ok(gm__recorder_finish(recorder, "# it", &recording, err));
  FILE *file = fopen(plain, "r");
  assert_non_null(file);
  const size_t length = fread(text, 1, sizeof text - 1, file);
  fclose(file);
  assert_int_equal(length, recording.file_bytes);
  assert_string_equal(text, expected);
}

static void test_every_kind_of_word(void **state) {
  (void)state;
  counted_services host;
  gm__recorder *recorder = open_recorder(&host);
  gm__event_buffer *events = gm__recorder_buffer(recorder, 3);
  const uint32_t last = (1u << GM__EVENT_NUMBER_BITS) - 1;
  const uint64_t most = (UINT64_C(1) << GM__EVENT_BYTES_BITS) - 1;
  gm__event_buffer_add(events, 1, 100, 0);
  gm__event_buffer_add(events, last, most, 0);
  gm__event_buffer_add(events, last + 1, most + 1, 0);
  gm__event_buffer_add(events, last, 0, 70);
  gm__event_buffer_add(events, 1, 0, UINT64_C(1) << 40);
  recorder->clock += UINT64_C(1) << 40; /* others did much meanwhile */
  gm__event_buffer_mark(events, "12345678", 8);
  gm__event_buffer_add(events, 1, 5, 70);
  recorder->clock += (1u << GM__EVENT_DELTA_BITS) - 1;
  gm__event_buffer_add(events, last + 1, 0, 70);
  gm__event_buffer_add(events, 1, 0, 70);
  gm__event_buffer_add(events, 1, 0, 70); /* freed before: nothing */
  finish(recorder,
         "gmtrace 1\n# it\na 1 100 0\na 2 268435455 0\na 3 268435456 0\nf 2 1\nf 1 2\nm 12345678\n"
         "a 4 5 1\nf 3 1\nf 4\n");
  close_recorder(&host, recorder);
}

/* The words of a label are passed whole, whatever its length: else they are read as events. */
static void test_labels_of_any_length(void **state) {
  (void)state;
  for (int letter = '0'; letter <= '7'; letter++) {
    counted_services host;
    gm__recorder *recorder = open_recorder(&host);
    gm__event_buffer *events = gm__recorder_buffer(recorder, 0);
    char expected[500] = "gmtrace 1\n# it\n", label[17];
    memset(label, letter, sizeof label);
    for (size_t length = 1; length <= sizeof label; length++) {
      const size_t end = strlen(expected);
      gm__event_buffer_mark(events, label, length);
      snprintf(expected + end, sizeof expected - end, "m %.*s\n", (int)length, label);
    }
    gm__event_buffer_add(events, 1, 5, 0);
    strcat(expected, "a 1 5 0\n");
    finish(recorder, expected);
    close_recorder(&host, recorder);
  }
}

static void test_event_buffers_are_merged_by_their_numbers(void **state) {
  (void)state;
  counted_services host;
  gm__recorder *recorder = open_recorder(&host);
  gm__event_buffer *first = gm__recorder_buffer(recorder, 0),
                   *second = gm__recorder_buffer(recorder, GM__RECORDER_BUFFERS - 1);
  gm__recorder_buffer(recorder, 1); /* never used */
  gm__event_buffer_add(second, 7, 10, 0);
  gm__event_buffer_add(first, 7, 20, 0);
  gm__event_buffer_add(first, 8, 30, 0);
  gm__event_buffer_add(second, 7, 0, 0);
  gm__event_buffer_add(first, 7, 0, 0);
  assert_ptr_equal(gm__recorder_buffer(recorder, 0), first);
  finish(recorder, "gmtrace 1\n# it\na 1 10 0\na 2 20 0\na 3 30 0\nf 1\nf 2\n");
  close_recorder(&host, recorder);
}

/* A mark that just has no room begins the next chunk, and nothing is left out between. */
static void test_chunks_follow_each_other(void **state) {
  (void)state;
  counted_services host;
  for (uint32_t before = 8100; before < 8200; before++) {
    gm__recorder *recorder = open_recorder(&host);
    gm__event_buffer *events = gm__recorder_buffer(recorder, 0);
    char label[GM__EVENT_LABEL_MOST];
    memset(label, 'x', sizeof label);
    for (uint32_t i = 0; i < before; i++) gm__event_buffer_add(events, 1, i % 2 ? 0 : 10, i % 2000 == 0 ? 3 : 4);
    gm__event_buffer_mark(events, label, sizeof label);
    for (uint32_t i = 0; i < 10000; i++) gm__event_buffer_add(events, 2, i % 2 ? 0 : 10, 4);
    gm_recording recording = {.struct_size = sizeof recording};
    pool_bench_ok(gm__recorder_finish(recorder, "# it", &recording, err));
    assert_int_equal(recording.marks, 1);
    assert_int_equal(recording.allocs, (before + 1) / 2 + 5000);
    assert_int_equal(recording.frees, before / 2 + 5000);
    close_recorder(&host, recorder);
  }
}

/* Streams beyond the numbers that a trace has share them. */
static void test_more_streams_than_numbers(void **state) {
  (void)state;
  counted_services host;
  gm__recorder *recorder = open_recorder(&host);
  gm__event_buffer *events = gm__recorder_buffer(recorder, 0);
  for (uint32_t i = 1; i <= 10000; i++) {
    gm__event_buffer_add(events, 1, 10, i);
    gm__event_buffer_add(events, 1, 0, i);
  }
  gm_recording recording = {.struct_size = sizeof recording};
  pool_bench_ok(gm__recorder_finish(recorder, "# it", &recording, err));
  assert_int_equal(recording.streams, GM_TRACE_STREAM_MAX + 1);
  gm_trace *trace;
  gm_trace_event event = {.struct_size = sizeof event};
  pool_bench_ok(gm_trace_open(NULL, plain, &trace, err));
  do pool_bench_ok(gm_trace_next(trace, &event, err));
  while (event.kind != GM_TRACE_END);
  gm_trace_close(trace);
  close_recorder(&host, recorder);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_every_kind_of_word),
      cmocka_unit_test(test_labels_of_any_length),
      cmocka_unit_test(test_event_buffers_are_merged_by_their_numbers),
      cmocka_unit_test(test_chunks_follow_each_other),
      cmocka_unit_test(test_more_streams_than_numbers),
  };
  return cmocka_run_group_tests(tests, record_make_folder, record_drop_folder);
}

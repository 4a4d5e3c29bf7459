/* Reading traces: the format, everything that is not the format, gzip, and files that are none. */
#include "core/trace/trace_reader.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#ifdef GM_HAVE_ZLIB
#include <zlib.h>
#endif

#include "support/counted_services.h"
#include "support/test_folder.h"
#include "test_data.h"

#define HEAD "gmtrace 1\n"

static gm_status read_to_end(gm_trace *trace, gm_error *err) {
  gm_trace_event event = {.struct_size = sizeof event};
  gm_status status;
  do status = gm_trace_next(trace, &event, err);
  while (status == GM_OK && event.kind != GM_TRACE_END);
  return status;
}

static gm_status read_text(const gm_services *services, const void *text, size_t length, gm_error *err) {
  gm_trace *trace = NULL;
  gm_status status = gm__trace_open_memory(services, text, length, "t", &trace, err);
  if (status == GM_OK) status = read_to_end(trace, err);
  gm_trace_close(trace);
  return status;
}

static gm_trace_event next(gm_trace *trace) {
  gm_trace_event event = {.struct_size = sizeof event};
  gm_error err = {0};
  if (gm_trace_next(trace, &event, &err) != GM_OK) fail_msg("%s", err.message);
  return event;
}

static void check_event(gm_trace *trace, gm_trace_kind kind, uint64_t id, uint64_t bytes, uint32_t stream,
                        uint64_t line) {
  gm_trace_event event = next(trace);
  assert_int_equal(event.kind, kind);
  assert_int_equal(event.id, id);
  assert_true(event.bytes == bytes);
  assert_int_equal(event.stream, stream);
  assert_int_equal(event.line, line);
}

/* ---- what a trace says ---- */

static void test_events_come_as_they_are_written(void **state) {
  (void)state;
  static const char text[] =
      HEAD "# by hand\nm params and more\na 0 7 0\na 4 18446744073709551615 3\nf 4\na 5 9 2\nf 5 1\nf 0\n";
  gm_trace *trace = NULL;
  assert_int_equal(gm__trace_open_memory(NULL, text, sizeof text - 1, "t", &trace, NULL), GM_OK);
  gm_trace_event mark = next(trace);
  assert_int_equal(mark.kind, GM_TRACE_MARK);
  assert_string_equal(mark.label, "params and more");
  assert_int_equal(mark.line, 3);
  check_event(trace, GM_TRACE_ALLOC, 0, 7, 0, 4);
  check_event(trace, GM_TRACE_ALLOC, 4, UINT64_MAX, 3, 5);
  check_event(trace, GM_TRACE_FREE, 4, UINT64_MAX, 3, 6); /* its size and stream are those of the allocation */
  check_event(trace, GM_TRACE_ALLOC, 5, 9, 2, 7);
  gm_trace_event freed = next(trace);
  assert_true(freed.kind == GM_TRACE_FREE && freed.has_stream && freed.stream == 1 && freed.bytes == 9);
  gm_trace_event last = next(trace);
  assert_true(last.kind == GM_TRACE_FREE && !last.has_stream && last.stream == 0 && last.id == 0);
  assert_int_equal(next(trace).kind, GM_TRACE_END);
  assert_int_equal(next(trace).kind, GM_TRACE_END);
  gm_trace_close(trace);
}

typedef struct totals {
  uint64_t events, allocs, live, peak, left;
  uint32_t streams, cross;
} totals;

static void count_event(totals *sum, const gm_trace_event *event) {
  sum->events += event->kind != GM_TRACE_MARK;
  if (event->stream >= sum->streams) sum->streams = event->stream + 1;
  if (event->kind == GM_TRACE_ALLOC) {
    sum->allocs++;
    sum->left++;
    sum->live += event->bytes;
    if (sum->live > sum->peak) sum->peak = sum->live;
  } else if (event->kind == GM_TRACE_FREE) {
    sum->left--;
    sum->live -= event->bytes;
    sum->cross += event->has_stream;
  }
}

static totals count_file(const char *path) {
  totals sum = {0};
  gm_trace *trace = NULL;
  gm_error err = {0};
  if (gm_trace_open(NULL, path, &trace, &err) != GM_OK) fail_msg("%s", err.message);
  for (gm_trace_event event = next(trace); event.kind != GM_TRACE_END; event = next(trace)) count_event(&sum, &event);
  gm_trace_close(trace);
  return sum;
}

static void test_the_shipped_traces_have_the_figures_of_their_table(void **state) {
  (void)state;
#ifndef GM_HAVE_ZLIB
  skip();
#endif
  totals dit = count_file(GM_TEST_DATA "/../../bench/traces/dit_l2_cfg.gmtrace.gz");
  assert_int_equal(dit.events, 44675);
  assert_int_equal(dit.allocs, 22463);
  assert_int_equal(dit.left, 251);
  totals multi = count_file(GM_TEST_DATA "/../../bench/traces/multistream_gpt2_bert_3s.gmtrace.gz");
  assert_int_equal(multi.events, 216087);
  assert_int_equal(multi.allocs, 108218);
  assert_int_equal(multi.left, 349);
  assert_int_equal(multi.streams, 3);
  assert_int_equal(multi.cross, 3526);
  totals resnet = count_file(GM_TEST_DATA "/../../bench/traces/resnet50_train.gmtrace.gz");
  assert_int_equal(resnet.events, 4795);
  assert_int_equal(resnet.left, 481);
  assert_int_equal(resnet.peak * 1000 / (1 << 30), 5366);
}

/* ---- what is none ---- */

typedef struct bad_text {
  const char *text;
  gm_status status;
  const char *words;
} bad_text;

static const bad_text bad_texts[] = {
    {"", GM_ERR_FORMAT, "t:0: is empty"},
    {"gmtrace 1", GM_ERR_FORMAT, "t:1: is no gmtrace file: ends without a newline"},
    {"gmtrace 1 \n", GM_ERR_FORMAT, "t:1: is no gmtrace file: begins with \"gmtrace 1 \""},
    {"gmtrace 2\n", GM_ERR_NOT_SUPPORTED, "t: format 2 is not known"},
    {"gmtrace 99999999999999999999\n", GM_ERR_FORMAT, "t:1: is no gmtrace file: begins with"},
    {"# comment\ngmtrace 1\n", GM_ERR_FORMAT, "t:1: is no gmtrace file: begins with"},
    {"gmtrace 1\r\n", GM_ERR_FORMAT, "t:1: is no gmtrace file: byte 0x0d in column 10"},
    {HEAD "\n", GM_ERR_FORMAT, "t:2: neither a, f, m"},
    {HEAD "x 1\n", GM_ERR_FORMAT, "t:2: neither a, f, m nor a comment: \"x 1\""},
    {HEAD "a\n", GM_ERR_FORMAT, "t:2: the id is missing"},
    {HEAD "alloc 1 2 3\n", GM_ERR_FORMAT, "t:2: the id is missing"},
    {HEAD "a 1\n", GM_ERR_FORMAT, "t:2: the size is missing"},
    {HEAD "a 1 2\n", GM_ERR_FORMAT, "t:2: the stream is missing"},
    {HEAD "a 1 2 0 \n", GM_ERR_FORMAT, "t:2: something behind the last field"},
    {HEAD "a  1 2 0\n", GM_ERR_FORMAT, "t:2: the id is no number"},
    {HEAD "a 1x 2 0\n", GM_ERR_FORMAT, "t:2: the id is no number"},
    {HEAD "a 0x1 2 0\n", GM_ERR_FORMAT, "t:2: the id is no number"},
    {HEAD "a -1 2 0\n", GM_ERR_FORMAT, "t:2: the id is no number"},
    {HEAD "a 1 +2 0\n", GM_ERR_FORMAT, "t:2: the size is no number"},
    {HEAD "a 1 2.5 0\n", GM_ERR_FORMAT, "t:2: the size is no number"},
    {HEAD "a 1 18446744073709551616 0\n", GM_ERR_FORMAT, "t:2: the size is over 2^64-1"},
    {HEAD "a 99999999999999999999 1 0\n", GM_ERR_FORMAT, "t:2: the id is over 2^64-1"},
    {HEAD "a 1 0 0\n", GM_ERR_FORMAT, "t:2: an allocation of 0 bytes"},
    {HEAD "a 1 1 4096\n", GM_ERR_FORMAT, "t:2: stream 4096 is over 4095"},
    {HEAD "a 1 1 18446744073709551615\n", GM_ERR_FORMAT, "t:2: stream 18446744073709551615 is over"},
    {HEAD "a 2 1 0\na 2 1 0\n", GM_ERR_FORMAT, "t:3: id 2 does not rise, the one before is 2"},
    {HEAD "a 2 1 0\nf 2\na 1 1 0\n", GM_ERR_FORMAT, "t:4: id 1 does not rise"},
    {HEAD "a 0 1 0\na 0 1 0\n", GM_ERR_FORMAT, "t:3: id 0 does not rise"},
    {HEAD "f 1\n", GM_ERR_FORMAT, "t:2: a free of id 1, which is not allocated yet"},
    {HEAD "f 0\n", GM_ERR_FORMAT, "t:2: a free of id 0, which is not allocated yet"},
    {HEAD "a 1 1 0\nf 1\nf 1\n", GM_ERR_FORMAT, "t:4: a free of id 1, which was freed before or never allocated"},
    {HEAD "a 5 1 0\nf 3\n", GM_ERR_FORMAT, "t:3: a free of id 3, which was freed before or never"},
    {HEAD "a 1 1 0\nf 1 0 0\n", GM_ERR_FORMAT, "t:3: something behind the last field"},
    {HEAD "a 1 1 0\nf 1 4096\n", GM_ERR_FORMAT, "t:3: stream 4096"},
    {HEAD "m\n", GM_ERR_FORMAT, "t:2: the label of the mark is missing"},
    {HEAD "m \n", GM_ERR_FORMAT, "t:2: the label of the mark is missing"},
    {HEAD "m a\tb\n", GM_ERR_FORMAT, "t:2: byte 0x09 in column 4"},
    {HEAD "# fine\nm x\nf 12", GM_ERR_FORMAT, "t:4: ends without a newline: the file was cut"},
};

static void test_every_line_that_is_none_is_named(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof bad_texts / sizeof bad_texts[0]; i++) {
    const bad_text *bad = &bad_texts[i];
    gm_error err = {0};
    gm_status status = read_text(NULL, bad->text, strlen(bad->text), &err);
    if (status != bad->status || strncmp(err.message, bad->words, strlen(bad->words)) != 0) {
      fail_msg("%s: %s \"%s\", not \"%s\"", bad->text, gm_status_name(status), err.message, bad->words);
    }
  }
}

static void test_a_nul_and_other_binary_is_named(void **state) {
  (void)state;
  gm_error err = {0};
  assert_int_equal(read_text(NULL, HEAD "m a\0b\n", sizeof HEAD "m a\0b\n" - 1, &err), GM_ERR_FORMAT);
  assert_string_equal(err.message, "t:2: byte 0x00 in column 4, not text");
  assert_int_equal(read_text(NULL,
                             "\x7f"
                             "ELF\n",
                             5, &err),
                   GM_ERR_FORMAT);
}

static void test_the_longest_line_is_read_and_a_longer_one_is_not(void **state) {
  (void)state;
  char text[sizeof HEAD + GM_TRACE_LINE_MAX + 8] = HEAD;
  gm_error err = {0};
  memset(text + sizeof HEAD - 1, '#', GM_TRACE_LINE_MAX + 1);
  text[sizeof HEAD - 1 + GM_TRACE_LINE_MAX] = '\n';
  assert_int_equal(read_text(NULL, text, sizeof HEAD + GM_TRACE_LINE_MAX, &err), GM_OK);
  text[sizeof HEAD - 1 + GM_TRACE_LINE_MAX] = '#';
  text[sizeof HEAD + GM_TRACE_LINE_MAX] = '\n';
  assert_int_equal(read_text(NULL, text, sizeof HEAD + GM_TRACE_LINE_MAX + 1, &err), GM_ERR_FORMAT);
  assert_string_equal(err.message, "t:2: longer than 4095 bytes");
}

static void test_a_failure_stays(void **state) {
  (void)state;
  static const char text[] = HEAD "f 1\na 1 1 0\n";
  gm_trace *trace = NULL;
  gm_trace_event event = {.struct_size = sizeof event, .id = 77};
  gm_error first = {0}, second = {0};
  assert_int_equal(gm__trace_open_memory(NULL, text, sizeof text - 1, "t", &trace, NULL), GM_OK);
  assert_int_equal(gm_trace_next(trace, &event, &first), GM_ERR_FORMAT);
  assert_int_equal(gm_trace_next(trace, &event, NULL), GM_ERR_FORMAT);
  assert_int_equal(gm_trace_next(trace, &event, &second), GM_ERR_FORMAT);
  assert_string_equal(first.message, second.message);
  assert_int_equal(event.id, 77);
  gm_trace_close(trace);
}

static void test_arguments_are_checked(void **state) {
  (void)state;
  gm_trace *trace = NULL;
  gm_trace_event event = {.struct_size = 3};
  gm_error err = {0};
  gm_services half = {.alloc = counted_alloc};
  assert_int_equal(gm_trace_open(NULL, NULL, &trace, &err), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_trace_open(NULL, "", &trace, &err), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_trace_open(NULL, "x", NULL, &err), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_trace_open(&half, "x", &trace, &err), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm__trace_open_memory(NULL, HEAD, sizeof HEAD - 1, "t", &trace, NULL), GM_OK);
  assert_int_equal(gm_trace_next(NULL, &event, &err), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_trace_next(trace, NULL, &err), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_trace_next(trace, &event, &err), GM_ERR_INVALID_ARGUMENT);
  assert_non_null(strstr(err.message, "struct_size` is 3"));
  assert_int_equal(next(trace).kind, GM_TRACE_END);
  gm_trace_close(trace);
  gm_trace_close(NULL);
}

/* ---- files ---- */

static void check_path(const char *path, gm_status wanted, const char *words) {
  gm_trace *trace = NULL;
  gm_error err = {0};
  gm_status status = gm_trace_open(NULL, path, &trace, &err);
  if (status != wanted || !strstr(err.message, words)) fail_msg("%s \"%s\"", gm_status_name(status), err.message);
  assert_null(trace);
}

static void test_what_is_no_file_is_refused(void **state) {
  (void)state;
  check_path(folder.path, GM_ERR_IO, "is a folder");
  check_path(temp_folder_join(&folder, "none"), GM_ERR_NOT_FOUND, "no such file");
  const char *pipe_path = temp_folder_join(&folder, "pipe");
  assert_int_equal(mkfifo(pipe_path, 0600), 0);
  check_path(pipe_path, GM_ERR_IO, "is a pipe");
  check_path("/dev/zero", GM_ERR_IO, "is a device");
  check_path(temp_folder_write(&folder, "empty", "", 0), GM_ERR_FORMAT, "/empty:0: is empty");
}

/* ---- memory ---- */

/* A million allocations of which two are alive at a time. */
static char *long_text(size_t events, size_t *out_length) {
  size_t capacity = events * 40 + 64, at = 0;
  char *text = malloc(capacity);
  if (!text) abort();
  at += (size_t)snprintf(text, capacity, HEAD "a 1 1 1\n");
  for (size_t i = 2; i < events; i++) {
    at += (size_t)snprintf(text + at, capacity - at, "a %zu 64 1\nf %zu\n", i, i - 1);
  }
  *out_length = at;
  return text;
}

static void test_memory_follows_what_is_live(void **state) {
  (void)state;
  counted_services host;
  counted_services_init(&host);
  size_t length = 0;
  char *text = long_text(200000, &length);
  gm_error err = {0};
  assert_int_equal(read_text(&host.services, text, length, &err), GM_OK);
  assert_true(host.peak_bytes < 80 * 1024);
  counted_services_check(&host);
  free(text);
}

static void sweep(const void *bytes, size_t length) {
  counted_services host;
  gm_status status = GM_ERR_OUT_OF_HOST_MEMORY;
  for (size_t n = 1; status == GM_ERR_OUT_OF_HOST_MEMORY; n++) {
    counted_services_init(&host);
    host.fail_at = n;
    host.fail_count = 1;
    gm_error err = {0};
    status = read_text(&host.services, bytes, length, &err);
    assert_int_equal(status, err.status);
    counted_services_check(&host);
    assert_true(n < 100);
  }
  assert_int_equal(status, GM_OK);
}

static void test_every_host_allocation_may_fail(void **state) {
  (void)state;
  static const char text[] = HEAD "a 1 1 0\na 2 1 2\na 3 1 2\nf 1\nf 2\n";
  sweep(text, sizeof text - 1);
}

/* ---- gzip ---- */

#ifdef GM_HAVE_ZLIB
static size_t pack(const void *bytes, size_t length, unsigned char *out, size_t capacity) {
  z_stream stream = {.next_in = (Bytef *)(uintptr_t)bytes, .avail_in = (uInt)length};
  assert_int_equal(deflateInit2(&stream, 9, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
  stream.next_out = out;
  stream.avail_out = (uInt)capacity;
  assert_int_equal(deflate(&stream, Z_FINISH), Z_STREAM_END);
  size_t packed = capacity - stream.avail_out;
  deflateEnd(&stream);
  return packed;
}

static void check_packed(const unsigned char *bytes, size_t length, gm_status wanted, const char *words) {
  counted_services host;
  counted_services_init(&host);
  gm_error err = {0};
  gm_status status = read_text(&host.services, bytes, length, &err);
  if (status != wanted || !strstr(err.message, words)) fail_msg("%s \"%s\"", gm_status_name(status), err.message);
  assert_true(host.peak_bytes < 256 * 1024);
  counted_services_check(&host);
}

static const char packed_text[] = HEAD "a 1 1 0\na 2 1 2\nf 1\nf 2\nm end\n";

static void test_gzip_reads_as_plain(void **state) {
  (void)state;
  unsigned char packed[512];
  size_t length = pack(packed_text, sizeof packed_text - 1, packed, sizeof packed);
  check_packed(packed, length, GM_OK, "");
  sweep(packed, length);
  size_t more = pack("a 3 1 0\n", 8, packed + length, sizeof packed - length);
  check_packed(packed, length + more, GM_OK, ""); /* two members are one file */
}

static void test_gzip_that_is_cut_at_any_byte_fails(void **state) {
  (void)state;
  unsigned char packed[512];
  size_t length = pack(packed_text, sizeof packed_text - 1, packed, sizeof packed);
  for (size_t cut = 2; cut < length; cut++) check_packed(packed, cut, GM_ERR_FORMAT, "gzip file is cut");
}

static void test_gzip_that_is_damaged_fails(void **state) {
  (void)state;
  unsigned char packed[512];
  size_t length = pack(packed_text, sizeof packed_text - 1, packed, sizeof packed);
  packed[length - 8] ^= 1;
  check_packed(packed, length, GM_ERR_FORMAT, "damaged gzip: incorrect data check");
  packed[length - 8] ^= 1;
  memcpy(packed + length, "tail", 4);
  check_packed(packed, length + 4, GM_ERR_FORMAT, "damaged gzip: incorrect header check");
}

static void test_a_gzip_bomb_takes_no_memory(void **state) {
  (void)state;
  size_t length = 64 << 20, packed_length;
  char *text = malloc(length);
  unsigned char *packed = malloc(1 << 20);
  assert_true(text && packed);
  memset(text, '#', length);
  memcpy(text, HEAD, sizeof HEAD - 1);
  packed_length = pack(text, length, packed, 1 << 20);
  check_packed(packed, packed_length, GM_ERR_FORMAT, "t:2: longer than 4095 bytes");
  free(text);
  free(packed);
}
#else
static void test_gzip_needs_zlib(void **state) {
  (void)state;
  gm_error err = {0};
  assert_int_equal(read_text(NULL, "\x1f\x8b\x08", 3, &err), GM_ERR_NOT_SUPPORTED);
  assert_non_null(strstr(err.message, "GM_WITH_ZLIB"));
}
#endif

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, folder_setup, folder_teardown)
  const struct CMUnitTest tests[] = {
      TEST(test_events_come_as_they_are_written),
      TEST(test_the_shipped_traces_have_the_figures_of_their_table),
      TEST(test_every_line_that_is_none_is_named),
      TEST(test_a_nul_and_other_binary_is_named),
      TEST(test_the_longest_line_is_read_and_a_longer_one_is_not),
      TEST(test_a_failure_stays),
      TEST(test_arguments_are_checked),
      TEST(test_what_is_no_file_is_refused),
      TEST(test_memory_follows_what_is_live),
      TEST(test_every_host_allocation_may_fail),
#ifdef GM_HAVE_ZLIB
      TEST(test_gzip_reads_as_plain),
      TEST(test_gzip_that_is_cut_at_any_byte_fails),
      TEST(test_gzip_that_is_damaged_fails),
      TEST(test_a_gzip_bomb_takes_no_memory),
#else
      TEST(test_gzip_needs_zlib),
#endif
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

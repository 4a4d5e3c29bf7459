/* Copies, fills, rectangles, mapping and commit on a real OpenCL driver, against the same done on the host. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/opencl_fixture.h"

enum { BYTES = 5000 };

static opencl_fixture f;
static uint8_t want[BYTES], got[BYTES];
static gm_memory memory;

OPENCL_FIXTURE_GROUP(f)

/* Memory with known contents on both sides. */
static void begin(uint32_t type) {
  memory = opencl_fixture_alloc(&f, type, BYTES);
  for (size_t i = 0; i < BYTES; i++) want[i] = (uint8_t)(i * 7 + i / 251);
  assert_int_equal(f.ops->copy_to_device(f.device, f.stream, &memory, 0, want, BYTES, NULL, NULL), GM_OK);
}

static void end(void) {
  memset(got, 0, sizeof got);
  assert_int_equal(f.ops->copy_to_host(f.device, f.stream, &memory, 0, got, BYTES, NULL, NULL), GM_OK);
  assert_memory_equal(got, want, BYTES);
  opencl_fixture_free(&f, &memory);
}

static void test_copies_arrive_at_odd_offsets(void **state) {
  (void)state;
  begin(0);
  const uint8_t text[] = "odd bytes";
  assert_int_equal(f.ops->copy_to_device(f.device, f.stream, &memory, 1001, text, sizeof text, NULL, NULL), GM_OK);
  memcpy(want + 1001, text, sizeof text);
  const gm_copy_item item = {&memory, 1001, &memory, 13, sizeof text};
  assert_int_equal(f.ops->copy(f.device, f.stream, &item, NULL, NULL), GM_OK);
  memcpy(want + 13, text, sizeof text);
  const gm_copy_item many[] = {
      {&memory, 13, &memory, 40, 5}, {&memory, 40, &memory, 60, 5}, {&memory, 0, &memory, 0, 0}};
  assert_int_equal(f.ops->copy_many(f.device, f.stream, many, 3, NULL, NULL), GM_OK);
  memcpy(want + 40, text, 5);
  memcpy(want + 60, text, 5);
  end();
}

static void test_an_asynchronous_copy_gives_a_point(void **state) {
  (void)state;
  gm_backend_point written = {0}, read = {0};
  begin(0);
  memset(want, 0x5a, BYTES);
  assert_int_equal(f.ops->copy_to_device(f.device, f.stream, &memory, 0, want, BYTES, &written, NULL), GM_OK);
  assert_int_equal(f.ops->copy_to_host(f.device, f.stream, &memory, 0, got, BYTES, &read, NULL), GM_OK);
  assert_int_not_equal(read.handle, 0);
  assert_int_equal(f.ops->point_wait(f.device, &read, UINT64_MAX, NULL), GM_OK);
  bool done = false;
  assert_int_equal(f.ops->point_done(f.device, &written, &done, NULL), GM_OK);
  assert_true(done); /* the queue is in order */
  assert_memory_equal(got, want, BYTES);
  f.ops->point_release(f.device, &written, GM_CLOSE_NORMAL);
  f.ops->point_release(f.device, &read, GM_CLOSE_NORMAL);
  end();
}

static void test_nothing_to_copy_is_no_failure(void **state) {
  (void)state;
  gm_backend_point point = {0};
  begin(0);
  assert_int_equal(f.ops->copy_to_device(f.device, f.stream, &memory, BYTES, want, 0, NULL, NULL), GM_OK);
  assert_int_equal(f.ops->copy_to_host(f.device, f.stream, &memory, 0, got, 0, &point, NULL), GM_OK);
  assert_int_equal(f.ops->point_wait(f.device, &point, UINT64_MAX, NULL), GM_OK);
  f.ops->point_release(f.device, &point, GM_CLOSE_NORMAL);
  const gm_copy_item item = {&memory, 0, &memory, 1, 0};
  assert_int_equal(f.ops->copy(f.device, f.stream, &item, NULL, NULL), GM_OK);
  assert_int_equal(f.ops->fill(f.device, f.stream, &memory, 3, 0, "x", 1, NULL, NULL), GM_OK);
  end();
}

static void fill_both(uint64_t at, uint64_t bytes, uint32_t pattern_bytes) {
  static const uint8_t pattern[16] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
  assert_int_equal(f.ops->fill(f.device, f.stream, &memory, at, bytes, pattern, pattern_bytes, NULL, NULL), GM_OK);
  for (uint64_t i = 0; i < bytes; i++) want[at + i] = pattern[i % pattern_bytes];
}

static void test_fills_of_every_pattern_and_ragged_ends(void **state) {
  (void)state;
  for (uint32_t pattern_bytes = 1; pattern_bytes <= 16; pattern_bytes *= 2) {
    begin(0);
    uint64_t at = 0;
    for (uint64_t bytes = 1; bytes < 64; bytes += 3) {
      fill_both(at, bytes, pattern_bytes);
      at += bytes + bytes % 5;
    }
    fill_both(2001, 2500, pattern_bytes);
    end();
  }
}

static void test_a_fill_pattern_of_another_size_is_refused(void **state) {
  (void)state;
  begin(0);
  const uint32_t sizes[] = {0, 3, 12, 32};
  for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
    gm_error err;
    assert_int_equal(f.ops->fill(f.device, f.stream, &memory, 0, 64, want, sizes[i], NULL, &err),
                     GM_ERR_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "pattern_bytes"));
  }
  end();
}

typedef struct pitches {
  uint64_t row, slice;
} pitches;

static uint64_t step(pitches side, const gm_rect *rect, uint64_t row, uint64_t slice) {
  const uint64_t row_pitch = side.row ? side.row : rect->row_bytes;
  return slice * (side.slice ? side.slice : row_pitch * rect->rows) + row * row_pitch;
}

static void rect_on_host(uint8_t *dst, const uint8_t *src, const gm_rect *rect) {
  const pitches to = {rect->dst_row_pitch, rect->dst_slice_pitch}, from = {rect->src_row_pitch, rect->src_slice_pitch};
  for (uint64_t slice = 0; slice < rect->slices; slice++) {
    for (uint64_t row = 0; row < rect->rows; row++) {
      memcpy(dst + rect->dst_offset + step(to, rect, row, slice), src + rect->src_offset + step(from, rect, row, slice),
             rect->row_bytes);
    }
  }
}

/* Boxes that OpenCL takes as they are, and those that must be cut. Their slice pitches are no multiple of the row
 * pitch, or the pitches differ on both sides. */
static const gm_rect rects[] = {
    {17, 5, 3, 11, 20, 100, 7, 31, 155}, {17, 5, 3, 11, 20, 107, 7, 31, 160}, {8, 4, 1, 3, 16, 0, 1, 9, 0},
    {24, 1, 6, 5, 3, 48, 2, 100, 31},    {16, 3, 3, 0, 0, 0, 1000, 0, 0},     {1, 20, 2, 2, 3, 0, 1, 4, 90},
};

static void test_rectangles_to_and_from_the_host(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof rects / sizeof rects[0]; i++) {
    uint8_t box[BYTES];
    begin(i % 2);
    for (size_t k = 0; k < BYTES; k++) box[k] = (uint8_t)~k;
    assert_int_equal(f.ops->rect_to_device(f.device, f.stream, &memory, box, &rects[i], NULL, NULL), GM_OK);
    rect_on_host(want, box, &rects[i]);
    uint8_t expected[BYTES];
    memset(box, 0, sizeof box);
    memset(expected, 0, sizeof expected);
    assert_int_equal(f.ops->rect_to_host(f.device, f.stream, &memory, box, &rects[i], NULL, NULL), GM_OK);
    rect_on_host(expected, want, &rects[i]);
    assert_memory_equal(box, expected, BYTES);
    end();
  }
}

static void test_rectangles_within_a_buffer_and_between_two(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof rects / sizeof rects[0]; i++) {
    gm_rect rect = rects[i];
    rect.dst_offset += 2000;
    begin(0);
    uint8_t before[BYTES];
    memcpy(before, want, sizeof before);
    assert_int_equal(f.ops->rect_copy(f.device, f.stream, &memory, &memory, &rect, NULL, NULL), GM_OK);
    rect_on_host(want, before, &rect);
    gm_memory other = opencl_fixture_alloc(&f, 0, BYTES);
    assert_int_equal(f.ops->copy_to_device(f.device, f.stream, &other, 0, before, BYTES, NULL, NULL), GM_OK);
    assert_int_equal(f.ops->rect_copy(f.device, f.stream, &memory, &other, &rects[i], NULL, NULL), GM_OK);
    rect_on_host(want, before, &rects[i]);
    end();
    opencl_fixture_free(&f, &other);
  }
}

static void test_a_mapping_shows_and_takes_the_bytes(void **state) {
  (void)state;
  for (uint32_t type = 0; type < 2; type++) {
    void *pointer = NULL;
    begin(type);
    assert_int_equal(f.ops->map(f.device, f.stream, &memory, 300, 1000, GM_MAP_READ | GM_MAP_WRITE, &pointer, NULL),
                     GM_OK);
    assert_memory_equal(pointer, want + 300, 1000);
    memset(pointer, 0x11, 1000);
    memset(want + 300, 0x11, 1000);
    assert_int_equal(f.ops->flush(f.device, &memory, 300, 1000, NULL), GM_OK);
    assert_int_equal(f.ops->unmap(f.device, f.stream, &memory, pointer, NULL), GM_OK);
    assert_int_equal(f.ops->map(f.device, f.stream, &memory, 0, 64, GM_MAP_WRITE | GM_MAP_DISCARD, &pointer, NULL),
                     GM_OK);
    memset(pointer, 0x22, 64);
    memset(want, 0x22, 64);
    assert_int_equal(f.ops->unmap(f.device, f.stream, &memory, pointer, NULL), GM_OK);
    assert_int_equal(f.ops->map(f.device, f.stream, &memory, 0, 64, 0, &pointer, NULL), GM_ERR_INVALID_ARGUMENT);
    end();
  }
}

static void test_commit_keeps_the_contents(void **state) {
  (void)state;
  begin(0);
  assert_int_equal(f.ops->commit(f.device, f.stream, &memory, 0, BYTES, NULL), GM_OK);
  assert_int_equal(f.ops->commit(f.device, f.stream, &memory, 4999, 1, NULL), GM_OK);
  assert_int_equal(f.ops->commit(f.device, f.stream, &memory, 903, 4096, NULL), GM_OK);
  assert_int_equal(f.ops->commit(f.device, f.stream, &memory, 0, 0, NULL), GM_OK);
  end();
}

static uint64_t resident_bytes(void) {
  unsigned long size = 0, resident = 0;
  FILE *file = fopen("/proc/self/statm", "r");
  assert_non_null(file);
  assert_int_equal(fscanf(file, "%lu %lu", &size, &resident), 2);
  fclose(file);
  return (uint64_t)resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* On a CPU device buffers are host memory that the system gives when it is touched. */
static void test_commit_really_takes_the_memory(void **state) {
  (void)state;
  const uint64_t bytes = 150u << 20; /* more than one round of touching */
  gm_memory_params params = {.struct_size = sizeof params, .bytes = bytes};
  gm_memory lazy, committed;
  if (!opencl_fixture_lazy(&f)) skip();
  const uint64_t before = resident_bytes();
  assert_int_equal(f.ops->memory_alloc(f.device, &params, &lazy, NULL), GM_OK);
  const uint64_t promised = resident_bytes();
  params.flags = GM_ALLOC_COMMIT;
  assert_int_equal(f.ops->memory_alloc(f.device, &params, &committed, NULL), GM_OK);
  const uint64_t taken = resident_bytes();
  assert_true(promised - before < bytes / 2);
  assert_true(taken - promised > bytes / 10 * 9);
  opencl_fixture_free(&f, &lazy);
  opencl_fixture_free(&f, &committed);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_copies_arrive_at_odd_offsets),
      cmocka_unit_test(test_an_asynchronous_copy_gives_a_point),
      cmocka_unit_test(test_nothing_to_copy_is_no_failure),
      cmocka_unit_test(test_fills_of_every_pattern_and_ragged_ends),
      cmocka_unit_test(test_a_fill_pattern_of_another_size_is_refused),
      cmocka_unit_test(test_rectangles_to_and_from_the_host),
      cmocka_unit_test(test_rectangles_within_a_buffer_and_between_two),
      cmocka_unit_test(test_a_mapping_shows_and_takes_the_bytes),
      cmocka_unit_test(test_commit_keeps_the_contents),
      cmocka_unit_test(test_commit_really_takes_the_memory),
  };
  return cmocka_run_group_tests(tests, open_all, close_all);
}

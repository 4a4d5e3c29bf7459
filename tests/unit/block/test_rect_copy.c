/* Strided copies: against a plain loop, on backends with and without boxes, in one memory and in several; hostile boxes
 * are refused. Copies into an engine's command buffer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "backends/cpu/cpu_backend.h"
#include "gm/copy.h"
#include "gm/spans.h"
#include "support/narrow_card.h"
#include "support/pool_bench.h"
#include "support/random.h"

enum { SIDE = 4096 };

static uint64_t random_below(uint64_t *seed, uint64_t end) { return test_random(seed) % end; }

/* The CPU backend as "plain", with or without boxes. */
static void open_plain(pool_bench *bench, bool boxes) {
  gm_backend_ops ops = gm__cpu_backend;
  ops.name = "plain";
  ops.api = GM_API_OTHER;
  if (!boxes) ops.rect_to_device = NULL;
  if (!boxes) ops.rect_to_host = NULL;
  if (!boxes) ops.rect_copy = NULL;
  counted_services_init(&bench->host);
  const gm_context_params params = {
      .struct_size = sizeof params, .services = &bench->host.services, .ignore_environment = true};
  pool_bench_ok(gm_context_create(&params, &bench->ctx, err));
  pool_bench_ok(gm_backend_register(bench->ctx, &ops, err));
  pool_bench_ok(gm_device_open_index(bench->ctx, "plain", 0, &bench->device, err));
  pool_bench_ok(gm_pool_create(bench->device, NULL, &bench->pool, err));
}

static gm_block take(const pool_bench *bench, uint64_t bytes) {
  const gm_request request = {.bytes = bytes};
  gm_block block;
  assert_true(gm_acquired(gm_alloc(bench->pool, &request, &block)));
  return block;
}

/* The meaning of a strided copy. */
static void copy_by_loop(unsigned char *dst, const unsigned char *src, const gm_rect *rect) {
  const uint64_t src_row = rect->src_row_pitch ? rect->src_row_pitch : rect->row_bytes;
  const uint64_t dst_row = rect->dst_row_pitch ? rect->dst_row_pitch : rect->row_bytes;
  const uint64_t src_slice = rect->src_slice_pitch ? rect->src_slice_pitch : src_row * rect->rows;
  const uint64_t dst_slice = rect->dst_slice_pitch ? rect->dst_slice_pitch : dst_row * rect->rows;
  for (uint64_t i = 0; i < rect->slices; i++) {
    for (uint64_t k = 0; k < rect->rows; k++) {
      memcpy(dst + rect->dst_offset + i * dst_slice + k * dst_row, src + rect->src_offset + i * src_slice + k * src_row,
             rect->row_bytes);
    }
  }
}

/* A box that fits into SIDE bytes on both sides. */
static gm_rect random_rect(uint64_t *seed) {
  gm_rect rect = {.row_bytes = 1 + random_below(seed, 24), .rows = 1 + random_below(seed, 6), .slices = 1};
  rect.slices += random_below(seed, 4);
  rect.src_offset = random_below(seed, 100);
  rect.dst_offset = random_below(seed, 100);
  if (random_below(seed, 2)) rect.src_row_pitch = rect.row_bytes + random_below(seed, 40);
  if (random_below(seed, 2)) rect.dst_row_pitch = rect.row_bytes + random_below(seed, 40);
  if (random_below(seed, 2)) rect.src_slice_pitch = 64 * rect.rows + random_below(seed, 100);
  if (random_below(seed, 2)) rect.dst_slice_pitch = 64 * rect.rows + random_below(seed, 100);
  return rect;
}

typedef struct boxes {
  unsigned char from[SIDE], to[SIDE], want[SIDE];
  gm_block a, b;
} boxes;

static void fill_boxes(const pool_bench *bench, boxes *data, uint64_t *seed) {
  for (size_t i = 0; i < SIDE; i++) {
    data->from[i] = (unsigned char)random_below(seed, 256);
    data->to[i] = data->want[i] = (unsigned char)random_below(seed, 256);
  }
  pool_bench_ok(gm_block_write(bench->pool, &data->a, 0, data->from, SIDE, NULL, NULL, err));
  pool_bench_ok(gm_block_write(bench->pool, &data->b, 0, data->to, SIDE, NULL, NULL, err));
}

/* direction: 0 write, 1 read, 2 copy. */
static void move_box(const pool_bench *bench, boxes *data, const gm_rect *rect, int direction, gm_stream *stream,
                     gm_point *out) {
  gm_pool *pool = bench->pool;
  if (direction == 0) pool_bench_ok(gm_block_write_rect(pool, &data->b, data->from, rect, stream, out, err));
  if (direction == 1) pool_bench_ok(gm_block_read_rect(pool, &data->a, data->to, rect, stream, out, err));
  if (direction == 2) pool_bench_ok(gm_block_copy_rect(pool, &data->b, pool, &data->a, rect, stream, out, err));
}

static void check_boxes(pool_bench *bench, uint64_t seed) {
  static boxes data;
  gm_stream *stream;
  pool_bench_ok(gm_stream_create(bench->device, &stream, err));
  data.a = take(bench, SIDE);
  data.b = take(bench, SIDE);
  for (int i = 0; i < 300; i++) {
    const gm_rect rect = random_rect(&seed);
    const int direction = i % 3;
    gm_point point = {0};
    fill_boxes(bench, &data, &seed);
    copy_by_loop(data.want, data.from, &rect);
    move_box(bench, &data, &rect, direction, i % 2 ? stream : NULL, i % 4 == 1 ? &point : NULL);
    pool_bench_ok(gm_point_wait(bench->device, &point, UINT64_MAX, err));
    gm_point_release(bench->device, &point);
    if (direction != 1) pool_bench_ok(gm_block_read(bench->pool, &data.b, 0, data.to, SIDE, stream, NULL, err));
    assert_memory_equal(data.to, data.want, SIDE);
  }
  assert_int_equal(gm_free(bench->pool, &data.a, stream), GM_OK);
  assert_int_equal(gm_free(bench->pool, &data.b, stream), GM_OK);
  pool_bench_ok(gm_stream_close(stream, err));
}

static void test_boxes_as_a_loop_moves_them(void **state) {
  (void)state;
  for (int boxes_there = 0; boxes_there < 2; boxes_there++) {
    pool_bench bench;
    open_plain(&bench, boxes_there);
    check_boxes(&bench, 7 + (uint64_t)boxes_there);
    pool_bench_close(&bench);
  }
}

/* A block of several memories has no one box: rows go one by one, and some lie across the border. */
static void test_a_block_of_several_memories(void **state) {
  (void)state;
  const uint64_t mib = UINT64_C(1) << 20, wanted = 10 * mib;
  const gm_rect rect = {.row_bytes = mib / 2,
                        .rows = 5,
                        .slices = 2,
                        .src_row_pitch = mib,
                        .src_slice_pitch = 5 * mib,
                        .dst_offset = 77,
                        .dst_row_pitch = 9 * mib / 10,
                        .dst_slice_pitch = 9 * mib / 2};
  pool_bench bench;
  gm_block block;
  unsigned char *data = malloc(wanted), *got = malloc(wanted), *want = calloc(1, wanted);
  uint64_t seed = 11;
  narrow_card_open(&bench, 64 * mib, GM_STRATEGY_BEST_FIT, (gm_pool_params){0});
  const gm_request request = {.bytes = wanted, .flags = GM_ALLOW_SPANS};
  assert_true(gm_acquired(gm_alloc(bench.pool, &request, &block)));
  assert_int_equal(block.address, 0);
  for (size_t i = 0; i < wanted; i++) data[i] = (unsigned char)test_random(&seed);
  copy_by_loop(want, data, &rect);
  pool_bench_ok(gm_block_fill(bench.pool, &block, 0, wanted, "", 1, NULL, NULL, err));
  pool_bench_ok(gm_block_write_rect(bench.pool, &block, data, &rect, NULL, NULL, err));
  pool_bench_ok(gm_block_read(bench.pool, &block, 0, got, wanted, NULL, NULL, err));
  assert_memory_equal(got, want, wanted);
  const gm_rect beyond = {.row_bytes = 8, .rows = 2, .slices = 1, .dst_row_pitch = wanted};
  assert_int_equal(gm_block_write_rect(bench.pool, &block, data, &beyond, NULL, NULL, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_free(bench.pool, &block, NULL), GM_OK);
  pool_bench_close(&bench);
  free(data);
  free(got);
  free(want);
}

static void test_hostile_boxes_are_refused(void **state) {
  (void)state;
  static const uint64_t most = UINT64_MAX, half = UINT64_C(1) << 63;
  const gm_rect wrong[] = {
      {.row_bytes = SIDE + 1, .rows = 1, .slices = 1},
      {.row_bytes = 1, .rows = SIDE + 1, .slices = 1},
      {.row_bytes = 1, .rows = 1, .slices = SIDE + 1},
      {.row_bytes = most, .rows = most, .slices = most},
      {.row_bytes = 2, .rows = half, .slices = 1},
      {.row_bytes = 2, .rows = 2, .slices = half},
      {.row_bytes = 8, .rows = 2, .slices = 1, .src_row_pitch = 7},
      {.row_bytes = 8, .rows = 2, .slices = 1, .dst_row_pitch = 7},
      {.row_bytes = 8, .rows = 2, .slices = 2, .src_slice_pitch = 15},
      {.row_bytes = 8, .rows = 2, .slices = 2, .dst_slice_pitch = 15},
      {.row_bytes = 8, .rows = 2, .slices = 1, .src_row_pitch = most, .dst_row_pitch = most},
      {.row_bytes = 8, .rows = 2, .slices = 2, .src_slice_pitch = half, .dst_slice_pitch = half},
      {.row_bytes = 8, .rows = 1, .slices = 1, .src_offset = most, .dst_offset = most},
      {.row_bytes = 8, .rows = 1, .slices = 1, .src_offset = most - 7, .dst_offset = most - 7},
      {.row_bytes = 8, .rows = 3, .slices = 1, .src_row_pitch = half, .dst_row_pitch = half},
  };
  pool_bench bench;
  gm_error why;
  char bytes[16];
  open_plain(&bench, true);
  gm_pool *pool = bench.pool;
  gm_block a = take(&bench, SIDE), b = take(&bench, SIDE), gone = b;
  gone.check += 2;
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    assert_int_equal(gm_block_write_rect(pool, &a, bytes, &wrong[i], NULL, NULL, &why), GM_ERR_INVALID_ARGUMENT);
    assert_int_equal(gm_block_read_rect(pool, &a, bytes, &wrong[i], NULL, NULL, &why), GM_ERR_INVALID_ARGUMENT);
    assert_int_equal(gm_block_copy_rect(pool, &a, pool, &b, &wrong[i], NULL, NULL, &why), GM_ERR_INVALID_ARGUMENT);
  }
  const gm_rect fine = {.row_bytes = 8, .rows = 1, .slices = 1}, empty = {.row_bytes = 8, .src_row_pitch = 1};
  assert_int_equal(gm_block_write_rect(pool, &a, NULL, &fine, NULL, NULL, &why), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_block_read_rect(pool, &a, NULL, &fine, NULL, NULL, &why), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_block_write_rect(pool, &a, bytes, NULL, NULL, NULL, &why), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_block_write_rect(pool, NULL, bytes, &fine, NULL, NULL, &why), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_block_write_rect(NULL, &a, bytes, &fine, NULL, NULL, &why), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_block_read_rect(pool, &gone, bytes, &fine, NULL, NULL, &why), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_block_copy_rect(pool, &a, pool, NULL, &fine, NULL, NULL, &why), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_block_copy_rect(pool, NULL, pool, &a, &fine, NULL, NULL, &why), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_block_write_rect(pool, &gone, bytes, &empty, NULL, NULL, &why), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_block_write_rect(pool, &a, NULL, &empty, NULL, NULL, &why), GM_OK);
  assert_int_equal(gm_block_copy_rect(pool, &a, pool, &b, &empty, NULL, NULL, &why), GM_OK);
  /* host memory that ends behind all addresses */
  const gm_rect far = {.row_bytes = 8, .rows = 2, .slices = 1, .src_row_pitch = UINT64_MAX - 64};
  assert_int_equal(gm_block_write_rect(pool, &a, bytes, &far, NULL, NULL, &why), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_free(pool, &a, NULL), GM_OK);
  assert_int_equal(gm_free(pool, &b, NULL), GM_OK);
  pool_bench_close(&bench);
}

/* In one block: the bytes of both sides, by a map of them. */
static bool share_bytes(const gm_rect *rect) {
  static unsigned char there[SIDE];
  memset(there, 0, sizeof there);
  for (uint64_t i = 0; i < rect->slices; i++) {
    for (uint64_t k = 0; k < rect->rows; k++) {
      memset(there + rect->src_offset + i * rect->src_slice_pitch + k * rect->src_row_pitch, 1, rect->row_bytes);
    }
  }
  for (uint64_t i = 0; i < rect->slices; i++) {
    for (uint64_t k = 0; k < rect->rows; k++) {
      const uint64_t at = rect->dst_offset + i * rect->dst_slice_pitch + k * rect->dst_row_pitch;
      if (memchr(there + at, 1, rect->row_bytes)) return true;
    }
  }
  return false;
}

static void test_overlap_in_one_block_is_found_exactly(void **state) {
  (void)state;
  uint64_t seed = 3;
  int refused = 0, moved = 0;
  pool_bench bench;
  open_plain(&bench, true);
  gm_block block = take(&bench, SIDE);
  for (int i = 0; i < 3000; i++) {
    gm_rect rect = {.row_bytes = 1 + random_below(&seed, 12),
                    .rows = 1 + random_below(&seed, 5),
                    .slices = 1 + random_below(&seed, 3),
                    .src_offset = random_below(&seed, 300),
                    .dst_offset = random_below(&seed, 300)};
    rect.src_row_pitch = rect.dst_row_pitch = rect.row_bytes + random_below(&seed, 30);
    rect.src_slice_pitch = rect.dst_slice_pitch = rect.src_row_pitch * rect.rows + random_below(&seed, 60);
    /* Pitches of a single row or slice part nothing. */
    if (rect.rows == 1)
      rect.dst_row_pitch = rect.row_bytes + random_below(&seed, 1 + rect.src_row_pitch - rect.row_bytes);
    if (rect.slices == 1) rect.dst_slice_pitch += random_below(&seed, 60);
    const bool shared = share_bytes(&rect);
    const gm_status status = gm_block_copy_rect(bench.pool, &block, bench.pool, &block, &rect, NULL, NULL, NULL);
    assert_int_equal(status, shared ? GM_ERR_INVALID_ARGUMENT : GM_OK);
    refused += shared;
    moved += !shared;
  }
  assert_true(refused > 300 && moved > 300);
  gm_rect mixed = {.row_bytes = 4, .rows = 4, .slices = 1, .src_row_pitch = 8, .dst_row_pitch = 16, .dst_offset = 4};
  assert_int_equal(gm_block_copy_rect(bench.pool, &block, bench.pool, &block, &mixed, NULL, NULL, NULL),
                   GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_free(bench.pool, &block, NULL), GM_OK);
  pool_bench_close(&bench);
}

static void test_command_buffers_are_refused_where_there_are_none(void **state) {
  (void)state;
  pool_bench bench;
  gm_error why;
  open_plain(&bench, true);
  gm_pool *pool = bench.pool;
  gm_block a = take(&bench, SIDE), b = take(&bench, SIDE);
  assert_int_equal(gm_block_copy_record(pool, &a, 0, pool, &b, 0, 16, 1, &why), GM_ERR_NOT_SUPPORTED);
  assert_non_null(strstr(why.message, "plain"));
  assert_int_equal(gm_block_copy_record(pool, &a, 0, pool, &b, 0, 16, 0, &why), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_block_copy_record(pool, &a, 0, pool, &b, SIDE, 16, 1, &why), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_block_copy_record(pool, &a, 0, pool, &a, 8, 16, 1, &why), GM_ERR_INVALID_ARGUMENT);
  assert_non_null(strstr(why.op, "gm_block_copy_record"));
  assert_int_equal(gm_block_copy_record(pool, NULL, 0, pool, &a, 8, 16, 1, &why), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_free(pool, &a, NULL), GM_OK);
  assert_int_equal(gm_free(pool, &b, NULL), GM_OK);
  pool_bench_close(&bench);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_boxes_as_a_loop_moves_them),
      cmocka_unit_test(test_a_block_of_several_memories),
      cmocka_unit_test(test_hostile_boxes_are_refused),
      cmocka_unit_test(test_overlap_in_one_block_is_found_exactly),
      cmocka_unit_test(test_command_buffers_are_refused_where_there_are_none),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

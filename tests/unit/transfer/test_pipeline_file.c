/* Files at the ends of a pipeline: every part of a file by every way, and files that shrink, fail, or are full. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>
/* cmocka wants those above before it */
#include <cmocka.h>

#include "gm/context.h"
#include "gm/pipeline.h"
#include "support/adopt_scene.h"
#include "support/codec_scene.h"
#include "support/file_bytes.h"
#include "support/test_folder.h"

enum { ITEM = 8192, BYTES = 10 * ITEM + 1234, PIECES = 11, MASK = 0x5a };

static gm_context *ctx;
static gm_device *device;
static gm_pool *pool;
static gm_pipeline *pipeline;
static gm_pipeline_params params;
static gm_file *in, *out;
static char in_path[4096];
static int cut_at; /* the step that cuts the file of the source; -1: none */
static uint64_t cut_to;
static int stepped;
static unsigned char came[2 * BYTES];

/* Output: the input with a mask; without output it is remembered. */
static gm_status step_piece(void *user, gm_pipeline_item *item, gm_error *err) {
  (void)user;
  const unsigned char *from = (const unsigned char *)(uintptr_t)item->in.address;
  unsigned char *to = (unsigned char *)(uintptr_t)item->out.address;
  if (item->stream && gm_stream_sync(item->stream, err) != GM_OK) return err->status;
  if (stepped == cut_at) assert_int_equal(truncate(in_path, (off_t)cut_to), 0);
  stepped++;
  item->out_bytes = params.out_bytes ? item->bytes : 0;
  for (uint64_t i = 0; i < item->out_bytes; i++) to[i] = from[i] ^ MASK;
  if (!params.out_bytes) memcpy(came + item->index * ITEM, from, (size_t)item->bytes);
  return GM_OK;
}

static gm_status refuse_all(void *user, const void *host, uint64_t bytes, uint64_t index) {
  (void)user, (void)host, (void)bytes, (void)index;
  return GM_ERR_IO;
}

static gm_status nothing(void *user, void *host, uint64_t most, uint64_t *out_bytes) {
  (void)user, (void)host, (void)most, (void)out_bytes;
  return GM_OK;
}

static void write_in(void) { snprintf(in_path, sizeof in_path, "%s", file_bytes_write(&folder, "in", 1, BYTES)); }

static void open_in(gm_way way) {
  gm_error err;
  gm_file_close(in);
  adopt_scene_ok(gm_file_open(in_path, way, &in, &err), &err);
  params.from = (gm_pipeline_file){.file = in};
}

static void open_out(uint64_t bytes, gm_way way) {
  gm_error err;
  gm_file_close(out);
  adopt_scene_ok(gm_file_create(temp_folder_join(&folder, "out"), bytes, way, &out, &err), &err);
  params.out_bytes = ITEM;
  params.to = (gm_pipeline_file){.file = out};
}

static int begin(void **state) {
  gm_error err;
  const gm_pool_params pool_params = {.struct_size = sizeof pool_params};
  folder_setup(state);
  write_in();
  ctx = adopt_scene_context("cpu", NULL);
  adopt_scene_ok(gm_device_open_index(ctx, "cpu", 0, &device, &err), &err);
  adopt_scene_ok(gm_pool_create(device, &pool_params, &pool, &err), &err);
  params = (gm_pipeline_params){.struct_size = sizeof params, .item_bytes = ITEM, .in_pool = pool, .step = step_piece};
  pipeline = NULL;
  in = out = NULL;
  cut_at = -1;
  stepped = 0;
  memset(came, 0, sizeof came);
  return 0;
}

static void end_pipeline(void) {
  gm_error err;
  adopt_scene_ok(gm_pipeline_destroy(pipeline, &err), &err);
  pipeline = NULL;
  stepped = 0;
}

static int end(void **state) {
  end_pipeline();
  gm_file_close(in);
  gm_file_close(out);
  adopt_scene_end_pool(ctx, device, pool);
  return folder_teardown(state);
}

static gm_pipeline_stats run(gm_status wanted, gm_error *err) {
  gm_pipeline_stats stats = {.struct_size = sizeof stats};
  *err = (gm_error){.status = GM_OK};
  adopt_scene_ok(gm_pipeline_create(device, &params, &pipeline, err), err);
  const gm_status status = gm_pipeline_run(pipeline, &stats, err);
  if (status != wanted) fail_msg("%d: %s", (int)status, err->message);
  return stats;
}

/* "out" has the bytes of the input from `from` on, with the mask, `at` bytes behind its begin. */
static void check_out(uint64_t from, uint64_t bytes, uint64_t at) {
  gm_file *file = NULL;
  gm_error err;
  adopt_scene_ok(gm_file_commit(out, &err), &err);
  gm_file_close(out);
  out = NULL;
  adopt_scene_ok(gm_file_open(temp_folder_join(&folder, "out"), GM_WAY_CACHE, &file, &err), &err);
  assert_int_equal(gm_file_size(file), at + bytes);
  adopt_scene_ok(gm_file_read(file, 0, came, at + bytes, &err), &err);
  gm_file_close(file);
  for (uint64_t i = 0; i < at; i++) assert_int_equal(came[i], 0);
  for (uint64_t i = 0; i < bytes; i++) assert_int_equal(came[at + i], file_byte(1, from + i) ^ MASK);
}

static void a_file_becomes_a_file(void **state) {
  (void)state;
  static const gm_way ways[] = {GM_WAY_AUTO, GM_WAY_CACHE, GM_WAY_DIRECT};
  gm_error err;
  for (int i = 0; i < 3; i++) {
    open_in(ways[i]);
    open_out(BYTES, ways[i]);
    const gm_pipeline_stats stats = run(GM_OK, &err);
    assert_int_equal(stats.items, PIECES);
    assert_int_equal(stats.read_bytes, BYTES);
    assert_int_equal(stats.written_bytes, BYTES);
    adopt_scene_ok(gm_pipeline_run(pipeline, NULL, &err), &err); /* it is at its end: no more */
    end_pipeline();
    check_out(0, BYTES, 0);
  }
}

/* Begins and ends beside blocks and pieces, at both ends. */
static void a_part_of_a_file(void **state) {
  (void)state;
  static const uint64_t parts[][2] = {{1, 1}, {4096, 8192}, {4095, 8193}, {777, 3 * ITEM}, {BYTES - 1, 1}};
  gm_error err;
  for (int i = 0; i < 5; i++) {
    open_in(i % 2 ? GM_WAY_MAP : GM_WAY_DIRECT);
    open_out(0, GM_WAY_AUTO);
    params.from.offset = parts[i][0];
    params.from.bytes = parts[i][1];
    params.to.offset = (uint64_t)i * 1000;
    params.to.bytes = parts[i][1];
    run(GM_OK, &err);
    end_pipeline();
    check_out(parts[i][0], parts[i][1], (uint64_t)i * 1000);
  }
}

static void only_one_end_is_a_file(void **state) {
  (void)state;
  gm_error err;
  open_in(GM_WAY_AUTO);
  const gm_pipeline_stats stats = run(GM_OK, &err);
  assert_int_equal(stats.items, PIECES);
  for (uint64_t i = 0; i < BYTES; i++) assert_int_equal(came[i], file_byte(1, i));
  assert_int_equal(gm_pipeline_push(pipeline, came, 1, 0, &err), GM_ERR_INVALID_ARGUMENT);
  assert_non_null(strstr(err.message, "file in `from`"));
  end_pipeline();
  params.from.file = NULL;
  open_out(0, GM_WAY_AUTO);
  adopt_scene_ok(gm_pipeline_create(device, &params, &pipeline, &err), &err);
  for (int i = 0; i < 3; i++) {
    unsigned char piece[100];
    for (uint64_t k = 0; k < sizeof piece; k++) piece[k] = file_byte(1, (uint64_t)i * sizeof piece + k);
    adopt_scene_ok(gm_pipeline_push(pipeline, piece, sizeof piece, UINT64_MAX, &err), &err);
  }
  adopt_scene_ok(gm_pipeline_flush(pipeline, NULL, &err), &err);
  assert_int_equal(gm_pipeline_run(pipeline, NULL, &err), GM_ERR_INVALID_ARGUMENT);
  check_out(0, 300, 0);
}

static void codecs_stand_between_file_and_device(void **state) {
  (void)state;
  gm_error err;
  open_in(GM_WAY_AUTO);
  params.from.bytes = 10 * ITEM;
  params.in_codec = codec("bf16");
  params.read_bytes = ITEM;
  params.item_bytes = ITEM / 2;
  const gm_pipeline_stats stats = run(GM_OK, &err);
  assert_int_equal(stats.read_bytes, 10 * ITEM);
  assert_int_equal(stats.up_bytes, 5 * ITEM);
}

/* The file loses its end while a piece is on the device. */
static void a_file_that_shrinks(void **state) {
  (void)state;
  gm_error err;
  char byte[64];
  for (int way = GM_WAY_CACHE; way <= GM_WAY_MAP; way++) {
    write_in();
    open_in((gm_way)way);
    open_out(BYTES, GM_WAY_CACHE);
    params.depth = 2;
    cut_at = 3;
    cut_to = 6 * ITEM + 100;
    const gm_pipeline_stats stats = run(GM_ERR_IO, &err);
    snprintf(byte, sizeof byte, "from byte %d on: ", (int)stats.failed_item * ITEM);
    assert_non_null(strstr(err.message, "stage read"));
    assert_non_null(strstr(err.message, byte));
    if (!strstr(err.message, in_path)) fail_msg("%s", err.message);
    assert_int_equal(stats.failed, GM_STAGE_READ);
    assert_in_range(stats.failed_item, 4, 6); /* a mapping is not touched any more */
    assert_int_equal(stats.items, stats.failed_item);
    assert_int_equal(gm_pipeline_run(pipeline, NULL, &err), GM_ERR_IO);
    end_pipeline();
  }
}

static void an_output_of_too_many_bytes(void **state) {
  (void)state;
  gm_error err;
  open_in(GM_WAY_AUTO);
  open_out(BYTES, GM_WAY_AUTO);
  params.to.bytes = 2 * ITEM;
  const gm_pipeline_stats stats = run(GM_ERR_OVER_LIMIT, &err);
  assert_int_equal(stats.failed, GM_STAGE_WRITE);
  assert_int_equal(stats.failed_item, 2);
  assert_int_equal(stats.written_bytes, 2 * ITEM);
  assert_non_null(strstr(err.message, "stage write"));
  assert_non_null(strstr(err.message, "8192 bytes at 16384"));
  assert_non_null(strstr(err.message, "out"));
}

static void a_write_that_fails(void **state) {
  (void)state;
  gm_error err;
  open_in(GM_WAY_AUTO);
  open_out(0, GM_WAY_CACHE);
  params.to.offset = INT64_MAX - ITEM - 10; /* no file is so long */
  const gm_pipeline_stats stats = run(gm_file_write(out, params.to.offset, came, ITEM, NULL), &err);
  assert_int_equal(stats.failed, GM_STAGE_WRITE);
  assert_int_equal(stats.failed_item, 0);
  assert_non_null(strstr(err.message, "from byte 9223372036854767605 on: "));
  assert_int_equal(gm_file_commit(out, &err), GM_ERR_IO); /* the earlier file stays */
}

static void refuse(const char *word) {
  gm_error err;
  assert_int_equal(gm_pipeline_create(device, &params, &pipeline, &err), GM_ERR_INVALID_ARGUMENT);
  assert_null(pipeline);
  if (!strstr(err.message, word)) fail_msg("`%s` is not in: %s", word, err.message);
}

#define REFUSED(member, value, word)          \
  do {                                        \
    const gm_pipeline_params before = params; \
    params.member = value, refuse(word);      \
    params = before;                          \
  } while (0)

static void wrong_parameters(void **state) {
  (void)state;
  open_in(GM_WAY_AUTO);
  open_out(0, GM_WAY_AUTO);
  REFUSED(source, nothing, "a `source` and a file in `from`");
  REFUSED(sink, refuse_all, "a `sink` and a file in `to`");
  REFUSED(from.file, out, "from gm_file_create");
  REFUSED(to.file, in, "not from gm_file_create");
  REFUSED(to.file, NULL, "needs a `sink`");
  REFUSED(out_bytes, 0, "needs `out_bytes`");
  REFUSED(from.offset, BYTES + 1, "end behind the file");
  REFUSED(from.bytes, BYTES + 1, "end behind the file");
  REFUSED(from.bytes, UINT64_MAX, "end behind the file");
  params.from.offset = BYTES; /* nothing is left: no piece */
  gm_error err;
  const gm_pipeline_stats stats = run(GM_OK, &err);
  assert_int_equal(stats.items, 0);
}

int main(void) {
#define FILE_TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
  const struct CMUnitTest tests[] = {
      FILE_TEST(a_file_becomes_a_file),  FILE_TEST(a_part_of_a_file),
      FILE_TEST(only_one_end_is_a_file), FILE_TEST(codecs_stand_between_file_and_device),
      FILE_TEST(a_file_that_shrinks),    FILE_TEST(an_output_of_too_many_bytes),
      FILE_TEST(a_write_that_fails),     FILE_TEST(wrong_parameters),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

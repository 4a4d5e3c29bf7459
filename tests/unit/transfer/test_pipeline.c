/* A pipeline on the CPU: order and contents, pieces of any size, both ways to feed it, and every failure on the way. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* cmocka wants those above before it */
#include <cmocka.h>

#include "gm/context.h"
#include "gm/pipeline.h"
#include "support/adopt_scene.h"

enum { ITEM = 1000, OUT = 500, NOBODY = -1 };

static gm_context *ctx;
static gm_device *device;
static gm_pool *pool;
static gm_pipeline *pipeline;
static gm_pipeline_params params;

static struct { /* what the callbacks do, and saw */
  int pieces, read, stepped, written, fail_read, fail_step, fail_write, cancel_at;
  uint64_t give, raise; /* bytes too many */
} scene;

static uint64_t piece_bytes(int index) { return ITEM - (uint64_t)(index % 7) * 100; }
static uint64_t result_bytes(uint64_t index) { return index % 5 == 4 ? 0 : OUT - index % 3; }

static gm_status read_piece(void *user, void *host, uint64_t most, uint64_t *out_bytes) {
  assert_ptr_equal(user, &scene);
  assert_int_equal(most, ITEM);
  if (scene.read == scene.fail_read) return GM_ERR_IO;
  if (scene.read == scene.pieces) return GM_OK; /* *out_bytes is 0 */
  *out_bytes = piece_bytes(scene.read) + scene.give;
  memset(host, scene.read + 1, (size_t)piece_bytes(scene.read));
  scene.read++;
  return GM_OK;
}

/* The work of a kernel, on the CPU's own memory. */
static void work(const gm_pipeline_item *item) {
  const unsigned char *in = (const unsigned char *)(uintptr_t)item->in.address;
  unsigned char *out = (unsigned char *)(uintptr_t)item->out.address;
  if (item->stream) adopt_scene_ok(gm_stream_sync(item->stream, NULL), NULL);
  for (uint64_t i = 0; i < item->bytes; i++) assert_int_equal(in[i], (unsigned char)(item->index + 1));
  if (item->out_bytes) memset(out, in[0] ^ 0x5a, (size_t)item->out_bytes);
}

static gm_status step_piece(void *user, gm_pipeline_item *item, gm_error *err) {
  (void)user;
  if (scene.stepped == scene.fail_step) {
    snprintf(err->message, sizeof err->message, "the kernel is unwell");
    err->status = GM_ERR_DRIVER;
    return GM_ERR_DRIVER;
  }
  assert_int_equal(item->index, scene.stepped);
  assert_int_equal(item->bytes, piece_bytes(scene.stepped));
  item->out_bytes = params.out_bytes ? result_bytes(item->index) : 0;
  work(item);
  item->out_bytes += scene.raise;
  scene.stepped++;
  return GM_OK;
}

static gm_status write_piece(void *user, const void *host, uint64_t bytes, uint64_t index) {
  (void)user;
  assert_int_equal(index, scene.written);
  assert_int_equal(bytes, result_bytes(index));
  for (uint64_t i = 0; i < bytes; i++) {
    assert_int_equal(((const unsigned char *)host)[i], (unsigned char)(index + 1) ^ 0x5a);
  }
  if (scene.written == scene.fail_write) return GM_ERR_IO;
  scene.written++;
  if (scene.written == scene.cancel_at) gm_pipeline_cancel(pipeline);
  return GM_OK;
}

static int begin(void **state) {
  (void)state;
  gm_error err;
  const gm_pool_params pool_params = {.struct_size = sizeof pool_params};
  ctx = adopt_scene_context("cpu", NULL);
  adopt_scene_ok(gm_device_open_index(ctx, "cpu", 0, &device, &err), &err);
  adopt_scene_ok(gm_pool_create(device, &pool_params, &pool, &err), &err);
  memset(&scene, 0, sizeof scene);
  scene.pieces = 40;
  scene.fail_read = scene.fail_step = scene.fail_write = NOBODY;
  params = (gm_pipeline_params){.struct_size = sizeof params,
                                .item_bytes = ITEM,
                                .out_bytes = OUT,
                                .in_pool = pool,
                                .source = read_piece,
                                .step = step_piece,
                                .sink = write_piece,
                                .user = &scene};
  pipeline = NULL;
  return 0;
}

static int end(void **state) {
  (void)state;
  gm_error err;
  adopt_scene_ok(gm_pipeline_destroy(pipeline, &err), &err);
  adopt_scene_end_pool(ctx, device, pool);
  return 0;
}

static void make(void) {
  gm_error err;
  adopt_scene_ok(gm_pipeline_create(device, &params, &pipeline, &err), &err);
}

/* Runs into `status`, in `stage`, at `item`; the figures say so, and so does every later call. */
static void run_into(gm_status status, gm_pipeline_stage stage, uint64_t item, const char *word) {
  gm_error err;
  gm_pipeline_stats stats = {.struct_size = sizeof stats};
  make();
  assert_int_equal(gm_pipeline_run(pipeline, &stats, &err), status);
  assert_non_null(strstr(err.message, word));
  assert_int_equal(err.status, status);
  assert_int_equal(stats.status, status);
  assert_int_equal(stats.failed, stage);
  assert_int_equal(stats.failed_item, item);
  assert_int_equal(stats.items, scene.written);
  assert_int_equal(gm_pipeline_run(pipeline, NULL, &err), status);
  assert_non_null(strstr(err.message, word));
  assert_int_equal(gm_pipeline_flush(pipeline, NULL, NULL), status);
}

static void pieces_come_out_in_order(void **state) {
  (void)state;
  gm_error err;
  for (params.depth = 0; params.depth <= 16; params.depth += 1 + params.depth / 2) {
    gm_pipeline_stats stats = {.struct_size = sizeof stats};
    scene.read = scene.stepped = scene.written = 0;
    make();
    adopt_scene_ok(gm_pipeline_run(pipeline, &stats, &err), &err);
    assert_int_equal(scene.written, scene.pieces);
    assert_int_equal(stats.items, scene.pieces);
    assert_int_equal(stats.status, GM_OK);
    assert_int_equal(stats.failed, GM_STAGE_NONE);
    if (params.depth) assert_int_equal(stats.depth, params.depth);
    assert_true(stats.host_bytes >= ITEM && stats.host_bytes <= UINT64_C(2) * 16 * ITEM);
    uint64_t up = 0, down = 0;
    for (int i = 0; i < scene.pieces; i++) up += piece_bytes(i), down += result_bytes((uint64_t)i);
    assert_int_equal(stats.up_bytes, up);
    assert_int_equal(stats.down_bytes, down);
    adopt_scene_ok(gm_pipeline_destroy(pipeline, &err), &err);
    pipeline = NULL;
  }
}

static void a_source_may_have_more_later(void **state) {
  (void)state;
  gm_error err;
  make();
  adopt_scene_ok(gm_pipeline_run(pipeline, NULL, &err), &err);
  adopt_scene_ok(gm_pipeline_run(pipeline, NULL, &err), &err); /* nothing to read */
  assert_int_equal(scene.written, 40);
  scene.pieces = 43;
  adopt_scene_ok(gm_pipeline_run(pipeline, NULL, &err), &err);
  assert_int_equal(scene.written, 43);
}

static void without_output_nothing_comes_down(void **state) {
  (void)state;
  gm_error err;
  gm_pipeline_stats stats = {.struct_size = sizeof stats};
  params.out_bytes = 0;
  params.sink = NULL;
  make();
  adopt_scene_ok(gm_pipeline_run(pipeline, &stats, &err), &err);
  assert_int_equal(scene.stepped, 40);
  assert_int_equal(stats.items, 40);
  assert_int_equal(stats.down_bytes, 0);
}

static void pieces_are_pushed(void **state) {
  (void)state;
  gm_error err;
  unsigned char piece[ITEM];
  gm_pipeline_stats stats = {.struct_size = sizeof stats};
  params.source = NULL;
  make();
  for (int i = 0; i < 25; i++) {
    memset(piece, i + 1, sizeof piece);
    adopt_scene_ok(gm_pipeline_push(pipeline, piece, piece_bytes(i), UINT64_MAX, &err), &err);
    memset(piece, 0xee, sizeof piece); /* the caller's again */
  }
  adopt_scene_ok(gm_pipeline_flush(pipeline, &stats, &err), &err);
  assert_int_equal(scene.written, 25);
  assert_int_equal(stats.items, 25);
  assert_int_equal(gm_pipeline_push(pipeline, piece, 0, 0, &err), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_pipeline_push(pipeline, piece, ITEM + 1, 0, &err), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_pipeline_push(pipeline, NULL, 1, 0, &err), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_pipeline_run(pipeline, NULL, &err), GM_ERR_INVALID_ARGUMENT);
  memset(piece, 26, sizeof piece); /* wrong arguments are no failure of the pipeline */
  adopt_scene_ok(gm_pipeline_push(pipeline, piece, piece_bytes(25), UINT64_MAX, &err), &err);
  adopt_scene_ok(gm_pipeline_flush(pipeline, NULL, &err), &err);
  assert_int_equal(scene.written, 26);
}

static void a_source_fails(void **state) {
  (void)state;
  scene.fail_read = 7;
  run_into(GM_ERR_IO, GM_STAGE_READ, 7, "piece 7, stage read");
  assert_int_equal(scene.written, 7); /* what came before is out */
}

static void a_source_gives_too_much(void **state) {
  (void)state;
  scene.give = ITEM;
  run_into(GM_ERR_INVALID_ARGUMENT, GM_STAGE_READ, 0, "1000");
  assert_int_equal(scene.stepped, 0);
}

static void a_step_fails(void **state) {
  (void)state;
  scene.fail_step = 9;
  run_into(GM_ERR_DRIVER, GM_STAGE_STEP, 9, "piece 9, stage step: the kernel is unwell");
  assert_int_equal(scene.written, 9);
}

static void a_step_raises_its_output(void **state) {
  (void)state;
  scene.raise = OUT;
  run_into(GM_ERR_INVALID_ARGUMENT, GM_STAGE_STEP, 0, "out_bytes");
  assert_int_equal(scene.written, 0);
}

static void a_sink_fails(void **state) {
  (void)state;
  scene.fail_write = 4;
  run_into(GM_ERR_IO, GM_STAGE_WRITE, 4, "piece 4, stage write");
  assert_int_equal(scene.written, 4); /* nothing is written after it */
}

static void it_is_cancelled(void **state) {
  (void)state;
  gm_error err;
  gm_pipeline_stats stats = {.struct_size = sizeof stats};
  scene.pieces = 1000;
  scene.cancel_at = 11;
  make();
  assert_int_equal(gm_pipeline_run(pipeline, &stats, &err), GM_ERR_CANCELLED);
  assert_int_equal(stats.status, GM_ERR_CANCELLED);
  assert_int_equal(stats.failed, GM_STAGE_NONE);
  assert_in_range(scene.written, 11, 11 + 6);
  assert_int_equal(scene.written, scene.read); /* all that was read is out */
  assert_int_equal(gm_pipeline_run(pipeline, NULL, &err), GM_ERR_CANCELLED);
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
  gm_stream *other = NULL;
  REFUSED(struct_size, 3, "struct_size");
  REFUSED(item_bytes, 0, "item_bytes");
  REFUSED(item_bytes, UINT64_MAX, "larger");
  REFUSED(out_bytes, UINT64_MAX, "larger");
  REFUSED(depth, 17, "depth");
  REFUSED(step, NULL, "step");
  REFUSED(sink, NULL, "sink");
  REFUSED(in_pool, NULL, "in_pool");
  REFUSED(request.bytes, 4, "request");
  assert_int_equal(gm_pipeline_create(NULL, &params, &pipeline, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_pipeline_create(device, NULL, &pipeline, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_pipeline_create(device, &params, NULL, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_pipeline_run(NULL, NULL, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_pipeline_flush(NULL, NULL, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_pipeline_push(NULL, &other, 1, 0, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_pipeline_destroy(NULL, NULL), GM_OK);
  gm_pipeline_cancel(NULL);
}

/* A pool whose bound lies below what the pipeline needs. */
static void memory_runs_out(void **state) {
  (void)state;
  gm_error err;
  params.item_bytes = 1u << 20;
  params.out_bytes = 0;
  gm_pool *small = NULL;
  const gm_pool_params small_params = {.struct_size = sizeof small_params, .max_bytes = 2u << 20};
  adopt_scene_ok(gm_pool_create(device, &small_params, &small, &err), &err);
  params.in_pool = small;
  params.depth = 5;
  assert_int_equal(gm_pipeline_create(device, &params, &pipeline, &err), GM_ERR_OVER_LIMIT);
  assert_null(pipeline);
  adopt_scene_ok(gm_pool_destroy(small, &err), &err); /* no block is left in it */
}

int main(void) {
#define PIPELINE_TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
  const struct CMUnitTest tests[] = {
      PIPELINE_TEST(pieces_come_out_in_order),
      PIPELINE_TEST(a_source_may_have_more_later),
      PIPELINE_TEST(without_output_nothing_comes_down),
      PIPELINE_TEST(pieces_are_pushed),
      PIPELINE_TEST(a_source_fails),
      PIPELINE_TEST(a_source_gives_too_much),
      PIPELINE_TEST(a_step_fails),
      PIPELINE_TEST(a_step_raises_its_output),
      PIPELINE_TEST(a_sink_fails),
      PIPELINE_TEST(it_is_cancelled),
      PIPELINE_TEST(wrong_parameters),
      PIPELINE_TEST(memory_runs_out),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

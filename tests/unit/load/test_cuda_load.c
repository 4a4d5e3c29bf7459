/* A load into memory of a card, on the simulated CUDA driver and its link model. Each byte crosses the link once, out
 * of page-locked slots, and host memory is bounded. Every byte is read back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* cmocka wants those above before it */
#include <cmocka.h>

#include "core/device/device.h"
#include "core/device/stream.h"
#include "gm/copy.h"
#include "gm/load.h"
#include "support/adopt_scene.h"
#include "support/cuda_fixture.h"
#include "support/file_bytes.h"
#include "support/link_model.h"
#include "support/test_folder.h"

enum { TENSORS = 24, EACH = 60001, ALL = TENSORS * EACH };

static gm_context *ctx;
static gm_device *device;
static gm_pool *pool;
static gm_model *model;
static link_journal journal;

/* Tensors begin anywhere. Their bytes are those of file 3. */
static void open_model(void) {
  static char header[TENSORS * 100];
  static unsigned char file[sizeof header + 8 + ALL];
  size_t length = 0;
  gm_error err;
  for (int i = 0; i < TENSORS; i++) {
    length += (size_t)snprintf(header + length, sizeof header - length,
                               "%s\"t%02d\":{\"dtype\":\"U8\",\"shape\":[%d],\"data_offsets\":[%d,%d]}", i ? "," : "{",
                               i, EACH, i * EACH, (i + 1) * EACH);
  }
  length += (size_t)snprintf(header + length, sizeof header - length, "}");
  for (int i = 0; i < 8; i++) file[i] = (unsigned char)(length >> 8 * i);
  memcpy(file + 8, header, length);
  for (uint64_t i = 0; i < ALL; i++) file[8 + length + i] = file_byte(3, i);
  const char *path = temp_folder_write(&folder, "model", file, 8 + length + ALL);
  adopt_scene_ok(gm_model_open(NULL, path, &model, &err), &err);
}

static int begin(void **state) {
  gm_error err;
  folder_setup(state);
  open_model();
  cuda_say("reload");
  cuda_say("set LATENCY_US 0");
  cuda_say("set LINK h2d:20000:3,d2h:20000:3,pageable:5000");
  ctx = adopt_scene_context("cuda", getenv("GM_CUDA_LIBRARY"));
  adopt_scene_ok(gm_device_open_index(ctx, "cuda", 0, &device, &err), &err);
  adopt_scene_ok(gm_pool_create(device, NULL, &pool, &err), &err);
  return 0;
}

static int end(void **state) {
  char left[1024];
  gm_error err;
  gm_model_close(model);
  adopt_scene_ok(gm_pool_destroy(pool, &err), &err);
  adopt_scene_end(ctx, device);
  if (cuda_script("leaks", left, sizeof left)) fail_msg("left at the driver:\n%s", left);
  return folder_teardown(state);
}

static void take_journal(void) {
  static link_journal_copy *copy;
  if (!copy) cuda_entry("simCudaJournal", &copy);
  link_journal_take(&journal, copy);
}

static gm_load_result load(const gm_load_params *params, gm_loaded_model **out) {
  gm_load_result result = {.struct_size = sizeof result};
  gm_error err;
  adopt_scene_ok(gm_model_load(model, pool, params, out, &result, &err), &err);
  return result;
}

static void check_and_release(gm_loaded_model *loaded) {
  static unsigned char got[EACH];
  gm_error err;
  for (uint64_t i = 0; i < TENSORS; i++) {
    gm_block block;
    assert_int_equal(gm_loaded_model_block(loaded, i, &block, NULL), GM_OK);
    adopt_scene_ok(gm_block_read(pool, &block, 0, got, EACH, NULL, NULL, &err), &err);
    for (uint64_t j = 0; j < EACH; j++) {
      if (got[j] != file_byte(3, i * EACH + j)) fail_msg("byte %d of %d", (int)j, (int)i);
    }
  }
  assert_int_equal(gm_loaded_model_release(loaded, NULL), GM_OK);
}

static void test_each_byte_crosses_the_link_once_from_locked_memory(void **state) {
  (void)state;
  static const gm_load_path paths[] = {GM_LOAD_PATH_READ, GM_LOAD_PATH_DIRECT, GM_LOAD_PATH_AUTO};
  for (int i = 0; i < 3; i++) {
    const gm_load_params params = {.struct_size = sizeof params, .path = paths[i], .chunk_bytes = 262144};
    gm_loaded_model *loaded = NULL;
    cuda_say("zero");
    take_journal();
    const uint64_t before = link_bytes(&journal, GM__LINK_H2D);
    const gm_load_result result = load(&params, &loaded);
    take_journal();
    assert_int_equal(link_bytes(&journal, GM__LINK_H2D) - before, ALL);
    for (size_t j = 0; j < journal.count; j++) {
      const gm__link_entry *line = &journal.lines[j];
      if (line->kind == GM__LINK_H2D) assert_false(line->pageable);
    }
    assert_true(result.peak_host_bytes > 16384 && result.peak_host_bytes < 262144 + 20000);
    check_and_release(loaded);
  }
}

static void test_verified_through_slots(void **state) {
  (void)state;
  const gm_load_path paths[] = {GM_LOAD_PATH_READ, GM_LOAD_PATH_DIRECT, GM_LOAD_PATH_MMAP};
  for (int i = 0; i < 6; i++) {
    const gm_load_params params = {.struct_size = sizeof params,
                                   .path = paths[i % 3],
                                   .verify = true,
                                   .threads = i < 3 ? 1 : 4,
                                   .chunk_bytes = i % 2 ? 4096 : 262144};
    gm_loaded_model *loaded = NULL;
    const gm_load_result result = load(&params, &loaded);
    assert_true(result.verified);
    check_and_release(loaded);
  }
}

/* A byte on the card changes after it was loaded, and gm's pool does not know. */
typedef struct spoiler {
  gm_memory memory;
  uint64_t offset;
  gm_stream *stream;
  bool done;
} spoiler;

static bool spoil(void *user, const gm_load_progress *progress) {
  spoiler *s = user;
  static unsigned char wrong;
  gm_error err;
  if (!progress->verifying || s->done) return true;
  wrong = (unsigned char)~file_byte(3, 7 * EACH + 100);
  s->done = true;
  adopt_scene_ok(device->ops->copy_to_device(device->handle, s->stream->handle, &s->memory, s->offset + 100, &wrong, 1,
                                             NULL, &err),
                 &err);
  adopt_scene_ok(gm_stream_sync(s->stream, &err), &err);
  return true;
}

static void test_a_wrong_byte_on_the_card_is_found(void **state) {
  (void)state;
  spoiler s = {.done = false};
  const gm_load_params first = {.struct_size = sizeof first};
  gm_load_params params = {.struct_size = sizeof params, .verify = true, .progress = spoil, .user = &s};
  gm_loaded_model *loaded = NULL;
  gm_block block;
  gm_error err = {0};
  adopt_scene_ok(gm_stream_create(device, &s.stream, &err), &err);
  load(&first, &loaded); /* the second load puts the tensor where the first one does */
  assert_int_equal(gm_loaded_model_block(loaded, 7, &block, NULL), GM_OK);
  assert_int_equal(gm_block_memory(pool, &block, &s.memory, &s.offset), GM_OK);
  assert_int_equal(gm_loaded_model_release(loaded, NULL), GM_OK);
  loaded = NULL;
  const gm_status status = gm_model_load(model, pool, &params, &loaded, NULL, &err);
  assert_true(s.done);
  assert_int_equal(status, GM_ERR_IO);
  assert_non_null(strstr(err.message, "tensor \"t07\" of "));
  assert_non_null(strstr(err.message, "read back, it differs from what was loaded"));
  adopt_scene_ok(gm_stream_close(s.stream, &err), &err);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
  const struct CMUnitTest tests[] = {
      TEST(test_each_byte_crosses_the_link_once_from_locked_memory),
      TEST(test_verified_through_slots),
      TEST(test_a_wrong_byte_on_the_card_is_found),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

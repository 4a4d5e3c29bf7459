/* Loads that several threads read, and that go through slots: every byte arrives, by every way, in any order. The
 * files between them and the disk are played. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "support/load_scene.h"
#include "support/played_reads.h"

enum { MANY = 40, EACH = 30001, ALL = MANY * EACH, SKIP = 3 };

static gm_model *many;
static unsigned char found[EACH];

/* Tensors that begin anywhere. */
static int many_setup(void **state) {
  static char header[MANY * 100];
  size_t length = 0;
  setup(state);
  for (int i = 0; i < MANY; i++) {
    const int begin = i * EACH;
    length += (size_t)snprintf(header + length, sizeof header - length,
                               "%s\"t%02d\":{\"dtype\":\"U8\",\"shape\":[%d],\"data_offsets\":[%d,%d]}", i ? "," : "{",
                               i, EACH, begin, begin + EACH);
  }
  snprintf(header + length, sizeof header - length, "}");
  write_shard("many", header, ALL, 5);
  assert_int_equal(gm_model_open(&f.host.services, temp_folder_join(&f.folder, "many"), &many, NULL), GM_OK);
  played_reads_begin();
  return 0;
}

static int many_teardown(void **state) {
  played_reads_end();
  gm_model_close(many);
  return teardown(state);
}

static void check_many(const gm_loaded_model *loaded) {
  for (uint64_t i = 0; i < MANY; i++) {
    gm_block block;
    assert_int_equal(gm_loaded_model_block(loaded, i, &block, NULL), GM_OK);
    if (!block.bytes) continue;
    assert_int_equal(gm_block_read(f.pool, &block, 0, found, EACH, NULL, NULL, NULL), GM_OK);
    for (uint64_t j = 0; j < EACH; j++) {
      if (found[j] != safetensors_bytes_at(i * EACH + j, 5)) fail_msg("byte %d of %d", (int)j, (int)i);
    }
  }
}

static gm_load_result load_many(const gm_load_params *params) {
  gm_loaded_model *loaded = NULL;
  gm_load_result result = {.struct_size = sizeof result};
  gm_error err;
  if (gm_model_load(many, f.pool, params, &loaded, &result, &err) != GM_OK) fail_msg("%s", err.message);
  check_many(loaded);
  assert_int_equal(gm_loaded_model_release(loaded, params->request.stream), GM_OK);
  assert_int_equal(in_use(), 0);
  return result;
}

typedef struct counter {
  uint64_t calls, done, stop_at;
} counter;

static bool count(void *user, const gm_load_progress *progress) {
  counter *c = user;
  if (!progress->verifying) assert_true(progress->done_bytes >= c->done);
  c->done = progress->done_bytes;
  assert_int_equal(progress->total_bytes, ALL);
  return ++c->calls != c->stop_at;
}

static void check_ways(gm_stream *stream) {
  static const gm_load_path paths[] = {GM_LOAD_PATH_AUTO, GM_LOAD_PATH_MMAP, GM_LOAD_PATH_READ, GM_LOAD_PATH_DIRECT};
  static const uint64_t chunks[] = {0, 4096, 100000};
  for (int i = 0; i < 12; i++) {
    counter c = {0};
    gm_load_params params = {.struct_size = sizeof params, .verify = true, .progress = count, .user = &c};
    params.path = paths[i % 4];
    params.chunk_bytes = chunks[i / 4];
    params.request.stream = stream;
    played_reads_begin();
    played_reads.short_reads = i % 3 == 1;
    played_reads.resident = i / 4 % 2 ? 1000 : 0;
    const gm_load_result result = load_many(&params);
    const bool past =
        params.path == GM_LOAD_PATH_DIRECT || (params.path == GM_LOAD_PATH_AUTO && !played_reads.resident);
    assert_true(result.verified);
    assert_int_equal(c.done, ALL);
    assert_int_equal(result.direct_bytes, past ? ALL : 0);
    if (params.path == GM_LOAD_PATH_AUTO) {
      assert_int_equal(result.path, past ? GM_LOAD_PATH_DIRECT : GM_LOAD_PATH_READ);
    } else {
      assert_int_equal(result.path, params.path);
    }
  }
}

static void test_every_byte_into_its_place(void **state) {
  (void)state;
  check_ways(NULL);
}

static void test_every_byte_through_slots(void **state) {
  (void)state;
  gm_stream *stream = NULL;
  assert_int_equal(gm_stream_create(f.device, &stream, NULL), GM_OK);
  check_ways(stream);
  assert_int_equal(gm_stream_close(stream, NULL), GM_OK);
}

/* Data has chunk_bytes at most, however large the model is. */
static void test_host_memory_is_bounded(void **state) {
  (void)state;
  gm_stream *stream = NULL;
  assert_int_equal(gm_stream_create(f.device, &stream, NULL), GM_OK);
  for (int i = 0; i < 6; i++) {
    gm_load_params params = {.struct_size = sizeof params, .path = i % 2 ? GM_LOAD_PATH_DIRECT : GM_LOAD_PATH_READ};
    params.chunk_bytes = i < 4 ? 4096 : 262144;
    params.request.stream = i / 2 % 2 ? stream : NULL;
    const gm_load_result result = load_many(&params);
    const uint64_t data = params.request.stream || i % 2 ? params.chunk_bytes : 0;
    if (result.peak_host_bytes > data + 20000) fail_msg("%d: %d bytes", i, (int)result.peak_host_bytes);
  }
  assert_int_equal(gm_stream_close(stream, NULL), GM_OK);
}

/* Large tensors at pages of the file go straight into blocks at pages. */
static void test_tensors_at_pages_need_no_other_memory(void **state) {
  (void)state;
  enum { LARGE = (1 << 20) + 8192 };
  enum { HEADER = 4096 - 8 };
  static char header[HEADER + 1];
  char text[200];
  gm_model *paged = NULL;
  gm_loaded_model *loaded = NULL;
  gm_load_result result = {.struct_size = sizeof result};
  const gm_load_params params = {.struct_size = sizeof params, .path = GM_LOAD_PATH_DIRECT, .verify = true};
  memset(header, ' ', HEADER);
  snprintf(text, sizeof text,
           "{\"a\":{\"dtype\":\"U8\",\"shape\":[%d],\"data_offsets\":[0,%d]},"
           "\"b\":{\"dtype\":\"U8\",\"shape\":[%d],\"data_offsets\":[%d,%d]}}",
           LARGE, LARGE, LARGE, LARGE, 2 * LARGE);
  memcpy(header, text, strlen(text));
  safetensors_bytes file = safetensors_bytes_make(header, HEADER, 2 * LARGE, 5);
  const char *path = temp_folder_write(&f.folder, "paged", file.bytes, file.length);
  assert_int_equal(gm_model_open(&f.host.services, path, &paged, NULL), GM_OK);
  played_reads_begin();
  assert_int_equal(gm_model_load(paged, f.pool, &params, &loaded, &result, NULL), GM_OK);
  assert_true(result.verified);
  assert_int_equal(result.direct_bytes, 2 * LARGE);
  assert_int_equal(played_reads.cached_bytes, 0);
  assert_true(result.peak_host_bytes < 20000);
  assert_int_equal(gm_loaded_model_release(loaded, NULL), GM_OK);
  gm_model_close(paged);
  safetensors_bytes_free(&file);
}

static void test_a_file_system_without_direct_reads_is_told(void **state) {
  (void)state;
  const gm_load_params params = {.struct_size = sizeof params, .path = GM_LOAD_PATH_DIRECT};
  played_reads.no_direct = true;
  const gm_load_result result = load_many(&params);
  assert_int_equal(result.path, GM_LOAD_PATH_READ);
  assert_int_equal(result.direct_bytes, 0);
  assert_non_null(strstr(result.why, "/many: its file system has no direct reads"));
}

static void leave_out(void *user, uint64_t index, const gm_tensor_info *tensor, gm_load_place *place) {
  (void)user;
  (void)tensor;
  if (index % SKIP) place->pool = NULL;
}

/* Holes of less than 64 KiB are read along where slots or blocks are filled, and nothing else of what is left out. */
static void test_what_is_left_out_is_not_read(void **state) {
  (void)state;
  const gm_load_params params = {.struct_size = sizeof params, .path = GM_LOAD_PATH_READ, .place = leave_out};
  gm_loaded_model *loaded = NULL;
  assert_int_equal(gm_model_load(many, f.pool, &params, &loaded, NULL, NULL), GM_OK);
  check_many(loaded);
  assert_int_equal(played_reads.cached_bytes, (MANY + SKIP - 1) / SKIP * EACH);
  assert_int_equal(gm_loaded_model_release(loaded, NULL), GM_OK);
}

static void test_a_bad_byte_is_told_with_its_tensor(void **state) {
  (void)state;
  gm_stream *stream = NULL;
  assert_int_equal(gm_stream_create(f.device, &stream, NULL), GM_OK);
  gm_tensor_info info = {.struct_size = sizeof info};
  assert_int_equal(gm_model_tensor(many, 17, &info, NULL), GM_OK);
  played_reads.broken_at = (int64_t)info.file_offset;
  for (int i = 0; i < 4; i++) {
    gm_load_params params = {.struct_size = sizeof params, .path = i % 2 ? GM_LOAD_PATH_READ : GM_LOAD_PATH_DIRECT};
    params.request.stream = i / 2 ? stream : NULL;
    gm_loaded_model *loaded = NULL;
    gm_error err;
    assert_int_equal(gm_model_load(many, f.pool, &params, &loaded, NULL, &err), GM_ERR_IO);
    if (!strstr(err.message, "tensor \"t17\" of ") || !strstr(err.message, "input/output error"))
      fail_msg("%s", err.message);
    assert_int_equal(in_use(), 0);
  }
  assert_int_equal(gm_stream_close(stream, NULL), GM_OK);
}

/* Threads have at most sixteen pieces that nobody has looked at. */
static void test_no_thread_where_the_caller_wants_none(void **state) {
  (void)state;
  const uint64_t threads[] = {1, 2, 99};
  for (int i = 0; i < 3; i++) {
    gm_load_params params = {.struct_size = sizeof params, .path = GM_LOAD_PATH_READ, .chunk_bytes = 65536};
    params.verify = true;
    params.threads = threads[i];
    played_reads_begin();
    load_many(&params);
    if (i < 2) assert_true(played_reads.most <= (int)threads[i]);
    assert_true(played_reads.most <= 16);
  }
}

static void test_a_cancel_reads_no_further(void **state) {
  (void)state;
  for (int i = 0; i < 2; i++) {
    counter c = {.stop_at = MANY + 5}; /* after the blocks */
    gm_load_params params = {.struct_size = sizeof params, .progress = count, .user = &c, .chunk_bytes = 65536};
    params.path = i ? GM_LOAD_PATH_READ : GM_LOAD_PATH_DIRECT;
    gm_loaded_model *loaded = NULL;
    gm_error err;
    played_reads_begin();
    assert_int_equal(gm_model_load(many, f.pool, &params, &loaded, NULL, &err), GM_ERR_CANCELLED);
    assert_non_null(strstr(err.message, "cancelled by the caller"));
    assert_true(played_reads.direct_bytes + played_reads.cached_bytes < 2 * 16 * 4096 + 4096 * 16);
    assert_int_equal(in_use(), 0);
  }
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, many_setup, many_teardown)
  const struct CMUnitTest tests[] = {
      TEST(test_every_byte_into_its_place),
      TEST(test_every_byte_through_slots),
      TEST(test_host_memory_is_bounded),
      TEST(test_tensors_at_pages_need_no_other_memory),
      TEST(test_a_file_system_without_direct_reads_is_told),
      TEST(test_what_is_left_out_is_not_read),
      TEST(test_a_bad_byte_is_told_with_its_tensor),
      TEST(test_no_thread_where_the_caller_wants_none),
      TEST(test_a_cancel_reads_no_further),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

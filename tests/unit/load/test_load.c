/* Loading on the CPU backend: every path, every byte, and every way to fail, after which nothing is left in the pool.
 */
#include "gm/native_cpu.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "support/load_scene.h"

enum { OWN = 8192 }; /* host memory of a small load for other things than data */

static gm_load_result check_load(const gm_load_params *params) {
  gm_loaded_model *loaded = NULL;
  gm_load_result result = {.struct_size = sizeof result};
  gm_error err;
  if (gm_model_load(f.model, f.pool, params, &loaded, &result, &err) != GM_OK) fail_msg("%s", err.message);
  for (uint64_t i = 0; i < TENSORS; i++) check_tensor(loaded, i);
  assert_true(in_use() >= BYTES);
  assert_int_equal(gm_loaded_model_release(loaded, params ? params->request.stream : NULL), GM_OK);
  assert_int_equal(in_use(), 0);
  assert_int_equal(result.tensors, TENSORS);
  assert_int_equal(result.bytes, BYTES);
  assert_int_equal(result.fallback_bytes, 0);
  assert_true(result.seconds >= 0);
  return result;
}

static void test_every_byte_arrives_by_every_path(void **state) {
  (void)state;
  static const gm_load_path paths[] = {GM_LOAD_PATH_AUTO, GM_LOAD_PATH_READ, GM_LOAD_PATH_MMAP, GM_LOAD_PATH_DIRECT};
  for (int i = 0; i < 16; i++) {
    const gm_load_path path = paths[i % 4];
    gm_load_params params = {.struct_size = sizeof params, .path = path, .verify = i / 4 % 2};
    if (i >= 8) params.chunk_bytes = 4096;
    gm_load_result result = check_load(&params);
    if (path != GM_LOAD_PATH_AUTO) assert_int_equal(result.path, path);
    if (path == GM_LOAD_PATH_READ) assert_int_equal(result.direct_bytes, 0);
    if (path == GM_LOAD_PATH_DIRECT) assert_int_equal(result.direct_bytes, BYTES);
    assert_string_equal(result.why, "");
    assert_int_equal(result.verified, params.verify);
    const uint64_t most = OWN + (path == GM_LOAD_PATH_AUTO || path == GM_LOAD_PATH_DIRECT ? (i < 8 ? 20480 : 4096) : 0);
    if (result.peak_host_bytes > most) fail_msg("%d bytes", (int)result.peak_host_bytes);
    assert_true(result.peak_host_bytes > 0);
  }
  check_load(NULL);
}

static void test_a_stream_orders_the_load(void **state) {
  (void)state;
  gm_stream *stream = NULL;
  assert_int_equal(gm_stream_create(f.device, &stream, NULL), GM_OK);
  gm_load_params params = {.struct_size = sizeof params, .verify = true, .chunk_bytes = 4096};
  params.request.stream = stream;
  for (int i = 0; i < 3; i++) {
    gm_load_result result = check_load(&params);
    assert_true(result.verified);
    if (i > 0) assert_int_equal(result.driver_allocs, 0); /* all from the pool */
  }
  assert_int_equal(gm_stream_close(stream, NULL), GM_OK);
}

static void test_blocks_outlive_the_model(void **state) {
  (void)state;
  gm_loaded_model *loaded = NULL;
  gm_block block;
  assert_int_equal(gm_model_load(f.model, f.pool, NULL, &loaded, NULL, NULL), GM_OK);
  gm_model_close(f.model);
  f.model = NULL;
  assert_int_equal(gm_loaded_model_block(loaded, 0, &block, NULL), GM_OK);
  assert_true(block.bytes >= 10000);
  assert_int_equal(gm_loaded_model_release(loaded, NULL), GM_OK);
  assert_int_equal(gm_loaded_model_release(NULL, NULL), GM_OK);
}

static void test_a_model_of_nothing(void **state) {
  (void)state;
  gm_model *empty = NULL;
  gm_loaded_model *loaded = NULL;
  gm_load_result result = {.struct_size = sizeof result};
  gm_load_params params = {.struct_size = sizeof params, .verify = true, .path = GM_LOAD_PATH_MMAP};
  write_shard("e", "{}", 0, 0);
  assert_int_equal(gm_model_open(&f.host.services, temp_folder_join(&f.folder, "e"), &empty, NULL), GM_OK);
  assert_int_equal(gm_model_load(empty, f.pool, &params, &loaded, &result, NULL), GM_OK);
  assert_int_equal(result.tensors, 0);
  assert_true(result.verified);
  assert_int_equal(gm_loaded_model_release(loaded, NULL), GM_OK);
  gm_model_close(empty);
}

/* The format aligns nothing: numbers of four bytes begin at the third one. */
static void test_a_tensor_that_begins_anywhere(void **state) {
  (void)state;
  static const char header[] =
      "{\"u\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[0,3]},"
      "\"f\":{\"dtype\":\"F32\",\"shape\":[5000],\"data_offsets\":[3,20003]}}";
  safetensors_bytes file = safetensors_bytes_make(header, strlen(header), 20003, 7);
  static unsigned char found[20000];
  gm_model *model = NULL;
  write_shard("anywhere", header, 20003, 7);
  assert_int_equal(gm_model_open(&f.host.services, temp_folder_join(&f.folder, "anywhere"), &model, NULL), GM_OK);
  for (int i = 0; i < 4; i++) {
    const gm_load_params params = {.struct_size = sizeof params,
                                   .path = i % 2 ? GM_LOAD_PATH_MMAP : GM_LOAD_PATH_READ,
                                   .chunk_bytes = i < 2 ? 0 : 4096,
                                   .verify = true};
    gm_loaded_model *loaded = NULL;
    gm_load_result result = {.struct_size = sizeof result};
    gm_block block;
    assert_int_equal(gm_model_load(model, f.pool, &params, &loaded, &result, NULL), GM_OK);
    assert_true(result.verified);
    assert_int_equal(gm_loaded_model_block(loaded, 1, &block, NULL), GM_OK);
    assert_int_equal(gm_block_read(f.pool, &block, 0, found, sizeof found, NULL, NULL, NULL), GM_OK);
    assert_memory_equal(found, file.bytes + file.length - sizeof found, sizeof found);
    assert_int_equal(gm_loaded_model_release(loaded, NULL), GM_OK);
  }
  gm_model_close(model);
  safetensors_bytes_free(&file);
}

static void *load_and_check(void *pool) {
  gm_load_params params = {.struct_size = sizeof params, .verify = true, .chunk_bytes = 4096};
  for (int i = 0; i < 10; i++) {
    gm_loaded_model *loaded = NULL;
    params.path = i % 2 ? GM_LOAD_PATH_MMAP : GM_LOAD_PATH_READ;
    if (gm_model_load(f.model, pool, &params, &loaded, NULL, NULL) != GM_OK) return pool;
    if (gm_loaded_model_release(loaded, NULL) != GM_OK) return pool;
  }
  return NULL;
}

static void test_threads_load_one_model_into_one_pool(void **state) {
  (void)state;
  pthread_t threads[4];
  for (int i = 0; i < 4; i++) assert_int_equal(pthread_create(&threads[i], NULL, load_and_check, f.pool), 0);
  for (int i = 0; i < 4; i++) {
    void *failed = NULL;
    assert_int_equal(pthread_join(threads[i], &failed), 0);
    assert_null(failed);
  }
  assert_int_equal(in_use(), 0);
}

static void test_nothing_is_verified_where_there_is_no_memory(void **state) {
  (void)state;
  gm_device *device = NULL;
  gm_pool *pool = NULL;
  gm_loaded_model *loaded = NULL;
  gm_load_params params = {.struct_size = sizeof params, .verify = true};
  gm_error err;
  assert_int_equal(gm_device_open_index(f.context, "null", 0, &device, &err), GM_OK);
  assert_int_equal(gm_pool_create(device, NULL, &pool, &err), GM_OK);
  assert_int_equal(gm_model_load(f.model, pool, &params, &loaded, NULL, &err), GM_ERR_NOT_SUPPORTED);
  assert_non_null(strstr(err.message, "there is no memory behind a null device to read"));
  assert_int_equal(gm_pool_destroy(pool, &err), GM_OK);
  assert_int_equal(gm_device_close(device, &err), GM_OK);
}

/* ---- progress ---- */

typedef struct watcher {
  uint64_t calls, stop_at; /* 0: never */
  uint64_t last_done;
  bool verifying;
  void (*act)(const gm_load_progress *progress);
} watcher;

static bool watch(void *user, const gm_load_progress *progress) {
  watcher *w = user;
  assert_non_null(progress->tensor);
  assert_int_equal(progress->total_bytes, BYTES);
  assert_true(progress->done_bytes <= BYTES);
  if (progress->verifying == w->verifying) {
    assert_true(progress->done_bytes >= w->last_done);
  } else {
    assert_int_equal(w->last_done, BYTES); /* loading was complete */
    assert_int_equal(progress->done_bytes, 0);
  }
  w->verifying = progress->verifying;
  w->last_done = progress->done_bytes;
  if (w->act) w->act(progress);
  return ++w->calls != w->stop_at;
}

/* The parts of all tensors: what lies in one stretch of 4096 bytes of its file. */
static uint64_t parts(void) {
  uint64_t count = 0;
  for (uint64_t i = 0; i < TENSORS; i++) {
    gm_tensor_info info = {.struct_size = sizeof info};
    assert_int_equal(gm_model_tensor(f.model, i, &info, NULL), GM_OK);
    if (info.bytes) count += (info.file_offset + info.bytes - 1) / 4096 - info.file_offset / 4096 + 1;
  }
  return count;
}

static void test_progress_grows_and_reaches_the_end_twice(void **state) {
  (void)state;
  watcher w = {0};
  gm_load_params params = {
      .struct_size = sizeof params, .verify = true, .chunk_bytes = 4096, .progress = watch, .user = &w};
  check_load(&params);
  assert_true(w.verifying);
  assert_int_equal(w.last_done, BYTES);
  assert_int_equal(w.calls, 2 * (TENSORS + parts()));
}

static void test_every_call_of_progress_can_cancel(void **state) {
  (void)state;
  for (uint64_t stop_at = 1;; stop_at++) {
    watcher w = {.stop_at = stop_at};
    gm_load_params params = {
        .struct_size = sizeof params, .verify = true, .chunk_bytes = 4096, .progress = watch, .user = &w};
    gm_loaded_model *loaded = NULL;
    gm_error err;
    gm_status status = gm_model_load(f.model, f.pool, &params, &loaded, NULL, &err);
    if (status == GM_OK) {
      assert_int_equal(w.calls, stop_at - 1);
      assert_int_equal(gm_loaded_model_release(loaded, NULL), GM_OK);
      break;
    }
    assert_int_equal(status, GM_ERR_CANCELLED);
    assert_non_null(strstr(err.message, "cancelled by the caller"));
    assert_null(loaded);
    assert_int_equal(in_use(), 0);
  }
}

/* ---- failing ---- */

static void test_wrong_arguments_are_named(void **state) {
  (void)state;
  gm_load_params params = {.struct_size = 3};
  check_fails(&params, GM_ERR_INVALID_ARGUMENT, "`params->struct_size` is 3");
  params = (gm_load_params){.struct_size = sizeof params, .chunk_bytes = 4095};
  check_fails(&params, GM_ERR_INVALID_ARGUMENT, "`params->chunk_bytes` is 4095, must be 0 or at least 4096");
  params = (gm_load_params){.struct_size = sizeof params, .path = (gm_load_path)9};
  check_fails(&params, GM_ERR_INVALID_ARGUMENT, "`params->path` is 9");
  params = (gm_load_params){.struct_size = sizeof params, .request.bytes = 1};
  check_fails(&params, GM_ERR_INVALID_ARGUMENT, "`params->request.bytes` must be 0");
  params = (gm_load_params){.struct_size = sizeof params, .request.align = 3};
  check_fails(&params, GM_ERR_INVALID_ARGUMENT, "tensor \"big\" of ");
  gm_loaded_model *loaded = NULL;
  gm_load_result result = {.struct_size = 1};
  gm_error err;
  assert_int_equal(gm_model_load(NULL, f.pool, NULL, &loaded, NULL, &err), GM_ERR_INVALID_ARGUMENT);
  assert_string_equal(err.message, "`model` is NULL");
  assert_int_equal(gm_model_load(f.model, NULL, NULL, &loaded, NULL, &err), GM_ERR_INVALID_ARGUMENT);
  assert_string_equal(err.message, "`pool` is NULL");
  assert_int_equal(gm_model_load(f.model, f.pool, NULL, NULL, NULL, &err), GM_ERR_INVALID_ARGUMENT);
  assert_string_equal(err.message, "`out` is NULL");
  assert_int_equal(gm_model_load(f.model, f.pool, NULL, &loaded, &result, &err), GM_ERR_INVALID_ARGUMENT);
  assert_non_null(strstr(err.message, "`out_result->struct_size` is 1"));
}

static void test_wrong_questions_to_a_loaded_model(void **state) {
  (void)state;
  gm_loaded_model *loaded = NULL;
  gm_block block;
  gm_error err;
  assert_int_equal(gm_model_load(f.model, f.pool, NULL, &loaded, NULL, NULL), GM_OK);
  assert_int_equal(gm_loaded_model_block(NULL, 0, &block, &err), GM_ERR_INVALID_ARGUMENT);
  assert_string_equal(err.message, "`loaded` is NULL");
  assert_int_equal(gm_loaded_model_block(loaded, 0, NULL, &err), GM_ERR_INVALID_ARGUMENT);
  assert_string_equal(err.message, "`out` is NULL");
  assert_int_equal(gm_loaded_model_block(loaded, TENSORS, &block, &err), GM_ERR_INVALID_ARGUMENT);
  assert_string_equal(err.message, "`index` is 5, the model has 5 tensors");
  assert_int_equal(gm_loaded_model_release(loaded, NULL), GM_OK);
}

static void test_the_path_gds_says_what_is_missing(void **state) {
  (void)state;
  gm_load_params params = {.struct_size = sizeof params, .path = GM_LOAD_PATH_GDS};
  gm_load_result result = {.struct_size = sizeof result};
  gm_loaded_model *loaded = NULL;
  assert_int_equal(gm_model_load(f.model, f.pool, &params, &loaded, &result, NULL), GM_OK);
  assert_non_null(strstr(result.why, "GPUDirect Storage reads into CUDA devices, this one is of "));
  assert_int_equal(result.gds_bytes, 0);
  assert_int_not_equal(result.path, GM_LOAD_PATH_GDS);
  assert_int_equal(gm_loaded_model_release(loaded, NULL), GM_OK);
}

static void test_a_limit_that_is_too_small(void **state) {
  (void)state;
  assert_int_equal(gm_pool_set_max_bytes(f.pool, 16384, NULL), GM_OK);
  check_fails(NULL, GM_ERR_OVER_LIMIT, "tensor \"");
}

static bool others_are_refused;

gm_acquire __real_gm_alloc(gm_pool *pool, const gm_request *request, gm_block *out);
gm_acquire __wrap_gm_alloc(gm_pool *pool, const gm_request *request, gm_block *out);

/* After a refusal another thread's request is refused, too, for a reason of its own. */
gm_acquire __wrap_gm_alloc(gm_pool *pool, const gm_request *request, gm_block *out) {
  const gm_request probe = {.bytes = 4096, .flags = GM_POOLED_ONLY};
  gm_block none;
  const gm_acquire answer = __real_gm_alloc(pool, request, out);
  if (others_are_refused && !gm_acquired(answer)) {
    assert_int_equal(__real_gm_alloc(pool, &probe, &none), GM_ACQUIRE_EXHAUSTED);
  }
  return answer;
}

static void test_the_refusal_of_another_thread_is_not_told_as_its_own(void **state) {
  (void)state;
  others_are_refused = true;
  assert_int_equal(gm_pool_set_max_bytes(f.pool, 4096, NULL), GM_OK);
  check_fails(NULL, GM_ERR_OVER_LIMIT, "tensor \"");
  others_are_refused = false;
}

static void truncate_second(const gm_load_progress *progress) {
  if (strcmp(progress->tensor, "odd") == 0) {
    assert_int_equal(truncate(temp_folder_join(&f.folder, "2"), (off_t)data_start(1) + 100), 0);
  }
}

static void test_a_file_that_shrinks_meanwhile(void **state) {
  (void)state;
  for (int mapped = 0; mapped < 2; mapped++) {
    watcher w = {.act = truncate_second};
    gm_load_params params = {.struct_size = sizeof params, .progress = watch, .user = &w};
    params.path = mapped ? GM_LOAD_PATH_MMAP : GM_LOAD_PATH_READ;
    check_fails(&params, GM_ERR_IO, mapped ? "/2: has 225 bytes, it had 4223" : "tensor \"odd\" of ");
    gm_model_close(f.model);
    write_shard("2", header_2, BYTES_2, 2);
    const char *path = temp_folder_join(&f.folder, "i.json");
    assert_int_equal(gm_model_open(&f.host.services, path, &f.model, NULL), GM_OK);
  }
}

static void test_a_file_that_changed_or_went(void **state) {
  (void)state;
  write_shard("2", header_2, BYTES_2, 3);
  check_fails(NULL, GM_ERR_IO, "/2: has changed since gm_model_open read its header");
  assert_int_equal(unlink(temp_folder_join(&f.folder, "1")), 0);
  check_fails(NULL, GM_ERR_NOT_FOUND, "/1: no such file");
}

/* ---- memory from the test itself, so that it can be spoiled ---- */

static unsigned char *given[16];
static uint32_t given_count;

static gm_status give(void *user, uint64_t bytes, uint32_t align, gm_native_memory *out, void **out_token) {
  (void)user;
  void *memory = NULL;
  if (given_count == 16 || posix_memalign(&memory, align < 64 ? 64 : align, bytes) != 0) {
    return GM_ERR_OUT_OF_DEVICE_MEMORY;
  }
  given[given_count++] = memory;
  ((gm_cpu_memory *)(void *)out)->pointer = memory;
  ((gm_cpu_memory *)(void *)out)->bytes = bytes;
  *out_token = memory;
  return GM_OK;
}

static void take(void *user, void *token) {
  (void)user;
  free(token);
}

static void spoil_one_byte(const gm_load_progress *progress) {
  if (progress->verifying && strcmp(progress->tensor, "chunk") == 0) given[1][4095] ^= 1;
}

static void test_verify_finds_one_changed_byte(void **state) {
  (void)state;
  gm_upstream upstream = {.allocate = give, .release = take};
  gm_pool_params pool_params = {
      .struct_size = sizeof pool_params, .strategy = GM_STRATEGY_BUCKET, .upstream = &upstream};
  gm_pool *cpu_pool = f.pool;
  assert_int_equal(gm_pool_create(f.device, &pool_params, &f.pool, NULL), GM_OK);
  given_count = 0;
  watcher w = {0};
  gm_load_params params = {.struct_size = sizeof params, .verify = true, .progress = watch, .user = &w};
  check_load(&params);
  gm_pool_trim(f.pool, 0);
  given_count = 0;
  w = (watcher){.act = spoil_one_byte};
  check_fails(&params, GM_ERR_IO, "tensor \"chunk\" of ");
  assert_int_equal(gm_pool_destroy(f.pool, NULL), GM_OK);
  f.pool = cpu_pool;
}

static void test_each_host_allocation_failed(void **state) {
  (void)state;
  for (int mapped = 0; mapped < 2; mapped++) {
    gm_load_params params = {.struct_size = sizeof params, .verify = true};
    params.path = mapped ? GM_LOAD_PATH_MMAP : GM_LOAD_PATH_READ;
    load_without_host_memory(&params, NULL, NULL);
  }
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
  const struct CMUnitTest tests[] = {
      TEST(test_every_byte_arrives_by_every_path),
      TEST(test_a_stream_orders_the_load),
      TEST(test_blocks_outlive_the_model),
      TEST(test_a_tensor_that_begins_anywhere),
      TEST(test_a_model_of_nothing),
      TEST(test_threads_load_one_model_into_one_pool),
      TEST(test_nothing_is_verified_where_there_is_no_memory),
      TEST(test_progress_grows_and_reaches_the_end_twice),
      TEST(test_every_call_of_progress_can_cancel),
      TEST(test_wrong_arguments_are_named),
      TEST(test_wrong_questions_to_a_loaded_model),
      TEST(test_the_path_gds_says_what_is_missing),
      TEST(test_a_limit_that_is_too_small),
      TEST(test_the_refusal_of_another_thread_is_not_told_as_its_own),
      TEST(test_a_file_that_shrinks_meanwhile),
      TEST(test_a_file_that_changed_or_went),
      TEST(test_verify_finds_one_changed_byte),
      TEST(test_each_host_allocation_failed),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

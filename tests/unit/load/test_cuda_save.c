/* A model on a card that the host cannot read: saved through pinned memory, through less of it than was wanted, and
 * through none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "gm/save.h"
#include "support/cuda_fixture.h"
#include "support/no_sync.h"
#include "support/pool_bench.h"
#include "support/safetensors_bytes.h"
#include "support/temp_folder.h"

enum { BYTES = 300001, SMALL = 7, CHUNK = 16 << 10, CHUNKS = 6 };

static struct {
  temp_folder folder;
  gm_context *ctx;
  gm_device *device;
  gm_pool *pool;
  gm_model *model;
  gm_loaded_model *loaded;
} card;

/* `limit` is what the driver is told before. */
static int setup_with(const char *limit) {
  char header[256];
  const gm_context_params context = {.struct_size = sizeof context}; /* GM_CUDA_LIBRARY */
  const gm_pool_params params = {.struct_size = sizeof params, .no_vmm = true, .max_bytes = 8 << 20};
  snprintf(header, sizeof header,
           "{\"a\":{\"dtype\":\"I8\",\"shape\":[%d],\"data_offsets\":[0,%d]},"
           "\"b\":{\"dtype\":\"I8\",\"shape\":[%d],\"data_offsets\":[%d,%d]}}",
           SMALL, SMALL, BYTES, SMALL, SMALL + BYTES);
  cuda_say("reload");
  cuda_say("set LATENCY_US 0");
  cuda_say(limit);
  temp_folder_make(&card.folder);
  safetensors_bytes file = safetensors_bytes_make(header, strlen(header), SMALL + BYTES, 5);
  pool_bench_ok(gm_model_open(NULL, temp_folder_write(&card.folder, "in", file.bytes, file.length), &card.model, err));
  safetensors_bytes_free(&file);
  pool_bench_ok(gm_context_create(&context, &card.ctx, err));
  pool_bench_ok(gm_device_open_index(card.ctx, "cuda", 0, &card.device, err));
  pool_bench_ok(gm_pool_create(card.device, &params, &card.pool, err));
  pool_bench_ok(gm_model_load(card.model, card.pool, NULL, &card.loaded, NULL, err));
  return 0;
}

static int setup(void **state) { return (void)state, setup_with("set PINNED 0"); }

static int setup_without_pinned(void **state) { return (void)state, setup_with("set PINNED 1"); }

static int setup_with_one_piece(void **state) { return (void)state, setup_with("set PINNED 16384"); }

static int teardown(void **state) {
  (void)state;
  temp_folder_remove(&card.folder);
  assert_int_equal(gm_loaded_model_release(card.loaded, NULL), GM_OK);
  gm_model_close(card.model);
  pool_bench_ok(gm_pool_destroy(card.pool, err));
  pool_bench_ok(gm_device_close(card.device, err));
  pool_bench_ok(gm_context_destroy(card.ctx, err));
  return 0;
}

static void expect_saved(const char *path) {
  static unsigned char data[SMALL + BYTES];
  gm_model *saved = NULL;
  pool_bench_ok(gm_model_open(NULL, path, &saved, err));
  assert_int_equal(gm_model_tensor_count(saved), 2);
  FILE *file = fopen(path, "rb");
  assert_non_null(file);
  for (uint64_t i = 0; i < 2; i++) {
    gm_tensor_info info = {.struct_size = sizeof info};
    pool_bench_ok(gm_model_tensor(saved, i, &info, err));
    assert_int_equal(fseek(file, (long)info.file_offset, SEEK_SET), 0);
    assert_int_equal(fread(data, 1, info.bytes, file), info.bytes);
    const uint64_t first = info.bytes == SMALL ? 0 : SMALL;
    for (uint64_t k = 0; k < info.bytes; k++) assert_int_equal(data[k], safetensors_bytes_at(first + k, 5));
  }
  fclose(file);
  pool_bench_ok(gm_model_check_sums(saved, NULL, NULL, NULL, err));
  gm_model_close(saved);
}

/* The pieces of host memory that it took. */
static uint64_t save(const char *name) {
  const gm_save_params params = {.struct_size = sizeof params, .chunk_bytes = CHUNK, .checksums = true};
  gm_save_result result = {.struct_size = sizeof result};
  const char *path = temp_folder_join(&card.folder, name);
  pool_bench_ok(gm_model_save(card.model, card.loaded, path, &params, &result, err));
  expect_saved(path);
  return result.peak_host_bytes / CHUNK;
}

/* A load and all saves use the same page-locked memory. */
static void test_through_pinned_memory(void **state) {
  (void)state;
  assert_true(save("out.gguf") <= CHUNKS);
  const long locked = cuda_calls("cuMemHostRegister");
  assert_true(locked > 0);
  assert_true(save("out.npz") <= CHUNKS);
  assert_int_equal(cuda_calls("cuMemHostRegister"), locked);
}

static void test_a_driver_that_pins_nothing(void **state) {
  (void)state;
  assert_true(save("out.gguf") <= CHUNKS);
  assert_int_equal(cuda_count("registered"), 0);
}

static void test_a_driver_that_pins_one_piece(void **state) {
  (void)state;
  assert_int_equal(save("out.safetensors"), 1);
  assert_int_equal(cuda_count("registered"), 1);
}

/* One of the driver's calls fails. The file is the earlier one or the new one. Whether the save failed. */
static bool save_without(const char *symbol, int n, const char *path) {
  const gm_save_params params = {.struct_size = sizeof params, .chunk_bytes = CHUNK};
  char command[96];
  gm_error why = {.status = GM_OK};
  snprintf(command, sizeof command, "fail %s:%d:999", symbol, n);
  cuda_say(command);
  const gm_status status = gm_model_save(card.model, card.loaded, path, &params, NULL, &why);
  cuda_say("fail");
  if (status) assert_int_equal(why.status, status);
  expect_saved(path);
  return status != GM_OK;
}

static void test_calls_of_the_driver_that_fail(void **state) {
  (void)state;
  static const char *const symbols[] = {"cuMemHostRegister", "cuMemHostUnregister", "cuMemcpyDtoHAsync",
                                        "cuEventRecord",     "cuEventSynchronize",  "cuStreamSynchronize"};
  const char *path = temp_folder_join(&card.folder, "out.gguf");
  const gm_save_params params = {.struct_size = sizeof params, .chunk_bytes = CHUNK};
  int failed = 0;
  pool_bench_ok(gm_model_save(card.model, card.loaded, path, &params, NULL, err));
  for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
    for (int n = 1; n <= 4; n++) failed += save_without(symbols[i], n, path);
  }
  assert_true(failed >= 4); /* those of the copies back */
  pool_bench_ok(gm_model_save(card.model, card.loaded, path, &params, NULL, err));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_through_pinned_memory, setup, teardown),
      cmocka_unit_test_setup_teardown(test_a_driver_that_pins_nothing, setup_without_pinned, teardown),
      cmocka_unit_test_setup_teardown(test_a_driver_that_pins_one_piece, setup_with_one_piece, teardown),
      cmocka_unit_test_setup_teardown(test_calls_of_the_driver_that_fail, setup, teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

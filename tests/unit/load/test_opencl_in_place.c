/* Loads on OpenCL whose blocks are buffers over the mapped file: no byte is copied, and what cannot lie there is read.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "backends/opencl/opencl_device.h"
#include "core/device/device.h"
#include "gm/copy.h"
#include "gm/load.h"
#include "gm/save.h"
#include "support/opencl_fixture.h"
#include "support/pool_bench.h"
#include "support/safetensors_bytes.h"
#include "support/temp_folder.h"

/* "odd" begins at no multiple of a device's alignment. */
static const char header[] =
    "{\"even\":{\"dtype\":\"I8\",\"shape\":[70001],\"data_offsets\":[0,70001]},"
    "\"odd\":{\"dtype\":\"I8\",\"shape\":[5000],\"data_offsets\":[70001,75001]}}";
enum { EVEN = 70001, ODD = 5000, TENSORS = 2 };
static const uint64_t places[TENSORS] = {0, EVEN}, sizes[TENSORS] = {EVEN, ODD};

static pool_bench bench;
static temp_folder folder;
static gm_model *model;
static gm_load_result result;

static void open_as(const char *name) {
  safetensors_bytes file = safetensors_bytes_make(header, strlen(header), EVEN + ODD, 3);
  const char *path = temp_folder_write(&folder, "in.safetensors", file.bytes, file.length);
  safetensors_bytes_free(&file);
  gm_model *in = NULL;
  pool_bench_ok(gm_model_open(NULL, path, &in, err));
  pool_bench_ok(gm_model_save(in, NULL, temp_folder_join(&folder, name), NULL, NULL, err));
  gm_model_close(in);
  pool_bench_ok(gm_model_open(NULL, temp_folder_join(&folder, name), &model, err));
}

static int begin(void **state) {
  opencl_fixture fixture;
  (void)state;
  opencl_fixture_init(&fixture); /* skips the test where there is no driver */
  opencl_fixture_close(&fixture);
  temp_folder_make(&folder);
  pool_bench_open(&bench, "opencl", NULL, NULL);
  return 0;
}

static int end(void **state) {
  (void)state;
  gm_model_close(model);
  pool_bench_close(&bench);
  temp_folder_remove(&folder);
  return 0;
}

static gm_loaded_model *load(void) {
  const gm_load_params params = {.struct_size = sizeof params, .path = GM_LOAD_PATH_IN_PLACE, .verify = true};
  gm_loaded_model *loaded = NULL;
  result = (gm_load_result){.struct_size = sizeof result};
  pool_bench_ok(gm_model_load(model, bench.pool, &params, &loaded, &result, err));
  return loaded;
}

static void check_bytes(const gm_loaded_model *loaded) {
  static unsigned char got[EVEN];
  gm_block block;
  for (uint64_t i = 0; i < TENSORS; i++) {
    pool_bench_ok(gm_loaded_model_block(loaded, i, &block, err));
    pool_bench_ok(gm_block_read(bench.pool, &block, 0, got, sizes[i], NULL, NULL, err));
    for (uint64_t k = 0; k < sizes[i]; k++) assert_int_equal(got[k], safetensors_bytes_at(places[i] + k, 3));
  }
}

/* Where the driver has the bytes of a tensor's buffer. */
static unsigned char *host_of(const gm_loaded_model *loaded, uint64_t index) {
  gm_opencl_memory native = {.head = {sizeof native, GM_API_OPENCL}};
  gm_block block;
  void *host = NULL;
  const gm__opencl_device *device = bench.device->handle;
  pool_bench_ok(gm_loaded_model_block(loaded, index, &block, err));
  pool_bench_ok(gm_block_native(bench.pool, &block, &native.head, err));
  assert_int_equal(
      device->cl->clGetMemObjectInfo((cl_mem)native.memory, CL_MEM_HOST_PTR, sizeof host, (void *)&host, NULL), 0);
  return host;
}

static void release(gm_loaded_model *loaded) {
  gm_stats stats = {.struct_size = sizeof stats};
  assert_int_equal(gm_loaded_model_release(loaded, NULL), GM_OK);
  gm_pool_stats(bench.pool, &stats);
  assert_int_equal(stats.in_use_bytes, 0);
}

static void test_blocks_are_buffers_over_the_file(void **state) {
  (void)state;
  static const unsigned char other[100] = {9, 8, 7};
  gm_block block;
  open_as("out.gguf");
  gm_loaded_model *loaded = load(), *again;
  assert_int_equal(result.mapped_bytes, EVEN + ODD);
  assert_true(result.verified);
  assert_string_equal(result.why, "");
  check_bytes(loaded);
  for (uint64_t i = 0; i < TENSORS; i++)
    assert_int_equal(host_of(loaded, i)[9], safetensors_bytes_at(places[i] + 9, 3));
  /* A write stays with its load. */
  pool_bench_ok(gm_loaded_model_block(loaded, 0, &block, err));
  pool_bench_ok(gm_block_write(bench.pool, &block, 5000, other, sizeof other, NULL, NULL, err));
  assert_memory_equal(host_of(loaded, 0) + 5000, other, sizeof other);
  again = load();
  check_bytes(again);
  assert_int_equal(gm_loaded_model_release(loaded, NULL), GM_OK);
  check_bytes(again);
  release(again);
}

static void test_a_tensor_beside_the_alignment_is_read(void **state) {
  (void)state;
  open_as("out.safetensors");
  gm_loaded_model *loaded = load();
  assert_int_equal(result.mapped_bytes, EVEN);
  assert_non_null(strstr(result.why, "multiple of their alignment"));
  check_bytes(loaded);
  release(loaded);
}

/* The driver's own memory, kernels that take addresses, and a backend that refuses: all is read. */
static void test_what_a_device_refuses_is_read(void **state) {
  (void)state;
  static const char *const reasons[] = {"memory of its own", "addresses", "buffer over a mapped file"};
  gm__opencl_device *device = bench.device->handle;
  const uint64_t can = bench.device->info.capabilities;
  open_as("out.gguf");
  for (int i = 0; i < 3; i++) {
    bench.device->info.unified = i != 0;
    bench.device->info.capabilities = can | (i == 1 ? GM_CAP_ADDRESS : 0);
    device->info.unified = i != 2;
    gm_loaded_model *loaded = load();
    bench.device->info.unified = device->info.unified = true;
    bench.device->info.capabilities = can;
    assert_int_equal(result.mapped_bytes, 0);
    assert_non_null(strstr(result.why, reasons[i]));
    check_bytes(loaded);
    release(loaded);
  }
}

static void test_host_memory_that_cannot_be_a_block(void **state) {
  (void)state;
  static _Alignas(4096) unsigned char bytes[8192];
  gm_opencl_memory wrong[4];
  gm_block block;
  for (int i = 0; i < 4; i++) {
    wrong[i] = (gm_opencl_memory){.head = {sizeof *wrong, GM_API_OPENCL}, .mapped = bytes, .bytes = 4096};
  }
  wrong[0].mapped = bytes + 1;
  wrong[1].bytes = 0;
  wrong[2].offset = 4096;
  wrong[3].pointer = 1;
  for (int i = 0; i < 4; i++) {
    assert_int_equal(gm_block_wrap(bench.pool, &wrong[i].head, &block, NULL), GM_ERR_INVALID_ARGUMENT);
  }
  model = NULL;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_blocks_are_buffers_over_the_file, begin, end),
      cmocka_unit_test_setup_teardown(test_a_tensor_beside_the_alignment_is_read, begin, end),
      cmocka_unit_test_setup_teardown(test_what_a_device_refuses_is_read, begin, end),
      cmocka_unit_test_setup_teardown(test_host_memory_that_cannot_be_a_block, begin, end),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Values: tensors of each element type on a device and on the host, lists, dictionaries, and what is none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "gm/value.h"
#include "support/fail_each.h"
#include "support/pool_bench.h"
#include "support/random.h"

static void open_bench(pool_bench *bench) {
  const gm_pool_params params = {.struct_size = sizeof params, .checked = true, .max_bytes = 16 << 20};
  pool_bench_open(bench, "cpu", NULL, &params);
}

static gm_tensor_desc desc_of(gm_dtype dtype, uint32_t rank, const uint64_t *shape) {
  gm_tensor_desc desc = {.struct_size = sizeof desc, .dtype = dtype, .rank = rank};
  for (uint32_t i = 0; i < rank; i++) desc.shape[i] = shape[i];
  return desc;
}

static gm_value *scalar(const pool_bench *bench, float number) {
  const gm_tensor_desc desc = {.struct_size = sizeof desc, .dtype = GM_DTYPE_F32};
  gm_value *value = NULL;
  pool_bench_ok(gm_value_tensor(bench->pool, &desc, &number, GM_FALLBACK_REFUSE, NULL, &value, err));
  return value;
}

static void test_tensors_of_each_type(void **state) {
  (void)state;
  pool_bench bench;
  uint64_t seed = 3;
  unsigned char in[4096], out[4096];
  open_bench(&bench);
  for (size_t i = 0; i < sizeof in; i++) in[i] = (unsigned char)test_random(&seed);
  for (uint32_t dtype = 0; gm_dtype_block((gm_dtype)dtype, NULL, NULL) == GM_OK; dtype++) {
    uint32_t block = 0, block_bytes = 0;
    uint64_t bytes = 0;
    gm_value *device = NULL, *host = NULL;
    gm_value_info info = {.struct_size = sizeof info};
    assert_int_equal(gm_dtype_block((gm_dtype)dtype, &block, &block_bytes), GM_OK);
    const gm_tensor_desc desc = desc_of((gm_dtype)dtype, 3, (uint64_t[]){2, 3, block});
    assert_int_equal(gm_tensor_bytes(&desc, &bytes, NULL), GM_OK);
    assert_int_equal(bytes, 6 * block_bytes);
    pool_bench_ok(gm_value_tensor(bench.pool, &desc, in, GM_FALLBACK_REFUSE, NULL, &device, err));
    pool_bench_ok(gm_value_tensor_on_host(bench.ctx, &desc, in, &host, err));
    pool_bench_ok(gm_value_read(device, 0, out, bytes, NULL, err));
    assert_memory_equal(in, out, bytes);
    pool_bench_ok(gm_value_read(host, 1, out, bytes - 1, NULL, err));
    assert_memory_equal(in + 1, out, bytes - 1);
    pool_bench_ok(gm_value_describe(device, &info, err));
    assert_int_equal(info.form, GM_VALUE_TENSOR);
    assert_int_equal(info.dtype, dtype);
    assert_int_equal(info.location, GM_LOCATION_DEVICE);
    assert_int_equal(info.shape[2], block);
    assert_int_equal(info.bytes, bytes);
    pool_bench_ok(gm_value_describe(host, &info, err));
    assert_int_equal(info.location, GM_LOCATION_HOST);
    gm_value_release(device, NULL);
    gm_value_release(host, NULL);
  }
  pool_bench_close(&bench);
}

static void test_what_is_no_tensor(void **state) {
  (void)state;
  pool_bench bench;
  gm_value *value = NULL;
  uint64_t bytes = 7;
  open_bench(&bench);
  gm_tensor_desc desc = desc_of(GM_DTYPE_F32, 2, (uint64_t[]){UINT64_C(1) << 40, UINT64_C(1) << 40});
  assert_int_equal(gm_tensor_bytes(&desc, &bytes, NULL), GM_ERR_INVALID_ARGUMENT);
  desc = desc_of(GM_DTYPE_F64, 1, (uint64_t[]){INT64_MAX / 4});
  assert_int_equal(gm_tensor_bytes(&desc, &bytes, NULL), GM_ERR_INVALID_ARGUMENT);
  desc = desc_of(GM_DTYPE_Q4_0, 0, NULL);
  assert_int_equal(gm_tensor_bytes(&desc, &bytes, NULL), GM_ERR_INVALID_ARGUMENT);
  desc = desc_of(GM_DTYPE_Q4_0, 2, (uint64_t[]){32, 31});
  assert_int_equal(gm_tensor_bytes(&desc, &bytes, NULL), GM_ERR_INVALID_ARGUMENT);
  desc = desc_of((gm_dtype)999, 0, NULL);
  assert_int_equal(gm_tensor_bytes(&desc, &bytes, NULL), GM_ERR_INVALID_ARGUMENT);
  desc = desc_of(GM_DTYPE_F32, 0, NULL);
  desc.rank = GM_VALUE_RANK_MOST + 1;
  assert_int_equal(gm_tensor_bytes(&desc, &bytes, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_tensor_bytes(NULL, &bytes, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(bytes, 7);
  desc.rank = 0;
  assert_int_equal(gm_value_tensor(bench.pool, &desc, NULL, GM_FALLBACK_REFUSE, NULL, &value, NULL),
                   GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_value_tensor(NULL, &desc, "four", GM_FALLBACK_REFUSE, NULL, &value, NULL),
                   GM_ERR_INVALID_ARGUMENT);
  desc = desc_of(GM_DTYPE_U8, 1, (uint64_t[]){UINT64_C(64) << 20});
  assert_int_equal(gm_value_tensor(bench.pool, &desc, "four", GM_FALLBACK_REFUSE, NULL, &value, NULL),
                   GM_ERR_OVER_LIMIT);
  assert_null(value);
  /* A dimension of 0 excuses the others. */
  desc = desc_of(GM_DTYPE_F32, 3, (uint64_t[]){UINT64_MAX, 0, UINT64_MAX});
  pool_bench_ok(gm_value_tensor(bench.pool, &desc, NULL, GM_FALLBACK_REFUSE, NULL, &value, err));
  gm_value_info info = {.struct_size = sizeof info};
  pool_bench_ok(gm_value_describe(value, &info, err));
  assert_int_equal(info.bytes, 0);
  pool_bench_ok(gm_value_read(value, 0, NULL, 0, NULL, err));
  gm_value_release(value, NULL);
  gm_value_release(NULL, NULL);
  pool_bench_close(&bench);
}

static void test_a_tensor_of_a_buffer(void **state) {
  (void)state;
  pool_bench bench;
  gm_buffer *buffer = NULL, *same = NULL;
  gm_value *value = NULL;
  uint64_t offset = 0;
  char out[4];
  open_bench(&bench);
  const gm_buffer_params params = {.struct_size = sizeof params, .request = {.bytes = 64}};
  pool_bench_ok(gm_buffer_create(bench.pool, &params, &buffer, err));
  pool_bench_ok(gm_buffer_write(buffer, 8, "abcd", 4, NULL, err));
  const gm_tensor_desc desc = desc_of(GM_DTYPE_U8, 1, (uint64_t[]){4});
  assert_int_equal(gm_value_tensor_of(buffer, 61, &desc, &value, NULL), GM_ERR_INVALID_ARGUMENT);
  pool_bench_ok(gm_value_tensor_of(buffer, 8, &desc, &value, err));
  gm_buffer_release(buffer, NULL);
  pool_bench_ok(gm_value_buffer(value, &same, &offset, err));
  assert_ptr_equal(same, buffer);
  assert_int_equal(offset, 8);
  pool_bench_ok(gm_value_read(value, 1, out, 3, NULL, err));
  assert_memory_equal(out, "bcd", 3);
  assert_int_equal(gm_value_read(value, 2, out, 3, NULL, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_pool_destroy(bench.pool, NULL), GM_ERR_BUSY);
  gm_value_release(value, NULL);
  pool_bench_close(&bench);
}

static void test_trees(void **state) {
  (void)state;
  pool_bench bench;
  gm_value *list = NULL, *dict = NULL, *item = NULL;
  const char *name = "";
  float number = 0;
  gm_error why;
  gm_value_info info = {.struct_size = sizeof info};
  open_bench(&bench);
  gm_value *one = scalar(&bench, 1), *two = scalar(&bench, 2);
  pool_bench_ok(gm_value_list(bench.ctx, (gm_value *[]){one, two, one}, 3, &list, err));
  pool_bench_ok(
      gm_value_dict(bench.ctx, (const char *[]){"z", "", "list"}, (gm_value *[]){one, two, list}, 3, &dict, err));
  gm_value_release(one, NULL);
  gm_value_release(two, NULL);
  gm_value_release(list, NULL);
  pool_bench_ok(gm_value_describe(dict, &info, err));
  assert_int_equal(info.form, GM_VALUE_DICT);
  assert_int_equal(info.items, 3);
  assert_int_equal(info.nodes, 7);
  assert_int_equal(info.depth, 3);
  assert_int_equal(info.bytes, 20);
  pool_bench_ok(gm_value_find(dict, "list", &list, err));
  pool_bench_ok(gm_value_at(list, 1, &name, &item, err));
  assert_null(name);
  pool_bench_ok(gm_value_read(item, 0, &number, 4, NULL, err));
  assert_true(number == 2);
  pool_bench_ok(gm_value_at(dict, 0, &name, &item, err));
  assert_string_equal(name, "z"); /* in its own order */
  pool_bench_ok(gm_value_find(dict, "", &item, err));
  assert_int_equal(gm_value_find(dict, "nothing", &item, &why), GM_ERR_NOT_FOUND);
  assert_non_null(strstr(why.message, "nothing"));
  assert_int_equal(gm_value_at(list, 3, NULL, &item, NULL), GM_ERR_NOT_FOUND);
  assert_int_equal(gm_value_at(item, 0, NULL, &item, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_value_find(list, "a", &item, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_value_read(list, 0, &number, 4, NULL, NULL), GM_ERR_INVALID_ARGUMENT);
  gm_value_release(dict, NULL);
  pool_bench_close(&bench);
}

static void test_what_is_no_tree(void **state) {
  (void)state;
  static char longest[GM_VALUE_NAME_MOST + 2];
  pool_bench bench;
  gm_value *tree = NULL, *none = NULL;
  gm_error why;
  open_bench(&bench);
  gm_value *one = scalar(&bench, 1);
  memset(longest, 'n', GM_VALUE_NAME_MOST + 1);
  gm_value *two[2] = {one, one}, *gap[2] = {one, NULL};
  assert_int_equal(gm_value_list(bench.ctx, gap, 2, &tree, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_value_list(bench.ctx, NULL, 2, &tree, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_value_list(bench.ctx, two, SIZE_MAX / 2, &tree, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_value_dict(bench.ctx, (const char *[]){"a", "a"}, two, 2, &tree, &why), GM_ERR_INVALID_ARGUMENT);
  assert_non_null(strstr(why.message, "\"a\""));
  assert_int_equal(gm_value_dict(bench.ctx, (const char *[]){"a", NULL}, two, 2, &tree, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_value_dict(bench.ctx, (const char *[]){"a", longest}, two, 2, &tree, NULL),
                   GM_ERR_INVALID_ARGUMENT);
  pool_bench_ok(gm_value_list(bench.ctx, NULL, 0, &none, err));
  gm_value_release(none, NULL);
  pool_bench_ok(gm_value_dict(bench.ctx, NULL, NULL, 0, &none, err));
  gm_value_release(none, NULL);
  /* The tree is as deep as may be, and one level more. */
  gm_value *deep = one;
  for (int i = 1; i < GM_VALUE_DEPTH_MOST; i++) {
    gm_value *above = NULL;
    pool_bench_ok(gm_value_list(bench.ctx, &deep, 1, &above, err));
    gm_value_release(deep, NULL);
    deep = above;
  }
  assert_int_equal(gm_value_list(bench.ctx, &deep, 1, &tree, NULL), GM_ERR_INVALID_ARGUMENT);
  gm_value_release(deep, NULL);
  /* Twice as many nodes at each level: a small tree that counts as a large one. */
  gm_value *wide = scalar(&bench, 2);
  gm_status status = GM_OK;
  for (int i = 0; i < 30 && !status; i++) {
    gm_value *above = NULL;
    status = gm_value_list(bench.ctx, (gm_value *[]){wide, wide}, 2, &above, NULL);
    if (status) break;
    gm_value_release(wide, NULL);
    wide = above;
  }
  assert_int_equal(status, GM_ERR_INVALID_ARGUMENT);
  gm_value_release(wide, NULL);
  assert_null(tree);
  pool_bench_close(&bench);
}

static gm_status attempt(const gm_services *services) {
  gm_context *ctx = NULL;
  gm_device *device = NULL;
  gm_pool *pool = NULL;
  gm_value *host = NULL, *there = NULL, *dict = NULL, *list = NULL;
  const gm_context_params params = {.struct_size = sizeof params, .services = services, .ignore_environment = true};
  const gm_tensor_desc desc = desc_of(GM_DTYPE_U8, 1, (uint64_t[]){100});
  const char bytes[100] = "bytes";
  gm_status status = gm_context_create(&params, &ctx, NULL);
  if (!status) status = gm_device_open_index(ctx, "cpu", 0, &device, NULL);
  if (!status) status = gm_pool_create(device, NULL, &pool, NULL);
  if (!status) status = gm_value_tensor_on_host(ctx, &desc, bytes, &host, NULL);
  if (!status) status = gm_value_tensor(pool, &desc, bytes, GM_FALLBACK_REFUSE, NULL, &there, NULL);
  if (!status) status = gm_value_list(ctx, (gm_value *[]){host, there}, 2, &list, NULL);
  if (!status) status = gm_value_dict(ctx, (const char *[]){"a", "b"}, (gm_value *[]){host, list}, 2, &dict, NULL);
  gm_value_release(host, NULL);
  gm_value_release(there, NULL);
  gm_value_release(list, NULL);
  gm_value_release(dict, NULL);
  assert_int_equal(gm_pool_destroy(pool, NULL), GM_OK);
  assert_int_equal(gm_device_close(device, NULL), GM_OK);
  assert_int_equal(gm_context_destroy(ctx, NULL), GM_OK);
  return status;
}

/* The host computes on tensors on the host, on those of a buffer, and on those of a pool that the host sees. */
static void test_the_host_reads_a_locked_tensor(void **state) {
  (void)state;
  pool_bench bench;
  gm_error failure;
  const float numbers[4] = {1, 2, 3, 4};
  const void *at = NULL;
  open_bench(&bench);
  const gm_tensor_desc four = desc_of(GM_DTYPE_F32, 1, (uint64_t[]){4}),
                       two = desc_of(GM_DTYPE_F32, 1, (uint64_t[]){2});
  const gm_tensor_desc none = desc_of(GM_DTYPE_F32, 1, (uint64_t[]){0});
  gm_buffer *buffer = NULL;
  gm_value *values[4] = {NULL}, *list = NULL;
  const gm_buffer_params params = {.struct_size = sizeof params, .request = {.bytes = sizeof numbers}};
  pool_bench_ok(gm_buffer_create(bench.pool, &params, &buffer, err));
  pool_bench_ok(gm_buffer_write(buffer, 0, numbers, sizeof numbers, NULL, err));
  pool_bench_ok(gm_value_tensor_on_host(bench.ctx, &four, numbers, &values[0], err));
  pool_bench_ok(gm_value_tensor(bench.pool, &four, numbers, GM_FALLBACK_REFUSE, NULL, &values[1], err));
  pool_bench_ok(gm_value_tensor_of(buffer, 2 * sizeof *numbers, &two, &values[2], err));
  pool_bench_ok(gm_value_tensor(bench.pool, &none, NULL, GM_FALLBACK_REFUSE, NULL, &values[3], err));
  for (int moved = 0; moved < 2; moved++) { /* on the device, and in plain host memory */
    for (int i = 0; i < 3; i++) {
      pool_bench_ok(gm_value_lock(values[i], &at, err));
      assert_memory_equal(at, i == 2 ? numbers + 2 : numbers, i == 2 ? 8 : 16);
      gm_buffer *of = NULL;
      uint64_t offset;
      if (i && !gm_value_buffer(values[i], &of, &offset, NULL)) {
        assert_int_equal(gm_buffer_move(of, GM_LOCATION_HOST, NULL, &failure), GM_ERR_BUSY);
      }
      pool_bench_ok(gm_value_unlock(values[i], err));
      if (of) assert_int_equal(gm_value_unlock(values[i], &failure), GM_ERR_INVALID_ARGUMENT);
      if (of) pool_bench_ok(gm_buffer_move(of, GM_LOCATION_HOST, NULL, err));
    }
  }
  pool_bench_ok(gm_value_lock(values[3], &at, err));
  assert_null(at);
  pool_bench_ok(gm_value_unlock(values[3], err));
  pool_bench_ok(gm_value_list(bench.ctx, values, 2, &list, err));
  assert_int_equal(gm_value_lock(list, &at, &failure), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_value_unlock(list, &failure), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_value_lock(NULL, &at, &failure), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_value_lock(values[1], NULL, &failure), GM_ERR_INVALID_ARGUMENT);
  gm_value_release(list, NULL);
  for (int i = 0; i < 4; i++) gm_value_release(values[i], NULL);
  gm_buffer_release(buffer, NULL);
  pool_bench_close(&bench);
}

static void test_each_host_allocation_may_fail(void **state) {
  (void)state;
  fail_each_allocation(attempt, 12);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_tensors_of_each_type),
      cmocka_unit_test(test_what_is_no_tensor),
      cmocka_unit_test(test_a_tensor_of_a_buffer),
      cmocka_unit_test(test_trees),
      cmocka_unit_test(test_what_is_no_tree),
      cmocka_unit_test(test_each_host_allocation_may_fail),
      cmocka_unit_test(test_the_host_reads_a_locked_tensor),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

/* A load that chooses: which tensors, and which pool each goes to. */
#include "gm/load.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "support/load_scene.h"

typedef struct chooser {
  gm_pool *large, *small; /* NULL: left out */
  uint64_t calls;
  uint32_t tag;
  gm_stream *stream; /* of `small` */
} chooser;

static void choose(void *user, uint64_t index, const gm_tensor_info *tensor, gm_load_place *place) {
  chooser *c = user;
  assert_int_equal(index, c->calls++);
  assert_ptr_equal(place->pool, f.pool);
  assert_int_equal(place->request.bytes, tensor->bytes);
  assert_int_equal(place->request.align, 512); /* of the call */
  place->pool = tensor->bytes > 4097 ? c->large : c->small;
  place->request.bytes = 1; /* gm knows better */
  place->request.tag = c->tag;
  if (place->pool == c->small) place->request.stream = c->stream;
}

static gm_load_params chosen_params(chooser *c) {
  gm_load_params params = {
      .struct_size = sizeof params, .verify = true, .chunk_bytes = 4096, .user = c, .place = choose};
  params.request.align = 512;
  return params;
}

static void test_tensors_are_left_out(void **state) {
  (void)state;
  chooser c = {.large = f.pool, .tag = gm_tag(f.context, "weights")};
  gm_load_params params = chosen_params(&c);
  gm_loaded_model *loaded = NULL;
  gm_load_result result = {.struct_size = sizeof result};
  gm_block block;
  assert_int_equal(unlink(temp_folder_join(&f.folder, "2")), 0); /* nothing of it is loaded */
  assert_int_equal(gm_model_load(f.model, f.pool, &params, &loaded, &result, NULL), GM_OK);
  assert_int_equal(c.calls, TENSORS);
  assert_int_equal(result.tensors, 1);
  assert_int_equal(result.left_out, TENSORS - 1);
  assert_int_equal(result.bytes, 10000);
  assert_true(result.verified);
  check_tensor(loaded, 0);
  assert_ptr_equal(gm_loaded_model_pool(loaded, 0), f.pool);
  for (uint64_t i = 1; i < TENSORS; i++) {
    assert_int_equal(gm_loaded_model_block(loaded, i, &block, NULL), GM_OK);
    assert_int_equal(block.bytes, 0);
    assert_null(gm_loaded_model_pool(loaded, i));
  }
  assert_int_equal(gm_loaded_model_block(loaded, 0, &block, NULL), GM_OK);
  gm_pointer_info info = {.struct_size = sizeof info};
  assert_int_equal(gm_pointer_find(f.device, (void *)(uintptr_t)block.address, &info), GM_OK);
  assert_int_equal(info.tag, c.tag);
  assert_int_equal(gm_loaded_model_release(loaded, NULL), GM_OK);
  assert_int_equal(in_use(), 0);
}

static void test_no_tensor_at_all(void **state) {
  (void)state;
  chooser c = {.large = NULL};
  gm_load_params params = chosen_params(&c);
  gm_loaded_model *loaded = NULL;
  gm_load_result result = {.struct_size = sizeof result};
  assert_int_equal(gm_model_load(f.model, f.pool, &params, &loaded, &result, NULL), GM_OK);
  assert_int_equal(result.tensors, 0);
  assert_int_equal(result.bytes, 0);
  assert_int_equal(in_use(), 0);
  assert_null(gm_loaded_model_pool(loaded, TENSORS));
  assert_null(gm_loaded_model_pool(NULL, 0));
  assert_int_equal(gm_loaded_model_release(loaded, NULL), GM_OK);
}

/* A second device, whose streams the first does not know. */
static void test_tensors_go_to_pools_of_two_devices(void **state) {
  (void)state;
  gm_device *device = NULL;
  gm_pool *pool = NULL, *first = f.pool;
  gm_stream *stream = NULL;
  gm_loaded_model *loaded = NULL;
  gm_load_result result = {.struct_size = sizeof result};
  gm_block block;
  unsigned char byte = 0;
  assert_int_equal(gm_device_open_index(f.context, "cpu", 0, &device, NULL), GM_OK);
  assert_int_equal(gm_pool_create(device, NULL, &pool, NULL), GM_OK);
  assert_int_equal(gm_stream_create(device, &stream, NULL), GM_OK);
  chooser c = {.large = first, .small = pool, .stream = stream};
  gm_load_params params = chosen_params(&c);
  assert_int_equal(gm_model_load(f.model, f.pool, &params, &loaded, &result, NULL), GM_OK);
  assert_int_equal(result.tensors, TENSORS);
  assert_int_equal(result.driver_allocs, 2);
  check_tensor(loaded, 0);
  for (uint64_t i = 1; i < TENSORS; i++) assert_ptr_equal(gm_loaded_model_pool(loaded, i), pool);
  assert_int_equal(gm_loaded_model_block(loaded, 3, &block, NULL), GM_OK);
  assert_int_equal(gm_block_read(pool, &block, 0, &byte, 1, NULL, NULL, NULL), GM_OK);
  assert_int_equal(byte, safetensors_bytes_at(0, 2));
  assert_int_equal(gm_loaded_model_release(loaded, stream), GM_OK);
  assert_int_equal(in_use(), 0);
  assert_int_equal(gm_pool_destroy(pool, NULL), GM_OK);
  assert_int_equal(gm_stream_close(stream, NULL), GM_OK);
  assert_int_equal(gm_device_close(device, NULL), GM_OK);
}

/* Memory that one tensor got is given back when another fails, each to its pool. */
static void test_a_small_second_pool(void **state) {
  (void)state;
  gm_pool_params small = {.struct_size = sizeof small, .max_bytes = 8192, .strategy = GM_STRATEGY_BUCKET};
  gm_pool *pool = NULL;
  assert_int_equal(gm_pool_create(f.device, &small, &pool, NULL), GM_OK);
  chooser c = {.large = f.pool, .small = pool};
  gm_load_params params = chosen_params(&c);
  check_fails(&params, GM_ERR_OVER_LIMIT, "tensor \"odd\" of ");
  gm_stats stats = {.struct_size = sizeof stats};
  assert_int_equal(gm_pool_stats(pool, &stats), GM_OK);
  assert_int_equal(stats.active, 0);
  assert_int_equal(gm_pool_destroy(pool, NULL), GM_OK);
}

static void test_a_stream_of_another_device_is_a_mistake(void **state) {
  (void)state;
  gm_device *device = NULL;
  gm_stream *stream = NULL;
  gm_loaded_model *loaded = NULL;
  gm_block block;
  assert_int_equal(gm_device_open_index(f.context, "cpu", 0, &device, NULL), GM_OK);
  assert_int_equal(gm_stream_create(device, &stream, NULL), GM_OK);
  chooser c = {.large = f.pool};
  gm_load_params params = chosen_params(&c);
  assert_int_equal(gm_model_load(f.model, f.pool, &params, &loaded, NULL, NULL), GM_OK);
  assert_int_equal(gm_loaded_model_block(loaded, 0, &block, NULL), GM_OK);
  assert_int_equal(gm_loaded_model_release(loaded, stream), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_free(f.pool, &block, NULL), GM_OK); /* it was left as it is */
  assert_int_equal(gm_stream_close(stream, NULL), GM_OK);
  assert_int_equal(gm_device_close(device, NULL), GM_OK);
}

static void begin_anew(void *user) {
  chooser *c = user;
  c->calls = 0;
}

static void test_each_host_allocation_failed(void **state) {
  (void)state;
  chooser c = {.large = f.pool, .small = f.pool};
  const gm_load_params params = chosen_params(&c);
  load_without_host_memory(&params, begin_anew, &c);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
  const struct CMUnitTest tests[] = {
      TEST(test_tensors_are_left_out),
      TEST(test_no_tensor_at_all),
      TEST(test_tensors_go_to_pools_of_two_devices),
      TEST(test_a_small_second_pool),
      TEST(test_a_stream_of_another_device_is_a_mistake),
      TEST(test_each_host_allocation_failed),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

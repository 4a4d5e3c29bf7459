/* DLPack on the pool of a simulated card, and tensors that lie. */
#include "integrations/dlpack/gm_dlpack.h"

#include "gm/native_cuda.h"
#include "tests/simulated/sim_cuda_fixture.h"

static gm_context *ctx;
static gm_device *device;
static gm_pool *pool;
static gm_stream *stream;
static gm_error err;

static const int64_t shape[] = {3, 5};
static const gm_dl_view floats = {.offset = 256, .type = {2, 32, 1}, .rank = 2, .shape = shape};

static int begin(void **state) {
  if (fixture_begin(state)) return 1;
  return gm_context_create(NULL, &ctx, &err) || gm_device_open_index(ctx, "cuda", 1, &device, &err) ||
         gm_pool_create(device, NULL, &pool, &err) || gm_stream_create(device, &stream, &err);
}

static int end(void **state) {
  return gm_pool_destroy(pool, &err) || gm_stream_close(stream, &err) || gm_device_close(device, &err) ||
         gm_context_destroy(ctx, &err) || fixture_end(state);
}

static gm_block block_of(uint64_t bytes) {
  const gm_request request = {.bytes = bytes, .stream = stream};
  gm_block block;
  assert_true(gm_acquired(gm_alloc(pool, &request, &block)));
  return block;
}

static uint64_t active(void) {
  gm_stats stats = {.struct_size = sizeof stats};
  assert_int_equal(gm_pool_stats(pool, &stats), GM_OK);
  return stats.active;
}

static void test_a_tensor_frees_its_block(void **state) {
  (void)state;
  gm_dl_managed *plain = NULL;
  gm_dl_versioned *versioned = NULL;
  const gm_block one = block_of(1000), other = block_of(1000);
  assert_int_equal(gm_dlpack_export(pool, &one, &floats, stream, &plain, &err), GM_OK);
  assert_int_equal(gm_dlpack_export_versioned(pool, &other, &floats, NULL, &versioned, &err), GM_OK);
  assert_int_equal((uintptr_t)plain->tensor.data + plain->tensor.byte_offset, one.address + 256);
  assert_int_equal(plain->tensor.device.kind, GM_DL_CUDA);
  assert_int_equal(plain->tensor.device.index, 1);
  assert_int_equal(plain->tensor.shape[1], 5);
  assert_int_equal(versioned->major, 1);
  assert_int_equal(versioned->flags, 0);
  assert_int_equal((uintptr_t)versioned->tensor.data, other.address);
  plain->deleter(plain);
  assert_int_equal(active(), 1);
  versioned->deleter(versioned);
  assert_int_equal(active(), 0);
}

static void test_a_view_must_fit(void **state) {
  (void)state;
  gm_dl_managed *out = NULL;
  const gm_block block = block_of(1000);
  const int64_t huge[] = {INT64_MAX, 2}, below[] = {4, -1}, large[] = {300};
  const gm_dl_view wrong[] = {{.type = {2, 32, 1}, .rank = 2, .shape = huge},
                              {.type = {2, 32, 1}, .rank = 2, .shape = below},
                              {.type = {2, 32, 1}, .rank = 1, .shape = large},
                              {.type = {2, 0, 1}, .rank = 2, .shape = shape},
                              {.type = {2, 32, 1}, .rank = 17, .shape = shape},
                              {.type = {2, 32, 1}, .rank = -1, .shape = shape},
                              {.type = {2, 32, 1}, .rank = 2, .shape = NULL},
                              {.offset = 1 << 20, .type = {2, 32, 1}, .rank = 2, .shape = shape},
                              {.offset = UINT64_MAX, .type = {2, 32, 1}, .rank = 2, .shape = shape}};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
    assert_int_equal(gm_dlpack_export(pool, &block, &wrong[i], NULL, &out, &err), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_free(pool, &block, stream), GM_OK); /* it is still the caller's */
}

static void test_another_librarys_tensor_is_a_block(void **state) {
  (void)state;
  CUcontext context = NULL;
  assert_cu(cu.cuDevicePrimaryCtxRetain(&context, 1));
  assert_cu(cu.cuCtxSetCurrent(context));
  const CUdeviceptr theirs = fixture_alloc(4096);
  int64_t sizes[] = {4, 8}, strides[] = {8, 1};
  const gm_dl_tensor tensor = {.data = (void *)(uintptr_t)theirs, /* NOLINT(performance-no-int-to-ptr) */
                               .device = {GM_DL_CUDA, 1},
                               .rank = 2,
                               .type = {2, 32, 1},
                               .shape = sizes,
                               .strides = strides,
                               .byte_offset = 512};
  gm_block block;
  float numbers[32] = {1, 2, 3}, back[32] = {0};
  assert_int_equal(gm_dlpack_import(pool, &tensor, &block, &err), GM_OK);
  assert_int_equal(block.address, theirs + 512);
  assert_int_equal(block.bytes, sizeof numbers);
  assert_int_equal(gm_block_write(pool, &block, 0, numbers, sizeof numbers, stream, NULL, &err), GM_OK);
  assert_cu(cu.cuMemcpyDtoH_v2(back, theirs + 512, sizeof back));
  assert_memory_equal(numbers, back, sizeof back);
  assert_int_equal(gm_free(pool, &block, stream), GM_OK);

  gm_dl_tensor wrong[6];
  for (int i = 0; i < 6; i++) wrong[i] = tensor;
  int64_t apart[] = {16, 1}, negative[] = {4, -8}, endless[] = {INT64_MAX, INT64_MAX}, empty[] = {0, 8};
  wrong[0].strides = apart;
  wrong[1].shape = negative;
  wrong[2].shape = endless;
  wrong[3].shape = empty;
  wrong[4].device.index = 0;
  wrong[5].device.kind = GM_DL_CPU;
  for (int i = 0; i < 6; i++)
    assert_int_equal(gm_dlpack_import(pool, &wrong[i], &block, &err), GM_ERR_INVALID_ARGUMENT);
  assert_cu(cu.cuMemFree_v2(theirs));
  assert_cu(cu.cuDevicePrimaryCtxRelease_v2(1));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_a_tensor_frees_its_block, begin, end),
      cmocka_unit_test_setup_teardown(test_a_view_must_fit, begin, end),
      cmocka_unit_test_setup_teardown(test_another_librarys_tensor_is_a_block, begin, end),
  };
  return cmocka_run_group_tests(tests, fixture_load, NULL);
}

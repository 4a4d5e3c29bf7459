/* The usual calls of programs for VMA, UMF and PyTorch's allocator, with gm; docs/coming-from.md shows parts of this
 * file. */
#include <stdio.h>
#include <string.h>

#include "gm/gm.h"
#include "gm/native_vulkan.h"

enum { BYTES = 1 << 20 };

/* VMA: vmaCreateBuffer with VMA_MEMORY_USAGE_AUTO, and its first contents. */
static gm_status buffer_create(gm_pool *pool, gm_stream *stream, const void *contents, uint64_t bytes, gm_block *block,
                               gm_vulkan_memory *native, gm_error *err) {
  const gm_request request = {.bytes = bytes, .stream = stream, .flags = GM_INSERT_WAIT, .must_be = GM_DEVICE_LOCAL};
  *native = (gm_vulkan_memory){.head = {sizeof *native, GM_API_VULKAN}};
  if (!gm_acquired(gm_alloc(pool, &request, block))) return GM_ERR_OUT_OF_DEVICE_MEMORY;
  gm_status status = gm_block_native(pool, block, &native->head, err); /* bind buffer, buffer_offset and bytes */
  if (status == GM_OK) status = gm_block_write(pool, block, 0, contents, bytes, stream, NULL, err);
  if (status != GM_OK) gm_free(pool, block, stream);
  return status;
}

/* UMF: umfFree, which finds the pool by the address. */
static gm_status free_anywhere(gm_device *device, const void *pointer, gm_stream *stream) {
  gm_pointer_info found = {.struct_size = sizeof found};
  const gm_status status = gm_pointer_find(device, pointer, &found);
  return status == GM_OK ? gm_free(found.pool, &found.block, stream) : status;
}

/* PyTorch: a tensor of one stream that another stream reads too, as after Tensor.record_stream. */
static gm_status tensor_on_two_streams(gm_pool *pool, gm_stream *compute, gm_stream *side, uint64_t bytes) {
  const gm_request request = {.bytes = bytes, .stream = compute, .flags = GM_INSERT_WAIT};
  gm_block tensor;
  if (!gm_acquired(gm_alloc(pool, &request, &tensor))) return GM_ERR_OUT_OF_DEVICE_MEMORY;
  /* Kernels on `compute` write the tensor, and kernels on `side` read it. */
  const gm_status status = gm_use_on(pool, &tensor, side);
  const gm_status freed = gm_free(pool, &tensor, compute); /* at once: reuse waits for both streams */
  return status == GM_OK ? freed : status;
}

static int fail(const char *what, gm_status status, const gm_error *err) {
  return fprintf(stderr, "%s: %s, %s\n", what, gm_status_name(status), err->message), 1;
}

static int run_vma(gm_pool *pool, gm_stream *stream) {
  static unsigned char contents[BYTES], back[BYTES];
  memset(contents, 0x5a, sizeof contents);
  gm_error err = {.status = GM_OK};
  gm_block block;
  gm_vulkan_memory native;
  gm_status status = buffer_create(pool, stream, contents, BYTES, &block, &native, &err);
  if (status != GM_OK) return fail("vma", status, &err);
  status = gm_block_read(pool, &block, 0, back, BYTES, stream, NULL, &err);
  if (status != GM_OK) return fail("vma", status, &err);
  gm_free(pool, &block, stream);
  if (!native.buffer || memcmp(contents, back, BYTES) != 0) return fail("vma", GM_ERR_DAMAGED, &err);
  return printf("a VkBuffer with its contents\n"), 0;
}

static int run_umf(gm_pool *pool, gm_stream *stream) {
  gm_error err = {.status = GM_OK};
  gm_block found;
  void *pointer = gm_malloc(pool, BYTES, stream);
  if (!pointer) return fail("umf", GM_ERR_OUT_OF_DEVICE_MEMORY, &err);
  const gm_status status = free_anywhere(gm_pool_device(pool), pointer, stream);
  if (status != GM_OK) return fail("umf", status, &err);
  if (gm_block_of(pool, pointer, &found) != GM_ERR_NOT_FOUND) return fail("umf", GM_ERR_DAMAGED, &err);
  return printf("freed by its address\n"), 0;
}

static int run_torch(gm_pool *pool, gm_stream *stream) {
  gm_error err = {.status = GM_OK};
  gm_stats stats = {.struct_size = sizeof stats};
  gm_stream *side;
  gm_status status = gm_stream_create(gm_pool_device(pool), &side, &err);
  if (status == GM_OK) status = tensor_on_two_streams(pool, stream, side, BYTES);
  if (status == GM_OK) status = gm_pool_stats(pool, &stats);
  if (status == GM_OK) status = gm_stream_close(side, &err);
  if (status != GM_OK || stats.allocs != 1 || stats.active != 0) return fail("torch", status, &err);
  return printf("used on two streams\n"), 0;
}

int main(int argc, char **argv) {
  static const struct {
    const char *name;
    int (*run)(gm_pool *pool, gm_stream *stream);
  } jobs[] = {{"vma", run_vma}, {"umf", run_umf}, {"torch", run_torch}};
  gm_context *ctx;
  gm_device *device;
  gm_stream *stream;
  gm_pool *pool;
  gm_error err;
  int failed = 2;
  if (argc != 3) return fprintf(stderr, "usage: %s vma|umf|torch BACKEND\n", argv[0]), 2;
  if (gm_context_create(NULL, &ctx, &err) || gm_device_open_index(ctx, argv[2], 0, &device, &err) ||
      gm_stream_create(device, &stream, &err) || gm_pool_create(device, NULL, &pool, &err))
    return fail(argv[2], err.status, &err);
  for (size_t i = 0; i < sizeof jobs / sizeof *jobs; i++) {
    if (strcmp(argv[1], jobs[i].name) == 0) failed = jobs[i].run(pool, stream);
  }
  if (gm_stream_close(stream, &err) || gm_pool_destroy(pool, &err) || gm_device_close(device, &err) ||
      gm_context_destroy(ctx, &err))
    return fail(argv[2], err.status, &err);
  return failed;
}

/* Registers a backend from outside gm, then uses its device through gm as any other: figures, pool, copies. */
#include <stdio.h>
#include <string.h>

#include "gm/backend.h"
#include "gm/copy.h"
#include "template_backend.h"

static gm_status stranger_copy(gm_pool *pool, gm_stream *stream, gm_error *err) {
  const char text[] = "through a stranger's backend";
  char back[sizeof text] = "";
  const gm_request request = {.bytes = 100000, .stream = stream};
  gm_block block;
  if (gm_alloc(pool, &request, &block) > GM_ACQUIRE_FRESH) return GM_ERR_OUT_OF_DEVICE_MEMORY;
  gm_status status = gm_block_write(pool, &block, 12345, text, sizeof text, stream, NULL, err);
  if (status == GM_OK) status = gm_block_read(pool, &block, 12345, back, sizeof back, stream, NULL, err);
  const gm_status freed = gm_free(pool, &block, stream);
  if (status == GM_OK && strcmp(text, back) != 0) status = GM_ERR_FORMAT;
  if (status == GM_OK) printf("%s\n", back);
  return status == GM_OK ? freed : status;
}

static gm_status stranger_pool(gm_device *device, gm_error *err) {
  gm_stream *stream;
  gm_pool *pool;
  gm_status status = gm_stream_create(device, &stream, err);
  if (status != GM_OK) return status;
  status = gm_pool_create(device, NULL, &pool, err);
  if (status == GM_OK) {
    status = stranger_copy(pool, stream, err);
    const gm_status gone = gm_pool_destroy(pool, err);
    if (status == GM_OK) status = gone;
  }
  const gm_status closed = gm_stream_close(stream, err);
  return status == GM_OK ? closed : status;
}

static gm_status stranger_device(gm_context *ctx, gm_error *err) {
  gm_device *device;
  gm_memory_info memory = {.struct_size = sizeof memory};
  gm_status status = gm_backend_register(ctx, template_backend(), err);
  if (status == GM_OK) status = gm_device_open_index(ctx, "template", 0, &device, err);
  if (status != GM_OK) return status;
  status = gm_device_memory_info(device, &memory, err);
  printf("%s: %llu of %llu bytes free\n", gm_device_get_info(device)->name, (unsigned long long)memory.free_bytes,
         (unsigned long long)memory.total_bytes);
  if (status == GM_OK) status = stranger_pool(device, err);
  const gm_status closed = gm_device_close(device, err);
  return status == GM_OK ? closed : status;
}

int main(void) {
  gm_context *ctx;
  gm_error err = {.message = ""};
  gm_status status = gm_context_create(NULL, &ctx, &err);
  if (status == GM_OK) {
    status = stranger_device(ctx, &err);
    if (gm_context_destroy(ctx, NULL) != GM_OK) status = GM_ERR_BUSY;
  }
  if (status != GM_OK) fprintf(stderr, "%s: %s\n", gm_status_name(status), err.message);
  return status == GM_OK ? 0 : 1;
}

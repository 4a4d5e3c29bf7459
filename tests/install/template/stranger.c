/* Registers a backend from outside gm, then uses its device through gm as any other. */
#include <stdio.h>
#include <string.h>

#include "gm/device.h"
#include "gm/stream.h"
#include "template_backend.h"

static gm_status stranger_use(gm_device *device, gm_error *err) {
  const gm_device_info *info = gm_device_get_info(device);
  gm_memory_info memory = {.struct_size = sizeof memory};
  gm_stream *stream;
  gm_point point;
  gm_status status = gm_device_memory_info(device, &memory, err);
  if (status == GM_OK) status = gm_stream_create(device, &stream, err);
  if (status != GM_OK) return status;
  printf("%s: %llu of %llu bytes free\n", info->name, (unsigned long long)memory.free_bytes,
         (unsigned long long)memory.total_bytes);
  status = gm_stream_record(stream, &point, err);
  if (status == GM_OK) status = gm_point_wait(device, &point, UINT64_MAX, err);
  if (status == GM_OK) gm_point_release(device, &point);
  const gm_status closed = gm_stream_close(stream, err);
  if (status == GM_OK && memory.free_bytes > memory.total_bytes) status = GM_ERR_FORMAT;
  return status == GM_OK ? closed : status;
}

static gm_status stranger_open(gm_context *ctx, gm_error *err) {
  gm_device *device;
  gm_status status = gm_backend_register(ctx, template_backend(), err);
  if (status == GM_OK) status = gm_device_open_index(ctx, "template", 0, &device, err);
  if (status != GM_OK) return status;
  status = stranger_use(device, err);
  const gm_status closed = gm_device_close(device, err);
  return status == GM_OK ? closed : status;
}

int main(void) {
  gm_context *ctx;
  gm_error err = {.message = ""};
  gm_status status = gm_context_create(NULL, &ctx, &err);
  if (status == GM_OK) {
    status = stranger_open(ctx, &err);
    if (gm_context_destroy(ctx, NULL) != GM_OK) status = GM_ERR_BUSY;
  }
  if (status != GM_OK) fprintf(stderr, "%s: %s\n", gm_status_name(status), err.message);
  return status == GM_OK ? 0 : 1;
}

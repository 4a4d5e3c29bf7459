#include "backends/shared/runtime/runtime_copy.h"

#include "backends/shared/runtime/runtime_entries.h"
#include "backends/shared/runtime/runtime_program.h"
#include "backends/shared/runtime/runtime_stream.h"

/* The way says where the bytes are. Where the host reaches the memory too, the driver finds that out itself. */

gm__runtime_way gm__runtime_way_of(bool from_host, bool to_host) {
  if (from_host) return to_host ? GM__RUNTIME_HOST_TO_HOST : GM__RUNTIME_TO_DEVICE;
  return to_host ? GM__RUNTIME_TO_HOST : GM__RUNTIME_ON_DEVICE;
}

static int copy_run(const gm__runtime_device *device, void *stream, gm__runtime_way way, uint64_t to, uint64_t from,
                    uint64_t bytes) {
  return bytes ? device->api->copy(device, way, to, from, bytes, stream) : GM__RUNTIME_SUCCESS;
}

int gm__runtime_copy_enqueue(const gm__runtime_device *device, void *stream, const gm_copy_item *item) {
  const gm__runtime_way way = item->src->host || item->dst->host ? GM__RUNTIME_ANY_WAY : GM__RUNTIME_ON_DEVICE;
  return copy_run(device, stream, way, item->dst->address + item->dst_offset, item->src->address + item->src_offset,
                  item->bytes);
}

/* Copies between the host and `memory`. `way` holds where only the device reaches the memory; it names the call, too.
 */
static gm_status copy_with_host(gm__runtime_device *device, void *stream, const gm_memory *memory, gm__runtime_way way,
                                uint64_t to, uint64_t from, uint64_t bytes, gm_backend_point *out, gm_error *err) {
  gm__runtime_job job;
  const gm_status status = gm__runtime_begin(device, stream, &job, err);
  if (status != GM_OK) return status;
  const int code = copy_run(device, job.stream, memory->host ? GM__RUNTIME_ANY_WAY : way, to, from, bytes);
  return gm__runtime_end(device, &job, code, device->api->copy_ops[way], out, err);
}

gm_status gm__runtime_copy_to_device(void *device, void *stream, const gm_memory *dst, uint64_t offset, const void *src,
                                     uint64_t bytes, gm_backend_point *out, gm_error *err) {
  return copy_with_host(device, stream, dst, GM__RUNTIME_TO_DEVICE, dst->address + offset, (uintptr_t)src, bytes, out,
                        err);
}

gm_status gm__runtime_copy_to_host(void *device, void *stream, const gm_memory *src, uint64_t offset, void *dst,
                                   uint64_t bytes, gm_backend_point *out, gm_error *err) {
  return copy_with_host(device, stream, src, GM__RUNTIME_TO_HOST, (uintptr_t)dst, src->address + offset, bytes, out,
                        err);
}

gm_status gm__runtime_copy(void *device, void *stream, const gm_copy_item *item, gm_backend_point *out, gm_error *err) {
  return gm__runtime_copy_many(device, stream, item, 1, out, err);
}

gm_status gm__runtime_copy_many(void *device, void *stream, const gm_copy_item *items, uint32_t count,
                                gm_backend_point *out, gm_error *err) {
  gm__runtime_device *opened = device;
  gm__runtime_job job;
  int code = GM__RUNTIME_SUCCESS;
  const gm_status status = gm__runtime_begin(opened, stream, &job, err);
  if (status != GM_OK) return status;
  const uint32_t launched = gm__runtime_scatter(opened, job.stream, items, count, &code);
  const char *op = code == GM__RUNTIME_SUCCESS ? opened->api->copy_ops[GM__RUNTIME_ON_DEVICE] : opened->api->launch_op;
  for (uint32_t i = launched; i < count && code == GM__RUNTIME_SUCCESS; i++) {
    code = gm__runtime_copy_enqueue(opened, job.stream, &items[i]);
  }
  return gm__runtime_end(opened, &job, code, op, out, err);
}

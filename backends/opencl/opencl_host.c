#include "backends/opencl/opencl_host.h"

#include "backends/opencl/opencl_entries.h"
#include "backends/opencl/opencl_point.h"
#include "backends/opencl/opencl_queue.h"
#include "core/base/alloc.h"
#include "core/base/error.h"
#include "core/base/saturate.h"

/* Copies name the mapped address, never the buffer. OpenCL forbids commands to use a mapped buffer, not to copy from
 * and to where it is mapped. Drivers place buffers beside pages, so each one is a page larger.
 * Invariant: the device lock guards the list. A range outside of it has one owner. */

enum { HOST_PAGE = 4096 };

struct gm__opencl_host_range {
  gm__opencl_host_range *next;
  gm_memory memory;
  void *mapped;
  void *host; /* the first page in it */
};

/* Gives up the driver's memory, and the record. */
static void host_drop(gm__opencl_device *device, gm__opencl_host_range *range, gm_close_mode mode) {
  gm__opencl_memory_free(device, &range->memory, mode, NULL); /* it goes in any case */
  gm__release(device->services, range, sizeof *range);
}

static void host_enter(gm__opencl_device *device, gm__opencl_host_range *range) {
  gm__mutex_lock(&device->lock);
  range->next = device->host_ranges;
  device->host_ranges = range;
  gm__mutex_unlock(&device->lock);
}

/* Takes the range that begins there out of the list. In a forked child no thread holds the lock. NULL: there is none.
 */
static gm__opencl_host_range *host_leave(gm__opencl_device *device, const void *host, bool locks) {
  if (locks) gm__mutex_lock(&device->lock);
  gm__opencl_host_range **at = &device->host_ranges;
  while (*at && (*at)->host != host) at = &(*at)->next;
  gm__opencl_host_range *range = *at;
  if (range) *at = range->next;
  if (locks) gm__mutex_unlock(&device->lock);
  return range;
}

gm_status gm__opencl_host_alloc(void *user, uint64_t bytes, void **out, gm_error *err) {
  static const char op[] = "gm_backend_ops.host_alloc";
  gm__opencl_device *device = user;
  const gm_memory_params params = {.struct_size = sizeof params,
                                   .type = gm__opencl_kinds_find(&device->kinds, GM__OPENCL_BUFFER_HOST),
                                   .bytes = gm__add_sat(bytes, HOST_PAGE)};
  gm__opencl_queue queue;
  if (!bytes) return gm__bad_argument(err, op, "`bytes` is 0");
  gm_status status = gm__opencl_queue_of(device, NULL, &queue, err);
  if (status) return status;
  gm__opencl_host_range *range = gm__alloc(device->services, sizeof *range);
  if (!range) return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, op, "no host memory for the record of a range");
  status = gm__opencl_memory_alloc(device, &params, &range->memory, err);
  if (status) {
    gm__release(device->services, range, sizeof *range);
    return status;
  }
  status =
      gm__opencl_map(device, NULL, &range->memory, 0, params.bytes, GM_MAP_READ | GM_MAP_WRITE, &range->mapped, err);
  if (status) {
    host_drop(device, range, GM_CLOSE_NORMAL);
    return status;
  }
  range->host = (unsigned char *)range->mapped + (HOST_PAGE - (uintptr_t)range->mapped % HOST_PAGE) % HOST_PAGE;
  host_enter(device, range);
  *out = range->host;
  return GM_OK;
}

gm_status gm__opencl_host_register(void *user, void *pointer, uint64_t bytes, gm_error *err) {
  const gm__opencl_device *device = user;
  (void)pointer, (void)bytes;
  return gm__fail(err, GM_ERR_NOT_SUPPORTED, "gm_backend_ops.host_register",
                  device->allow_queue
                      ? "OpenCL locks no memory of the caller's"
                      : "OpenCL locks no memory of the caller's, and the engine forbids a queue of gm's "
                        "own (allow_queue), which would map the driver's");
}

/* A failure of the unmap leaves the range as it was, but for a lost device, which uses nothing any more. Nobody uses
 * the range, so only the unmap is waited for. */
gm_status gm__opencl_host_unregister(void *user, void *pointer, gm_close_mode mode, gm_error *err) {
  gm__opencl_device *device = user;
  const bool normal = mode == GM_CLOSE_NORMAL;
  gm__opencl_host_range *range = host_leave(device, pointer, normal);
  if (!range) {
    return gm__fail(err, GM_ERR_NOT_FOUND, "gm_backend_ops.host_unregister", "`pointer` is not the driver's memory");
  }
  gm__opencl_queue queue;
  gm_status status = normal ? gm__opencl_unmap(device, NULL, &range->memory, range->mapped, err) : GM_OK;
  if (status && status != GM_ERR_DEVICE_LOST) {
    host_enter(device, range);
    return status;
  }
  if (normal && !status && gm__opencl_queue_of(device, NULL, &queue, NULL) == GM_OK) {
    gm__opencl_point_mark(device, queue.handle, NULL, NULL);
  }
  host_drop(device, range, mode);
  return status;
}

void gm__opencl_host_forget(gm__opencl_device *device) {
  for (gm__opencl_host_range *range = device->host_ranges, *next; range; range = next) {
    next = range->next;
    host_drop(device, range, GM_CLOSE_ABANDON);
  }
  device->host_ranges = NULL;
}

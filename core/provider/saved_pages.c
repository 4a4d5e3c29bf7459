#include "core/provider/saved_pages.h"

#include <inttypes.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/error.h"
#include "core/base/shadow.h"
#include "core/device/stream.h"

/* Invariant: AddressSanitizer's marks on pages go before gm itself reads or writes them as a whole. */

/* Bytes of the range, and where they are in host memory. */
typedef struct saved_part {
  uint64_t offset, bytes;
  void *data;
  bool back; /* from host memory to the range */
} saved_part;

static gm_status saved_by_stream(const gm__saved_from *of, const saved_part *part, gm_error *err) {
  gm_stream *stream = of->stream;
  void *device = of->device->handle;
  const gm_status status = stream ? GM_OK : gm__device_default_stream(of->device, "gm_pool_sleep", &stream, err);
  if (status) return status;
  const gm_backend_ops *ops = gm__submitting(of->device);
  if (!part->back) {
    return ops->copy_to_host(device, stream->handle, of->memory, part->offset, part->data, part->bytes, NULL, err);
  }
  return ops->copy_to_device(device, stream->handle, of->memory, part->offset, part->data, part->bytes, NULL, err);
}

static gm_status saved_copy(const gm__saved_from *of, const saved_part *part, gm_error *err) {
  if (!of->memory->host) return saved_by_stream(of, part, err);
  void *host = (unsigned char *)of->memory->host + part->offset;
  gm__shadow_open(host, part->bytes);
  memcpy(part->back ? host : part->data, part->back ? part->data : host, (size_t)part->bytes);
  return GM_OK;
}

static void saved_release(const gm_services *services, gm__saved_pages *pages) {
  gm__release(services, pages->data, (size_t)pages->bytes);
  gm__release(services, pages, sizeof *pages);
}

gm_status gm__saved_pages_read(const gm__saved_from *from, uint64_t offset, uint64_t bytes, gm__saved_pages **list,
                               gm_error *err) {
  const gm_services *services = gm__context_services(from->device->ctx);
  gm__saved_pages *pages = gm__alloc(services, sizeof *pages);
  if (pages) {
    pages->offset = offset;
    pages->bytes = bytes;
    pages->data = bytes <= PTRDIFF_MAX ? gm__alloc(services, (size_t)bytes) : NULL;
  }
  const bool has = pages && pages->data;
  const gm_status status = has ? saved_copy(from, &(saved_part){offset, bytes, pages->data, false}, err)
                               : gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, 0, "gm_pool_sleep",
                                          "the host has no %" PRIu64 " bytes for the pool's contents", bytes);
  if (!status) {
    pages->next = *list;
    *list = pages;
  } else if (pages) {
    saved_release(services, pages);
  }
  return status;
}

gm_status gm__saved_pages_write(const gm__saved_from *to, const gm__saved_pages *pages, uint64_t offset, uint64_t bytes,
                                gm_error *err) {
  void *data = (unsigned char *)pages->data + (offset - pages->offset);
  return saved_copy(to, &(saved_part){offset, bytes, data, true}, err);
}

void gm__saved_pages_drop(const gm_services *services, gm__saved_pages **list) {
  while (*list) {
    gm__saved_pages *pages = *list;
    *list = pages->next;
    saved_release(services, pages);
  }
}

#include "core/provider/saved_pages.h"

#include <inttypes.h>

#include "core/base/alloc.h"
#include "core/base/error.h"
#include "core/base/shadow.h"
#include "core/staging/range_host.h"

/* Invariant: AddressSanitizer's marks on pages go before gm itself reads or writes them as a whole. */

static gm_status saved_copy(const gm__access *part, const gm__transfer *what, gm_stream *stream, gm_error *err) {
  if (!part->memory.host) return gm__range_run(part, what, stream, NULL, "gm_pool_sleep", err);
  void *host = (unsigned char *)part->memory.host + part->offset;
  gm__shadow_open(host, part->bytes);
  gm__host_move(what, host, part->bytes);
  return GM_OK;
}

static void saved_release(const gm_services *services, gm__saved_pages *pages) {
  gm__release(services, pages->data, (size_t)pages->bytes);
  gm__release(services, pages, sizeof *pages);
}

gm_status gm__saved_pages_read(const gm__access *part, gm_stream *stream, gm__saved_pages **list, gm_error *err) {
  const gm_services *services = gm__context_services(part->device->ctx);
  gm__saved_pages *pages = gm__alloc(services, sizeof *pages);
  if (pages) {
    pages->offset = part->offset;
    pages->bytes = part->bytes;
    pages->data = part->bytes <= PTRDIFF_MAX ? gm__alloc(services, (size_t)part->bytes) : NULL;
  }
  const gm__transfer read = {.kind = GM__TRANSFER_READ, .dst = pages ? pages->data : NULL, .pageable = true};
  const gm_status status = read.dst
                               ? saved_copy(part, &read, stream, err)
                               : gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, "gm_pool_sleep",
                                          "the host has no %" PRIu64 " bytes for the pool's contents", part->bytes);
  if (!status) {
    pages->next = *list;
    *list = pages;
  } else if (pages) {
    saved_release(services, pages);
  }
  return status;
}

gm_status gm__saved_pages_write(const gm__access *part, gm_stream *stream, const gm__saved_pages *pages,
                                gm_error *err) {
  const void *data = (const unsigned char *)pages->data + (part->offset - pages->offset);
  const gm__transfer write = {.kind = GM__TRANSFER_WRITE, .src = data, .pageable = true};
  return saved_copy(part, &write, stream, err);
}

void gm__saved_pages_drop(const gm_services *services, gm__saved_pages **list) {
  while (*list) {
    gm__saved_pages *pages = *list;
    *list = pages->next;
    saved_release(services, pages);
  }
}

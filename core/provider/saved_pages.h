/* Saved pages: what pages of a VA range held when the range fell asleep, in host memory. The caller synchronises. */
#ifndef GM_CORE_PROVIDER_SAVED_PAGES_H
#define GM_CORE_PROVIDER_SAVED_PAGES_H

#include <stdint.h>

#include "gm/backend.h"
#include "gm/stream.h"

/* A row of pages. */
typedef struct gm__saved_pages {
  struct gm__saved_pages *next;
  uint64_t offset, bytes; /* in the range's memory */
  void *data;
} gm__saved_pages;

typedef struct gm__saved_from {
  gm_device *device;
  const gm_memory *memory; /* of the range */
  gm_stream *stream;       /* for the copies; NULL: the device's own */
} gm__saved_from;

/* Copies bytes of the range to host memory, and puts them into the list. OUT_OF_HOST_MEMORY, or the answers of a copy;
 * then the list is as it was. Waits for the copy. REQUIRES: as gm__submitting. */
gm_status gm__saved_pages_read(const gm__saved_from *from, uint64_t offset, uint64_t bytes, gm__saved_pages **list,
                               gm_error *err);

/* Copies `bytes` of saved pages back to where they were, at `offset` of the range. The answers of a copy. REQUIRES: as
 * gm__submitting. */
gm_status gm__saved_pages_write(const gm__saved_from *to, const gm__saved_pages *pages, uint64_t offset, uint64_t bytes,
                                gm_error *err);

void gm__saved_pages_drop(const gm_services *services, gm__saved_pages **list);

#endif

/* Saved pages: what pages of a VA range held when the range fell asleep, in host memory. The caller synchronises. */
#ifndef GM_CORE_PROVIDER_SAVED_PAGES_H
#define GM_CORE_PROVIDER_SAVED_PAGES_H

#include <stdint.h>

#include "core/staging/range.h"

/* A row of pages. */
typedef struct gm__saved_pages {
  struct gm__saved_pages *next;
  uint64_t offset, bytes; /* in the range's memory */
  void *data;
} gm__saved_pages;

/* Copies a part of the range to host memory, and puts it into the list. OUT_OF_HOST_MEMORY, or the answers of a copy;
 * then the list is as it was. Waits for the copy. `stream` NULL: the device's own. REQUIRES: as gm__submitting. */
gm_status gm__saved_pages_read(const gm__access *part, gm_stream *stream, gm__saved_pages **list, gm_error *err);

/* Copies a part of saved pages back to where it was. The answers of a copy. REQUIRES: as gm__submitting. */
gm_status gm__saved_pages_write(const gm__access *part, gm_stream *stream, const gm__saved_pages *pages, gm_error *err);

void gm__saved_pages_drop(const gm_services *services, gm__saved_pages **list);

#endif

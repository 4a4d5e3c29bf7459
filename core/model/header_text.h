/* The text of a file's header. It is written twice by the same calls, first to count its bytes. Pure. */
#ifndef GM_CORE_MODEL_HEADER_TEXT_H
#define GM_CORE_MODEL_HEADER_TEXT_H

#include <string.h>

#include "core/base/little.h"
#include "core/model/file_tensor.h"

typedef struct gm__header_text {
  char *at; /* NULL: only count */
  uint64_t bytes;
} gm__header_text;

static inline void gm__header_add(gm__header_text *text, const void *from, uint64_t bytes) {
  if (text->at && bytes) memcpy(text->at + text->bytes, from, (size_t)bytes);
  text->bytes += bytes;
}

/* Add a number, the low byte first. */
static inline void gm__header_number(gm__header_text *text, uint64_t number, uint32_t bytes) {
  char raw[8];
  gm__le_put(raw, number, bytes);
  gm__header_add(text, raw, bytes);
}

/* Add `byte` until the text ends at a multiple of `align`. */
static inline void gm__header_fill(gm__header_text *text, uint64_t align, char byte) {
  const uint64_t more = (align - text->bytes % align) % align;
  if (text->at) memset(text->at + text->bytes, byte, (size_t)more);
  text->bytes += more;
}

/* Write a header of at most `most` bytes. *out is `*out_bytes` of the table's services. NOT_SUPPORTED: it has more.
 * OUT_OF_HOST_MEMORY. */
gm_status gm__header_make(const gm__file_table *table, uint64_t most,
                          void (*write)(gm__header_text *text, const gm__file_table *table), char **out,
                          uint64_t *out_bytes, gm_error *err);

#endif

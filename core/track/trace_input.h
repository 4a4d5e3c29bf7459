/* The bytes of a trace, from a file or from memory, uncompressed. Externally synchronised. */
#ifndef GM_CORE_TRACK_TRACE_INPUT_H
#define GM_CORE_TRACK_TRACE_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/input_file.h"
#include "core/track/trace_gzip.h"
#include "gm/services.h"

enum { GM__TRACE_CHUNK_BYTES = 64 * 1024 };

typedef struct gm__trace_input {
  const gm_services *services; /* borrowed */
  gm__input_file file;         /* closed when the bytes are in memory */
  const char *path;            /* borrowed; for messages */
  const unsigned char *memory; /* borrowed; NULL: from the file */
  uint64_t length;
  uint64_t at;           /* first byte that was not yet taken */
  gm__trace_gzip *gzip;  /* NULL: plain */
  unsigned char *packed; /* GM__TRACE_CHUNK_BYTES for `gzip` */
  size_t packed_from, packed_to;
} gm__trace_input;

/* Open `path`, or take `length` bytes at `memory` when that is not NULL, and look whether they are compressed. On
 * failure nothing is left open. Services and path are kept, not copied. */
gm_status gm__trace_input_open(const gm_services *services, const char *path, const void *memory, uint64_t length,
                               gm__trace_input *out, gm_error *err);

/* Up to `capacity` bytes; *out_bytes 0: the end. */
gm_status gm__trace_input_read(gm__trace_input *input, void *out, size_t capacity, size_t *out_bytes, gm_error *err);

void gm__trace_input_close(gm__trace_input *input);

#endif

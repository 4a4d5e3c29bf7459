/* A trace while it is written. Lines go into a buffer, and from there to a file, packed or not. The first failure
 * stays, and nothing is written after it. Externally synchronised. */
#ifndef GM_CORE_TRACE_TRACE_OUTPUT_H
#define GM_CORE_TRACE_TRACE_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>

#include "core/base/output_file.h"
#include "gm/services.h"
#include "gm/status.h"

/* ---- packing as gzip by zlib ---- */

typedef struct gm__trace_pack gm__trace_pack;

/* Errors: OUT_OF_HOST_MEMORY, NOT_SUPPORTED. Services are borrowed. `path` is for messages. */
gm_status gm__trace_pack_create(const gm_services *services, const char *path, gm__trace_pack **out, gm_error *err);

/* Hands in the next bytes. */
void gm__trace_pack_feed(gm__trace_pack *pack, const void *bytes, size_t count);

/* Takes packed bytes out, as many as there are. Fewer than `capacity` means that all bytes handed in are packed.
 * `last`: no bytes follow, so the rest comes out. */
size_t gm__trace_pack_take(gm__trace_pack *pack, void *out, size_t capacity, bool last);

void gm__trace_pack_destroy(gm__trace_pack *pack); /* NULL is harmless */

/* ---- lines ---- */

enum { GM__TRACE_OUTPUT_BYTES = 64 * 1024, GM__TRACE_OUTPUT_NUMBERS = 4 * 21 /* the longest line of numbers */ };

typedef struct gm__trace_output {
  const gm__output_file *file; /* borrowed, as the next two */
  const char *path;
  const gm_services *services;
  gm__trace_pack *pack; /* NULL: plain */
  char *text;           /* GM__TRACE_OUTPUT_BYTES; behind it as much for what is packed */
  size_t used;
  uint64_t written; /* bytes of the file */
  gm_error failure;
} gm__trace_output;

/* Errors: OUT_OF_HOST_MEMORY. Then nothing is to be closed. */
gm_status gm__trace_output_open(const gm_services *services, const gm__output_file *file, const char *path, bool packed,
                                gm__trace_output *out, gm_error *err);

/* Writes "KIND N N N\n", with as many numbers as there are. */
void gm__trace_output_numbers(gm__trace_output *output, char kind, const uint64_t *numbers, uint32_t count);

/* Writes a text and a newline, together up to GM__TRACE_OUTPUT_BYTES. Bytes that are no text become '?'. */
void gm__trace_output_text(gm__trace_output *output, const char *text, size_t length);

/* Writes the rest. Returns what failed, now or before. */
gm_status gm__trace_output_end(gm__trace_output *output, gm_error *err);

void gm__trace_output_close(gm__trace_output *output);

#endif

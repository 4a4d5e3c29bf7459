/* A trace being written: lines into a buffer, which is packed or not, into a file. Externally synchronised. The first
 * failure stays, and nothing is written after it. */
#ifndef GM_CORE_TRACK_TRACE_OUTPUT_H
#define GM_CORE_TRACK_TRACE_OUTPUT_H

#include "core/base/output_file.h"
#include "core/track/trace_pack.h"

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

/* OUT_OF_HOST_MEMORY; then nothing is to be closed. */
gm_status gm__trace_output_open(const gm_services *services, const gm__output_file *file, const char *path, bool packed,
                                gm__trace_output *out, gm_error *err);

/* "KIND N N N\n", with as many numbers as there are. */
void gm__trace_output_numbers(gm__trace_output *output, char kind, const uint64_t *numbers, uint32_t count);

/* The text and a newline; fewer than GM__TRACE_OUTPUT_BYTES. Bytes that are no text become '?'. */
void gm__trace_output_text(gm__trace_output *output, const char *text, size_t length);

/* What is left is written: what failed, now or before. */
gm_status gm__trace_output_end(gm__trace_output *output, gm_error *err);

void gm__trace_output_close(gm__trace_output *output);

#endif

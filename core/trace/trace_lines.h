/* From the bytes of a trace to its lines: unpacked, read, cut. Externally synchronised. */
#ifndef GM_CORE_TRACE_TRACE_LINES_H
#define GM_CORE_TRACE_TRACE_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/input_file.h"
#include "gm/services.h"
#include "gm/status.h"

/* ---- gzip by zlib, in steps ---- */

typedef struct gm__trace_gzip gm__trace_gzip;

/* One step: what it may take and give, and what it took and gave. */
typedef struct gm__gzip_step {
  const unsigned char *in;
  size_t in_bytes;
  unsigned char *out;
  size_t out_bytes;
  size_t taken;
  size_t given;
  bool at_end; /* right behind a complete member: the file may end here */
} gm__gzip_step;

/* Errors: OUT_OF_HOST_MEMORY. NOT_SUPPORTED: this build has no zlib. `path` is for messages. */
gm_status gm__trace_gzip_create(const gm_services *services, const char *path, gm__trace_gzip **out, gm_error *err);

/* Unpacks as much of `in` as fits into `out`. Members that follow each other read as one. FORMAT: the bytes are no
 * gzip, are damaged, or have a wrong checksum. */
gm_status gm__trace_gzip_step(gm__trace_gzip *gzip, const char *path, gm__gzip_step *step, gm_error *err);

void gm__trace_gzip_destroy(gm__trace_gzip *gzip); /* NULL is harmless */

/* ---- bytes, from a file or from memory, unpacked ---- */

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

/* Opens `path`, or takes `length` bytes at `memory` where that is not NULL. Detects whether they are compressed. On
 * failure nothing is left open. Services and path are kept, not copied. */
gm_status gm__trace_input_open(const gm_services *services, const char *path, const void *memory, uint64_t length,
                               gm__trace_input *out, gm_error *err);

/* Reads up to `capacity` bytes. *out_bytes 0: the end. */
gm_status gm__trace_input_read(gm__trace_input *input, void *out, size_t capacity, size_t *out_bytes, gm_error *err);

void gm__trace_input_close(gm__trace_input *input);

/* ---- lines ---- */

typedef struct gm__trace_lines {
  gm__trace_input input;
  char *window; /* GM__TRACE_CHUNK_BYTES */
  size_t from, to;
  uint64_t number; /* of the line given last, from 1 */
} gm__trace_lines;

/* Like gm__trace_input_open. */
gm_status gm__trace_lines_open(const gm_services *services, const char *path, const void *memory, uint64_t length,
                               gm__trace_lines *out, gm_error *err);

/* Gives the next line, with NUL instead of its newline; NULL at the end. The line stays in the window until the next
 * call. FORMAT: it is longer than GM_TRACE_LINE_MAX, has a control character, or has no newline at its end. */
gm_status gm__trace_lines_next(gm__trace_lines *lines, const char **out, gm_error *err);

/* Fails with FORMAT and "PATH:LINE: text". For line 1, the head, the message says that the file is no trace. */
gm_status gm__trace_lines_fail(const gm__trace_lines *lines, gm_error *err, const char *format, ...) GM_PRINTF(3, 4);

void gm__trace_lines_close(gm__trace_lines *lines);

#endif

/* gzip by zlib, in steps, with memory from gm's services. Externally synchronised. */
#ifndef GM_CORE_TRACK_TRACE_GZIP_H
#define GM_CORE_TRACK_TRACE_GZIP_H

#include <stdbool.h>
#include <stddef.h>

#include "gm/services.h"
#include "gm/status.h"

typedef struct gm__trace_gzip gm__trace_gzip;

/* What a step took and gave. */
typedef struct gm__gzip_step {
  const unsigned char *in;
  size_t in_bytes;
  unsigned char *out;
  size_t out_bytes;
  size_t taken;
  size_t given;
  bool at_end; /* right behind a complete member: the file may end here */
} gm__gzip_step;

/* GM_ERR_NOT_SUPPORTED: this build has no zlib; GM_ERR_OUT_OF_HOST_MEMORY. `path` is for messages. */
gm_status gm__trace_gzip_create(const gm_services *services, const char *path, gm__trace_gzip **out, gm_error *err);

/* Turn as much of `in` as fits into `out`. Members that follow each other read as one. GM_ERR_FORMAT: no gzip, damaged,
 * or the checksum is wrong. */
gm_status gm__trace_gzip_step(gm__trace_gzip *gzip, const char *path, gm__gzip_step *step, gm_error *err);

void gm__trace_gzip_destroy(gm__trace_gzip *gzip); /* NULL is harmless */

#endif

/* The bytes of a file that is saved, one piece after the other. One thread. */
#ifndef GM_CORE_LOAD_SAVE_SINK_H
#define GM_CORE_LOAD_SAVE_SINK_H

#include "core/load/save_file.h"
#include "gm/services.h"

typedef struct gm__save_sink {
  const gm_services *services;
  gm__save_file *file;
  unsigned char *chunk;
  uint64_t at;
  uint32_t crc; /* of what was written since somebody set it to 0 */
} gm__save_sink;

/* OUT_OF_HOST_MEMORY. */
gm_status gm__save_sink_begin(gm__save_sink *sink, const gm_services *services, gm__save_file *file, gm_error *err);
void gm__save_sink_end(gm__save_sink *sink);

/* Write the next bytes. */
gm_status gm__save_sink_write(gm__save_sink *sink, const void *bytes, uint64_t count, gm_error *err);

/* Write `count` bytes, which `read` brings in pieces: the bytes from `at` on go to `to`. */
typedef gm_status (*gm__save_read)(void *user, uint64_t at, void *to, uint64_t bytes, gm_error *err);
gm_status gm__save_sink_fill(gm__save_sink *sink, uint64_t count, gm__save_read read, void *user, gm_error *err);

/* Write zeros up to a multiple of `align`. */
gm_status gm__save_sink_pad(gm__save_sink *sink, uint64_t align, gm_error *err);

/* Write earlier bytes once more. They do not count in `crc`. */
gm_status gm__save_sink_again(gm__save_sink *sink, uint64_t at, const void *bytes, uint64_t count, gm_error *err);

#endif

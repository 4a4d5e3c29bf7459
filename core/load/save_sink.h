/* The bytes of a file that is saved, one piece after the other. One thread. */
#ifndef GM_CORE_LOAD_SAVE_SINK_H
#define GM_CORE_LOAD_SAVE_SINK_H

#include "core/base/inner.h"
#include "core/load/save_writer.h"
#include "core/load/sum_file.h"

typedef struct gm__save_sink {
  gm__side_file *file;
  gm__save_writer *writer;
  gm__save_piece *piece; /* being filled; NULL: none */
  uint64_t piece_bytes;
  uint64_t at;       /* of the next byte */
  uint64_t reserved; /* the file has that size until it ends */
  bool has_crc;      /* a format sets it: `crc` is wanted */
  uint32_t crc;      /* of what was written since somebody set it to 0 */
  bool has_sums;     /* `sums` are wanted */
  gm__sums sums;
} gm__save_sink;

/* gm__save_sink_end ends it; the writer must have settled, or ended. */
void gm__save_sink_begin(gm__save_sink *sink, gm__side_file *file, gm__save_writer *writer, uint64_t piece_bytes);
void gm__save_sink_end(gm__save_sink *sink);

/* The file will have `bytes` bytes, or fewer. IO: the disk has no room for them. OUT_OF_HOST_MEMORY. */
gm_status gm__save_sink_reserve(gm__save_sink *sink, const gm_services *services, uint64_t bytes, gm_error *err);

/* Write the next bytes. */
gm_status gm__save_sink_write(gm__save_sink *sink, const void *bytes, uint64_t count, gm_error *err);

/* Write `count` bytes, which `read` brings in pieces: the bytes from `at` on go to `to`. */
typedef gm_status (*gm__save_read)(void *user, uint64_t at, void *to, uint64_t bytes, gm_error *err);
GM__INNER gm_status gm__save_sink_fill(gm__save_sink *sink, uint64_t count, gm__save_read read, void *user,
                                       gm_error *err);

/* Whether so many bytes are worth it at all. */
bool gm__save_sink_may_lend(const gm__save_sink *sink, uint64_t count);

/* Whether bytes at `from` are worth writing from where they are: the file is at a page, and so are they. */
bool gm__save_sink_lends(const gm__save_sink *sink, const void *from, uint64_t count);

/* Write `count` bytes from where they are: whole pages, of at most one piece. They stay as they are until
 * gm__save_sink_finish. REQUIRES: gm__save_sink_lends. */
gm_status gm__save_sink_lend(gm__save_sink *sink, const void *from, uint64_t count, gm_error *err);

/* Write zeros up to a multiple of `align`. */
gm_status gm__save_sink_pad(gm__save_sink *sink, uint64_t align, gm_error *err);

/* The file is whole: all of it is written, and it ends here. Afterwards only gm__save_sink_again may follow. */
gm_status gm__save_sink_finish(gm__save_sink *sink, gm_error *err);

/* Write earlier bytes of a finished file once more. */
gm_status gm__save_sink_again(gm__save_sink *sink, uint64_t at, const void *bytes, uint64_t count, gm_error *err);

#endif

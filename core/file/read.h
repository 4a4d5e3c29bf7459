/* Reads of many ranges of files. They are sorted by file and offset, joined where they are close, and cut into pieces.
 * Several pieces are read at a time, each by the way that gm__file_way says. At most 40 ms of the measured rate are
 * under way (core/file/read_pace.h). Pieces come in the order in which they arrive:
 *
 *   gm__read_start(ranges, count, &params, &read, err);
 *   while ((status = gm__read_next(read, GM__NEVER, &piece, err)) == GM_OK && piece) {
 *     // each gm__read_part_of(read, piece, i) has arrived
 *     gm__read_done(read, piece);
 *   }
 *   gm__read_end(read);
 *
 * gm__read_next and gm__read_done belong to one thread at a time. gm__read_cancel is thread-safe. */
#ifndef GM_CORE_FILE_READ_H
#define GM_CORE_FILE_READ_H

#include "core/base/inner.h"
#include "core/file/read_range.h"

enum {
  GM__READ_PIECE = 4 << 20,   /* the most that is read at once, and what is if nobody says less */
  GM__READ_FLIGHT = 16,       /* pieces that were begun and are not done; so many a caller may hold */
  GM__READ_SMALL = 256 << 10, /* larger ranges with places of their own are not joined */
  GM__READ_WORKERS = 8        /* so many keep a disk busy */
};

typedef struct gm__read gm__read;
typedef struct gm__read_piece gm__read_piece;

typedef struct gm__read_params {
  const gm_services *services; /* NULL: the C library's */
  uint64_t piece_bytes;        /* cut down to a multiple of GM__INPUT_BLOCK and to GM__READ_PIECE; 0: that */
  uint32_t workers;            /* threads, at most GM__READ_FLIGHT; 0: gm__read_next reads */
  /* Called for each piece that has arrived, before anybody gets it, by who read it: several threads at a time. It holds
   * no lock. NULL: none. */
  void (*seen)(void *user, const gm__read *read, const gm__read_piece *piece);
  void *user;
} gm__read_params;

/* Bytes of one file that have arrived. */
struct gm__read_piece {
  gm_file *file;
  uint64_t at, bytes;
  uint64_t first, count, skip; /* for gm__read_part */
  uint64_t run_bytes;          /* of the part, where its range has runs; else 0 */
  gm_way way;                  /* by which they came */
  const unsigned char *data;   /* of the byte `at`, or of the runs side by side; NULL: the bytes are in their places */
  uint64_t far_front, far_bytes; /* so many bytes, behind the front, are in their place by gm__read_far */
  gm__read_memory memory;        /* of the room: the caller's, who gives it back by himself; all zero: none */
};

/* The part of a piece that belongs to one range. */
typedef struct gm__read_part {
  uint64_t range; /* its number as given to gm__read_start */
  uint64_t from;  /* the first byte, counted from that of the range */
  uint64_t bytes;
} gm__read_part;

typedef struct gm__read_figures {
  uint64_t cached_bytes, direct_bytes, mapped_bytes, far_bytes; /* that were asked for, by the way that they came */
  uint64_t reads;                                               /* pieces */
  uint64_t direct_failures; /* direct reads that failed and were done again through the page cache */
  uint64_t host_bytes;      /* host memory of the read, at most: its own, without that of rooms */
} gm__read_figures;

/* Starts. Files, places and rooms stay valid until gm__read_end; `ranges` is copied. Nothing is read behind a range,
 * but for whole blocks on the direct way. INVALID_ARGUMENT: the ranges are more than 2^32 - 1. IO: a range ends behind
 * its file. OUT_OF_HOST_MEMORY. A system that gives no thread is no error: gm__read_next reads. */
GM__INNER gm_status gm__read_start(const gm__read_range *ranges, uint64_t count, const gm__read_params *params,
                                   gm__read **out, gm_error *err);

/* The next piece that has arrived. *out NULL with GM_OK: all have. TIMEOUT: none in time; without workers the call
 * reads one, however long that takes. CANCELLED. Errors of a read: IO, NOT_FOUND, those of a room, OUT_OF_HOST_MEMORY.
 * After an error there is no piece any more, and nothing is under way. */
GM__INNER gm_status gm__read_next(gm__read *read, uint64_t timeout_ns, gm__read_piece **out, gm_error *err);

/* The part `index` of a piece, below its `count`. */
GM__INNER gm__read_part gm__read_part_of(const gm__read *read, const gm__read_piece *piece, uint64_t index);

/* The bytes of that part, valid until gm__read_done. */
GM__INNER const unsigned char *gm__read_part_data(const gm__read *read, const gm__read_piece *piece, uint64_t index);

/* The caller is done with a piece; the memory of its room is his own matter. */
GM__INNER void gm__read_done(gm__read *read, gm__read_piece *piece);

/* The range whose byte could not be read. Valid after an error of a read. */
GM__INNER uint64_t gm__read_failed_range(const gm__read *read);

/* No further piece is begun. */
void gm__read_cancel(gm__read *read);

/* Cancels, and waits for what is under way. */
GM__INNER void gm__read_stop(gm__read *read);

/* How many bytes of each range, from its first one on, have arrived and are done with, into `by_range`. A range of runs
 * has whole ones. REQUIRES: gm__read_stop */
GM__INNER void gm__read_reached(const gm__read *read, uint64_t *by_range);

GM__INNER void gm__read_get_figures(gm__read *read, gm__read_figures *out);

/* Cancels, waits for what is under way, and frees the read. NULL does nothing. */
GM__INNER void gm__read_end(gm__read *read);

#endif

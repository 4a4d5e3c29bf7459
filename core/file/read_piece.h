/* How one piece of a read gets its bytes. */
#ifndef GM_CORE_FILE_READ_PIECE_H
#define GM_CORE_FILE_READ_PIECE_H

#include "core/file/read.h"

/* A range, in the order of reading. */
typedef struct gm__read_row {
  gm__read_range range;
  uint64_t number; /* as given to gm__read_start */
} gm__read_row;

/* One piece while it is read, and what became of that. */
typedef struct gm__read_run {
  const gm__read_row *rows; /* of the whole read */
  gm__read_piece *piece;
  unsigned char *bounce; /* memory of the worker for piece_bytes; NULL: none yet */
  uint64_t piece_bytes;
  uint64_t failed_at;       /* the byte of the file, after a failure */
  uint64_t direct_failures; /* direct reads that failed, and went well through the page cache */
} gm__read_run;

/* The part `index` of the piece, below its `count`. */
gm__read_part gm__read_row_part(const gm__read_row *rows, const gm__read_piece *piece, uint64_t index);

/* Reads the piece into its places, or, where it has memory of a room, into that. Errors: as for gm__read_next. */
gm_status gm__read_run_piece(gm__read_run *run, gm_error *err);

#endif

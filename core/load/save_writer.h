/* Writes the pieces of a file while the caller fills the next ones. Several are written at once, from bounded host
 * memory. They go past the page cache where the file system lets. A file of one piece takes no thread. For one caller.
 */
#ifndef GM_CORE_LOAD_SAVE_WRITER_H
#define GM_CORE_LOAD_SAVE_WRITER_H

#include "core/file/side_file.h"
#include "core/staging/ring.h"
#include "gm/services.h"

enum { GM__SAVE_PIECES = 6 /* with memory */, GM__SAVE_PIECE_BYTES = 4 << 20 };

typedef struct gm__save_writer gm__save_writer;

typedef struct gm__save_piece {
  unsigned char *host;       /* at a page; the caller fills it */
  const unsigned char *from; /* what is written: `host`, or memory of the caller's, at a page, until it settles */
  uint64_t at, bytes;        /* of the file; the caller sets `bytes` */
  void *memory;              /* of the services; NULL: `slot` has it */
  gm__ring_slot *slot;
  struct gm__save_piece *next;
} gm__save_piece;

/* `piece_bytes`: a multiple of 4096. `ring` (with slots of `piece_bytes`) gives the memory where it is not NULL, else
 * the services. OUT_OF_HOST_MEMORY. gm__save_writer_end ends it, and waits for what is being written. */
gm_status gm__save_writer_begin(const gm_services *services, gm__side_file *file, uint64_t piece_bytes, gm__ring *ring,
                                gm__save_writer **out, gm_error *err);
void gm__save_writer_end(gm__save_writer *writer);

/* An empty piece for the caller. Where it is `lent`, the caller sets `from`, and it needs no memory. Waits while all
 * are in use. It fails for the first failure of a write, and where there is no memory for even one piece. */
gm_status gm__save_writer_take(gm__save_writer *writer, bool lent, gm__save_piece **out, gm_error *err);

/* Hand a piece on: it is written at `at`, which follows the piece before it. */
void gm__save_writer_give(gm__save_writer *writer, gm__save_piece *piece);

/* Wait until all pieces that were given are written. The first failure of a write. */
gm_status gm__save_writer_settle(gm__save_writer *writer, gm_error *err);

typedef struct gm__save_writer_info {
  uint64_t host_bytes;   /* memory of its pieces */
  uint64_t direct_bytes; /* went past the page cache */
  uint64_t write_ns;     /* while at least one piece was being written */
  const char *why;       /* why not all whole pages did; "": they did */
} gm__save_writer_info;
void gm__save_writer_figures(gm__save_writer *writer, gm__save_writer_info *out);

#endif

/* A range of a file that is to be read: where its bytes lie, and where they go. */
#ifndef GM_CORE_FILE_READ_RANGE_H
#define GM_CORE_FILE_READ_RANGE_H

#include "core/base/inner.h"
#include "core/file/file.h"

enum { GM__READ_GAP = 64 << 10 /* ranges and runs with less than that between them are joined */ };

/* Memory for a piece whose bytes have no place in host memory of their own. */
typedef struct gm__read_memory {
  unsigned char *host; /* at a multiple of GM__INPUT_BLOCK */
  void *token;         /* of the owner */
} gm__read_memory;

/* Where such memory comes from: a ring's slots, for example. */
typedef struct gm__read_room {
  uint64_t bytes; /* of each memory: at least piece_bytes of the read */
  /* Called by workers, several at a time, without a lock. May wait for a moment. TIMEOUT: there is none yet; the read
   * looks whether it was cancelled, and asks again. Other errors end the read. */
  gm_status (*take)(void *user, gm__read_memory *out, gm_error *err);
  /* Takes back memory of a piece that was not handed out. gm__read_next hands out the others. */
  void (*give)(void *user, const gm__read_memory *memory);
  void *user;
} gm__read_room;

/* A way from a file straight into memory that the host does not write: GPUDirect Storage. */
typedef struct gm__read_range gm__read_range;
typedef struct gm__read_far {
  /* Reads the bytes [from, from + bytes) of a range into the memory at its `address`, or the middle of them: *out_front
   * bytes behind `from`. Returns how many; 0: none, and the piece goes another way. Called by workers, several at a
   * time, without a lock. */
  uint64_t (*read)(void *user, const gm__read_range *range, uint64_t from, uint64_t bytes, uint64_t *out_front);
  void *user;
} gm__read_far;

struct gm__read_range {
  gm_file *file;
  uint32_t order;            /* of the file: files are read in this order; equal for one file */
  uint64_t at, bytes;        /* 0 bytes: the range is left out, and needs no file */
  uint64_t run, step;        /* run 0: the bytes lie side by side; else so many do, and `step` bytes on the next ones.
                                `bytes` is a multiple of `run` then, and ranges of runs are never joined */
  unsigned char *to;         /* host memory; NULL: the bytes stay in memory of `room` */
  const gm__read_room *room; /* ranges of one piece have one room, or none */
  const gm__read_far *far;   /* tried first, where there is a room and no runs; never joined. NULL: none */
  uint64_t address;          /* for `far`: of the first byte */
};

/* How many bytes of a range a piece of a read has that begins with byte `from` of it. *out_extent is how many bytes of
 * the file these reach over. */
GM__INNER uint64_t gm__read_range_part(const gm__read_range *range, uint64_t piece_bytes, uint64_t from,
                                       uint64_t *out_extent);

/* Where in the file the byte `from` of a range lies. */
static inline uint64_t gm__read_range_at(const gm__read_range *range, uint64_t from) {
  return range->run ? range->at + from / range->run * range->step + from % range->run : range->at + from;
}

#endif

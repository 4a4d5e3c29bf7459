/* How much a read of files may have under way. A cancel waits for what the disk has in hand. So that is at most what
 * the disk brings in 40 ms at the rate that was measured, or one read. Where one alone takes longer than 50 ms, further
 * ones go beside it as long as that makes none of them later. The owner's lock guards it. */
#ifndef GM_CORE_FILE_READ_PACE_H
#define GM_CORE_FILE_READ_PACE_H

#include <stdbool.h>
#include <stdint.h>

enum {
  GM__READ_PACE_NS = 40000000, /* so long the disk works at what is under way, and so much of the past is the rate */
  GM__READ_PACE_LATE_NS = 50000000 /* a read that takes longer alone */
};

typedef struct gm__read_pace {
  uint64_t under_way; /* bytes that were claimed and have not ended */
  uint32_t reading;   /* reads that the disk has */
  uint64_t since;     /* the time up to which `ns` was counted; REQUIRES: reading */
  uint64_t bytes, ns; /* of the rate: what arrived lately, and how long the disk had reads meanwhile */
  uint64_t quickest;  /* nanoseconds of the quickest read; 0: none has ended */
} gm__read_pace;

/* Whether a further read of `bytes` bytes may be claimed. Until one has ended, one goes at a time. */
bool gm__read_pace_allows(const gm__read_pace *pace, uint64_t bytes);

/* A read is claimed. Later the disk has it, or it is dropped. */
void gm__read_pace_claim(gm__read_pace *pace, uint64_t bytes);
void gm__read_pace_drop(gm__read_pace *pace, uint64_t bytes);

/* The disk has it from `now` on. */
void gm__read_pace_begin(gm__read_pace *pace, uint64_t now);

/* The disk has brought it, or failed to: at `now`, after it began at `began`. */
void gm__read_pace_end(gm__read_pace *pace, uint64_t bytes, uint64_t began, uint64_t now);

#endif

/* Chunks: pieces of memory. A number names a chunk, and a chunk knows its neighbours. The records lie outside the
 * memory that they describe, in one table; each has a cache line of its own. The caller synchronises. */
#ifndef GM_CORE_ALGO_CHUNK_H
#define GM_CORE_ALGO_CHUNK_H

#include <stdalign.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gm/services.h"

typedef enum gm__chunk_state {
  GM__CHUNK_UNUSED = 0, /* a record without memory */
  GM__CHUNK_EDGE,       /* it has no bytes: a row of chunks begins or ends there */
  GM__CHUNK_UNMAPPED,   /* addresses without memory behind them */
  GM__CHUNK_FREE,       /* in a bin */
  GM__CHUNK_QUICK,      /* in a quick list: its neighbours are not joined with it */
  GM__CHUNK_LIVE,       /* handed out */
  GM__CHUNK_AWAY        /* between two states, in the hands of one thread */
} gm__chunk_state;

enum {
  GM__CHUNK_STATE = 0x7f,
  GM__CHUNK_COLD = 0x80, /* a cold record says more about it */
  GM__CHUNKS_MAX = 1 << 24
};

/* Sizes are in granules. Chunk 0 is nobody: an edge that any chunk may have as its neighbour. */
typedef struct gm__chunk {
  alignas(64) uint64_t address;
  uint64_t seq; /* when it was freed, by the owner's clock */
  uint32_t granules;
  uint32_t left, right;   /* neighbours by address */
  uint32_t prev, next;    /* of a free chunk: its links in the bin. Other owners link by `next` */
  uint32_t segment_index; /* which segment's memory it is */
  uint32_t check;         /* counts hand-outs and frees */
  union {
    struct {
      uint16_t bin; /* of a free chunk: its bin. In a live chunk: the stream cache of the stream that asked for it */
      union {
        struct {
          uint8_t cache; /* the stream cache that it belongs to when it is free */
          uint8_t state; /* gm__chunk_state, and GM__CHUNK_COLD */
        };
        uint16_t part; /* `cache` and `state` */
      };
    };
    uint32_t role; /* `bin` and `part` */
  };
  union {
    struct {
      uint32_t slack, tag; /* of a live chunk: the bytes beyond those asked for, and the request's tag */
    };
    uint64_t streams; /* of other chunks that several streams may use: those streams */
  };
} gm__chunk;

/* The address of a record is good until more records are reserved. */
typedef struct gm__chunks {
  gm__chunk *table;
  uint32_t unused, unused_count; /* the first unused record, linked by `next`; how many there are */
  uint32_t count;                /* records that were ever in use or unused; those behind them are untouched */
  uint32_t capacity;
  uint32_t first_check;
  uint32_t most; /* the capacity never exceeds it: GM__CHUNKS_MAX */
  const gm_services *services;
} gm__chunks;

/* Makes the table, with memory for the first records. False without host memory. */
bool gm__chunks_init(gm__chunks *chunks, const gm_services *services, uint32_t first_check);
void gm__chunks_clear(gm__chunks *chunks);

enum { GM__CHUNKS_STEP = 256 };

bool gm__chunks_reserve_slow(gm__chunks *chunks);

/* Makes sure that `count` records (at most GM__CHUNKS_STEP) can be taken. False without host memory, and when the table
 * is full. */
static inline bool gm__chunks_reserve(gm__chunks *chunks, uint32_t count) {
  return chunks->unused_count >= count || gm__chunks_reserve_slow(chunks);
}

/* True when fewer than `count` records are unused, and there can be no more. */
static inline bool gm__chunks_are_full(const gm__chunks *chunks, uint32_t count) {
  return chunks->unused_count < count && chunks->most - chunks->count < GM__CHUNKS_STEP;
}

/* Every number is less than this. */
static inline uint32_t gm__chunks_count(const gm__chunks *chunks) { return chunks->count; }

static inline gm__chunk *gm__chunk_at(const gm__chunks *chunks, uint32_t number) { return &chunks->table[number]; }

/* Takes a record that was reserved. Its members but `check` have old values. */
static inline uint32_t gm__chunks_pop(gm__chunks *chunks) {
  const uint32_t number = chunks->unused;
  chunks->unused = gm__chunk_at(chunks, number)->next;
  chunks->unused_count--;
  return number;
}

static inline void gm__chunks_push(gm__chunks *chunks, uint32_t number) {
  gm__chunk *chunk = gm__chunk_at(chunks, number);
  chunk->state = GM__CHUNK_UNUSED;
  chunk->next = chunks->unused;
  chunks->unused = number;
  chunks->unused_count++;
}

/* The chunk `middle` comes to lie between two neighbours. */
static inline void gm__chunk_insert(gm__chunks *chunks, uint32_t left, uint32_t middle, uint32_t right) {
  gm__chunk *chunk = gm__chunk_at(chunks, middle);
  chunk->left = left;
  chunk->right = right;
  gm__chunk_at(chunks, left)->right = middle;
  gm__chunk_at(chunks, right)->left = middle;
}

/* The record becomes unused. Its neighbours touch. */
static inline void gm__chunk_unlink(gm__chunks *chunks, uint32_t number) {
  const gm__chunk *chunk = gm__chunk_at(chunks, number);
  gm__chunk_at(chunks, chunk->left)->right = chunk->right;
  gm__chunk_at(chunks, chunk->right)->left = chunk->left;
  gm__chunks_push(chunks, number);
}

#endif

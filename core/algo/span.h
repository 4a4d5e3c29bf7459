/* Spans: ranges of memory, named by a number, each with its neighbours. Their records lie outside the memory that they
 * describe, in one table, where each has a cache line for itself. Externally synchronised. */
#ifndef GM_CORE_ALGO_SPAN_H
#define GM_CORE_ALGO_SPAN_H

#include <stdalign.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gm/services.h"

typedef enum gm__span_state {
  GM__SPAN_UNUSED = 0, /* a record without memory */
  GM__SPAN_EDGE,       /* where a run of spans begins or ends; no bytes */
  GM__SPAN_GAP,        /* addresses without memory behind them */
  GM__SPAN_HOLE,       /* in a bin */
  GM__SPAN_QUICK,      /* in a quick list: no hole to its neighbours */
  GM__SPAN_LIVE,       /* handed out */
  GM__SPAN_AWAY        /* between two states */
} gm__span_state;

enum {
  GM__SPAN_STATE = 0x7f,
  GM__SPAN_RARE = 0x80, /* there is more to say about it, elsewhere */
  GM__SPANS_MAX = 1 << 24
};

/* Sizes are in granules, whatever their bytes. Number 0 is nobody: an edge that any span may have for a neighbour. */
typedef struct gm__span {
  alignas(64) uint64_t address;
  uint64_t seq; /* when it was freed, by the caller's clock */
  uint32_t granules;
  uint32_t left, right; /* neighbours by address */
  uint32_t prev, next;  /* a hole's in its bin; `next` of others: whatever their owner links */
  uint32_t home;        /* whose memory it is */
  uint32_t check;       /* counts hand-outs and frees */
  union {
    struct {
      uint16_t bin; /* of a hole; of a live span the lane of the stream that asked for it */
      union {
        struct {
          uint8_t lane;  /* which holes it may be searched among */
          uint8_t state; /* gm__span_state, and GM__SPAN_RARE */
        };
        uint16_t part; /* these two */
      };
    };
    uint32_t role; /* all three */
  };
  union {
    struct {
      uint32_t slack, tag; /* of a live span: bytes beyond what was asked for, what it is for */
    };
    uint64_t streams; /* of others that several may still use: which */
  };
} gm__span;

/* A record's address is good until more are reserved. */
typedef struct gm__spans {
  gm__span *table;
  uint32_t unused, unused_count; /* linked by `next` */
  uint32_t count;                /* records that were ever in use or unused; those behind them are untouched */
  uint32_t capacity;
  uint32_t first_check;
  uint32_t most; /* capacity is never more: GM__SPANS_MAX */
  void *memory;  /* that the table lies in */
  const gm_services *services;
} gm__spans;

/* Takes memory for the first of them; false without. */
bool gm__spans_init(gm__spans *spans, const gm_services *services, uint32_t first_check);
void gm__spans_clear(gm__spans *spans);

enum { GM__SPANS_STEP = 256 };

bool gm__spans_reserve_slow(gm__spans *spans);

/* See that `count` (at most GM__SPANS_STEP) can be taken; false without host memory, and when they are full. */
static inline bool gm__spans_reserve(gm__spans *spans, uint32_t count) {
  return spans->unused_count >= count || gm__spans_reserve_slow(spans);
}

/* Are there less than `count` unused records, and never more? */
static inline bool gm__spans_are_full(const gm__spans *spans, uint32_t count) {
  return spans->unused_count < count && spans->most - spans->count < GM__SPANS_STEP;
}

/* Every number is less. */
static inline uint32_t gm__spans_count(const gm__spans *spans) { return spans->count; }

static inline gm__span *gm__span_at(const gm__spans *spans, uint32_t number) { return &spans->table[number]; }

/* One of those that were reserved. Its members but `check` are left over from before. */
static inline uint32_t gm__spans_take(gm__spans *spans) {
  const uint32_t number = spans->unused;
  spans->unused = gm__span_at(spans, number)->next;
  spans->unused_count--;
  return number;
}

static inline void gm__spans_give(gm__spans *spans, uint32_t number) {
  gm__span *span = gm__span_at(spans, number);
  span->state = GM__SPAN_UNUSED;
  span->next = spans->unused;
  spans->unused = number;
  spans->unused_count++;
}

/* `middle` comes to lie between two neighbours. */
static inline void gm__span_insert(gm__spans *spans, uint32_t left, uint32_t middle, uint32_t right) {
  gm__span *span = gm__span_at(spans, middle);
  span->left = left;
  span->right = right;
  gm__span_at(spans, left)->right = middle;
  gm__span_at(spans, right)->left = middle;
}

/* The record goes; its neighbours touch. */
static inline void gm__span_unlink(gm__spans *spans, uint32_t number) {
  const gm__span *span = gm__span_at(spans, number);
  gm__span_at(spans, span->left)->right = span->right;
  gm__span_at(spans, span->right)->left = span->left;
  gm__spans_give(spans, number);
}

#endif

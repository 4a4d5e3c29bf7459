/* The table of a pool's driver allocations. An allocation is a block, or an arena carves it into chunks
 * (core/arena/segment.h). Its record never moves; an index and a check number name it. REQUIRES: provider lock, for all
 * of it. */
#ifndef GM_CORE_PROVIDER_ALLOCATION_H
#define GM_CORE_PROVIDER_ALLOCATION_H

#include "core/device/type_wish.h"
#include "core/provider/cold.h"
#include "gm/pool.h"

typedef enum gm__allocation_state {
  GM__ALLOCATION_UNUSED = 0, /* no memory behind it */
  GM__ALLOCATION_LIVE,       /* handed out */
  GM__ALLOCATION_POOLED,     /* kept for reuse */
  GM__ALLOCATION_SEGMENT,    /* an arena carves it; it is never handed out itself */
  GM__ALLOCATION_AWAY        /* between two states, in the hands of one thread */
} gm__allocation_state;

typedef enum gm__allocation_order { GM__BY_AGE, GM__BY_USE, GM__ALLOCATION_ORDERS } gm__allocation_order;

typedef struct gm__allocation gm__allocation;

typedef struct gm__allocation_link {
  gm__allocation *prev, *next;
} gm__allocation_link;

struct gm__allocation {
  struct gm__segment *segment; /* in state GM__ALLOCATION_SEGMENT: the arena's segment */
  gm_memory memory;
  uint64_t offset;                    /* where its first byte is in `memory` */
  void *token;                        /* of the upstream */
  uint64_t address;                   /* device address, or a synthetic one */
  uint64_t bytes;                     /* taken from the backend for it; the budget counts so many */
  uint64_t requested;                 /* live: what the caller asked for */
  uint64_t asked_on;                  /* live: id of the request's stream; 0: the host */
  uint64_t freed_on;                  /* id of the stream of its last free; 0: the host */
  struct gm__import *import;          /* what gm_free closes (core/device/import.h); NULL: it is not imported */
  struct gm__native_objects *objects; /* of its ranges (native_objects.h); NULL: none was asked for */
  void *heap;                         /* a profiler's handle; NULL: no profiler follows it */
  gm__cold cold;
  gm__allocation_link links[GM__ALLOCATION_ORDERS];
  uint32_t index, check;
  uint32_t align, usage, tag, size_class;
  gm_must_be must_be; /* as asked when it was taken from the driver, as is the next */
  gm__type_wish wish;
  uint8_t state;   /* gm__allocation_state */
  uint8_t busy_of; /* pooled and not idle: the slot of the one stream that may use it, or GM__BUCKET_SEVERAL */
  bool committed;
  bool exact;        /* GM_DEDICATED: for requests of exactly its bytes */
  bool foreign;      /* wrapped, imported or managed: never pooled */
  bool is_range;     /* in state GM__ALLOCATION_SEGMENT: it is a VA range, whose pages belong to the segment */
  bool idle;         /* pooled, and no stream is known to use it */
  bool multi_stream; /* not pooled, and in gm__dedicated.multi_stream */
};

typedef struct gm__allocation_list {
  gm__allocation *first, *last;
  uint32_t count;
} gm__allocation_list;

/* The allocation becomes the first of the list. */
static inline void gm__allocation_list_push(gm__allocation_list *list, gm__allocation_order order,
                                            gm__allocation *allocation) {
  allocation->links[order] = (gm__allocation_link){NULL, list->first};
  if (list->first) {
    list->first->links[order].prev = allocation;
  } else {
    list->last = allocation;
  }
  list->first = allocation;
  list->count++;
}

static inline void gm__allocation_list_remove(gm__allocation_list *list, gm__allocation_order order,
                                              gm__allocation *allocation) {
  gm__allocation_link *link = &allocation->links[order];
  if (link->prev) {
    link->prev->links[order].next = link->next;
  } else {
    list->first = link->next;
  }
  if (link->next) {
    link->next->links[order].prev = link->prev;
  } else {
    list->last = link->prev;
  }
  *link = (gm__allocation_link){NULL, NULL};
  list->count--;
}

/* True when its owner has the block. A guard may hold a freed block back: then it is live, but not out. REQUIRES:
 * provider lock. */
static inline bool gm__allocation_is_out(const gm__allocation *allocation) {
  return allocation->state == GM__ALLOCATION_LIVE && !allocation->cold.guard.withheld;
}

#define GM__ALLOCATIONS_STEP 64u

typedef struct gm__allocation_table {
  const gm_services *services;
  gm__allocation **chunks;
  uint32_t chunk_count, chunk_capacity;
  gm__allocation *unused; /* linked by links[GM__BY_USE].next */
  uint32_t first_check;   /* differs from pool to pool, so that a block of another pool is refused */
} gm__allocation_table;

void gm__allocation_table_init(gm__allocation_table *table, const gm_services *services, uint64_t pool_id);
void gm__allocation_table_clear(gm__allocation_table *table);

/* A record in state AWAY that has an index and a check number only; NULL without host memory. */
gm__allocation *gm__allocation_new(gm__allocation_table *table);
void gm__allocation_release(gm__allocation_table *table, gm__allocation *allocation); /* it becomes unused */

/* The live allocation that `block` names; NULL: there is none, or it was freed, or it is of another pool. `whole`: the
 * block's other members must be as they were handed out, too. */
gm__allocation *gm__allocation_find(const gm__allocation_table *table, const gm_block *block, bool whole);

gm_block gm__allocation_block(const gm__allocation *allocation);

/* Walks over all records, also unused ones. It begins with *cursor = 0, and NULL is the end. */
gm__allocation *gm__allocation_next(const gm__allocation_table *table, uint32_t *cursor);

#endif

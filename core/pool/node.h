/* The table of a pool's driver allocations, which are blocks or are carved into some (segment.h): one node each, at an
 * address that never changes, named by index and check number. Externally synchronised (the pool's lock). */
#ifndef GM_CORE_POOL_NODE_H
#define GM_CORE_POOL_NODE_H

#include "core/pool/mark.h"
#include "gm/pool.h"

typedef enum gm__node_state {
  GM__NODE_UNUSED = 0, /* no memory behind it */
  GM__NODE_LIVE,       /* handed out */
  GM__NODE_POOLED,     /* kept for reuse */
  GM__NODE_SEGMENT,    /* never handed out itself: its parts are (segment.h) */
  GM__NODE_AWAY        /* between two states, in the hands of one thread */
} gm__node_state;

typedef enum gm__node_order { GM__BY_BUCKET, GM__BY_AGE, GM__BY_USE, GM__BY_RING, GM__NODE_ORDERS } gm__node_order;

typedef struct gm__node gm__node;

typedef struct gm__node_link {
  gm__node *prev, *next;
} gm__node_link;

struct gm__node {
  struct gm__segment *segment; /* in state GM__NODE_SEGMENT: what carves it */
  gm_memory memory;
  uint64_t offset;           /* of the first byte, in `memory` */
  void *token;               /* the upstream's */
  uint64_t address;          /* device address, or a synthetic one */
  uint64_t bytes;            /* taken from the backend for it, as the pool counts */
  uint64_t requested;        /* live: what the caller asked for */
  uint64_t asked_on;         /* live: id of the request's stream; 0: the host */
  uint64_t freed_on;         /* id of the stream of its last free; 0: the host */
  struct gm__opened *opened; /* imported: what gm_free lets go of (share.h) */
  void *heap;                /* what a tool calls it; NULL: it does not follow it */
  gm__rare rare;
  uint64_t
      ring; /* pooled and not idle: slots (bits) of the streams that its free named; of all of its ring (bucket.h) */
  gm__node_link links[GM__NODE_ORDERS];
  uint32_t index, check;
  uint32_t align, usage, tag, size_class;
  gm_must_be must_be; /* what it was asked to be when it was taken */
  uint8_t state;      /* gm__node_state */
  uint8_t busy_of;    /* pooled and not idle: the slot of the stream that freed it, or GM__BUCKET_OTHERS */
  bool committed;
  bool foreign; /* of gm_block_wrap or gm_block_import, or managed: never pooled */
  bool idle;    /* pooled, and no stream is known to use it */
  bool leads;   /* the oldest of its ring */
  bool marked;  /* not pooled, and in pool->marked */
};

typedef struct gm__node_list {
  gm__node *first, *last;
  uint32_t count;
} gm__node_list;

/* Becomes the first. */
static inline void gm__node_list_push(gm__node_list *list, gm__node_order order, gm__node *node) {
  node->links[order] = (gm__node_link){NULL, list->first};
  if (list->first) {
    list->first->links[order].prev = node;
  } else {
    list->last = node;
  }
  list->first = node;
  list->count++;
}

static inline void gm__node_list_remove(gm__node_list *list, gm__node_order order, gm__node *node) {
  gm__node_link *link = &node->links[order];
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
  *link = (gm__node_link){NULL, NULL};
  list->count--;
}

#define GM__NODE_CHUNK 64u

typedef struct gm__node_table {
  const gm_services *services;
  gm__node **chunks;
  uint32_t chunk_count, chunk_capacity;
  gm__node *unused;     /* linked by links[GM__BY_BUCKET].next */
  uint32_t first_check; /* differs from pool to pool, so that a foreign block is told apart */
} gm__node_table;

void gm__node_table_init(gm__node_table *table, const gm_services *services, uint64_t pool_id);
void gm__node_table_clear(gm__node_table *table);

/* A node with nothing in it but index and check, in state AWAY; NULL without host memory. */
gm__node *gm__node_take(gm__node_table *table);
void gm__node_give(gm__node_table *table, gm__node *node); /* back to unused */

/* The live node that `block` names; NULL if there is none: freed before, never given, of another pool. With `whole` its
 * other members must be as they were handed out, too. */
gm__node *gm__node_find(const gm__node_table *table, const gm_block *block, bool whole);

gm_block gm__node_block(const gm__node *node);

/* Every node there is, also unused ones: start with *cursor = 0; NULL at the end. */
gm__node *gm__node_next(const gm__node_table *table, uint32_t *cursor);

#endif

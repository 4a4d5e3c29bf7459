/* The structs of a page set. A record of a page is 32 bytes; what only keys need lies apart. */
#ifndef GM_CORE_PAGES_PAGES_STATE_H
#define GM_CORE_PAGES_PAGES_STATE_H

#include <stdbool.h>

#include "core/base/thread.h"
#include "core/context/object.h"
#include "gm/page_memory.h"

#define GM__NO_NODE UINT32_MAX

/* One owner's holds of one page. A node is named by an index: page p's own node is p, further ones follow from
 * max_pages on. `next` and `previous` are nodes of the same owner; of a page that nobody holds, they are pages of the
 * same list (page_order.h). */
typedef struct gm__page_hold {
  uint32_t owner; /* 0: none */
  uint32_t next, previous;
  uint16_t times; /* holds of this owner */
  uint16_t count; /* of a page's own node: holds of all owners */
} gm__page_hold;

typedef struct gm__page {
  gm__page_hold hold;
  uint64_t stamp;   /* the newest step when it became idle or free; 0: no step was open */
  uint32_t keyed;   /* the generation of its key; 0: it is not in the map */
  uint8_t priority; /* of its key */
  uint8_t list;     /* of page_order.h, if it is in one; GM__PAGE_AWAY */
  uint16_t reserved;
} gm__page;

typedef struct gm__page_extra { /* a node that is not a page's own */
  gm__page_hold hold;
  uint32_t page;
  uint32_t chain; /* the next node of its bucket, or of those without a use */
} gm__page_extra;

enum { GM__PAGE_PIECE = 1024 }; /* tables grow by pieces of so many entries, which never move */

typedef struct gm__page_pieces {
  void **pieces;
  uint32_t count, room;
  size_t entry_bytes;
} gm__page_pieces;

typedef struct gm__page_holds {
  gm__page_pieces extras, heads; /* gm__page_extra; uint32_t: the first extra node of a bucket, plus one */
  uint32_t unused;               /* the first extra node without a use, plus one */
  uint32_t used, made;           /* extra nodes */
  uint32_t buckets, mask;        /* buckets from 0; `mask` + 1 is the least power of two that is larger */
} gm__page_holds;

typedef struct gm__page_owner {
  uint32_t number; /* index | generation << 20 */
  bool open;
  uint32_t next;        /* the next closed one */
  uint32_t first, last; /* nodes */
  uint32_t pages;
  char tag[GM_PAGE_TAG_SIZE];
} gm__page_owner;

typedef struct gm__page_owners {
  gm__page_pieces table;
  uint32_t made, open;
  uint32_t closed_first, closed_last; /* indexes; the one that is closed for the longest time first */
  uint32_t turn;                      /* with which each index begins: it differs from set to set */
} gm__page_owners;

typedef struct gm__page_list {
  uint32_t first, last, count;
} gm__page_list;

enum {
  GM__PAGE_LISTS = 1 + GM_PAGE_PRIORITIES, /* 0: pages without a key that wait for steps */
  GM__PAGE_AWAY = 255                      /* out of the stack, as its memory goes */
};

typedef struct gm__page_end { /* where a step ends */
  gm_device *device;          /* NULL: the program tells, or it has ended */
  gm_point point;
} gm__page_end;

typedef struct gm__page_order {
  uint32_t *stack; /* pages without a key that wait for nothing */
  uint32_t stacked;
  uint32_t fresh; /* pages from here on were never taken */
  gm__page_list lists[GM__PAGE_LISTS];
  uint64_t listed;                  /* bit p: list 1 + p is not empty */
  uint64_t next_step, passed_below; /* all steps below `passed_below` have ended */
  bool ended[GM_PAGE_STEPS_MOST];   /* of step s: at s % GM_PAGE_STEPS_MOST */
  uint32_t waiting[GM_PAGE_STEPS_MOST];
  uint32_t available; /* pages that can be taken now */
  uint32_t dropped;   /* idle pages whose keys are dropped: the first ones of each list */
  uint32_t open_steps;
  gm__page_end ends[GM_PAGE_STEPS_MOST]; /* of step s: at s % GM_PAGE_STEPS_MOST */
  bool of_copy[GM_PAGE_STEPS_MOST];      /* the step is a copy of gm's */
  uint32_t awaited;                      /* open steps that end at a point */
  bool looking;                          /* a thread asks the device, without the lock */
} gm__page_order;

typedef struct gm__page_name { /* of a page that is in the map of keys */
  gm_page_key key;
  uint32_t next; /* the next page of its bucket, plus one */
} gm__page_name;

typedef struct gm__page_keys {
  gm__page_name *names; /* of each page */
  uint32_t *heads;      /* the first page of a bucket, plus one */
  uint32_t mask;
  uint32_t generation; /* keys of an earlier one are dropped */
} gm__page_keys;

/* States of a granule. Its pages are in the order, or held, while it is BACKED. A thread that grows has those that are
 * COMING, and the one that trims those that are GOING: they change the blocks without the lock. */
enum { GM__GRANULE_EMPTY, GM__GRANULE_COMING, GM__GRANULE_BACKED, GM__GRANULE_GOING };

typedef struct gm__page_planes {
  gm_pool *pool; /* NULL: the memory is the program's, and the rest is 0 */
  gm_request request;
  uint64_t *bytes; /* of a page, in each plane */
  uint32_t count, granule_pages, granules;
  uint32_t backed;  /* pages */
  uint64_t came;    /* granules that have got memory since the set was made */
  gm_block *blocks; /* of granule g in plane k: at g * count + k; of 0 bytes: none */
  uint8_t *states;  /* of each granule */
  bool trimming;    /* a thread trims */
} gm__page_planes;

struct gm_pages {
  gm__object head;
  gm_context *ctx;
  const _Atomic uint64_t *generation_at; /* holds `generation` until the process forks */
  uint64_t generation;
  uint32_t max_pages, reserve;
  bool keep_first;
  gm__mutex lock;
  gm__page *pages;
  gm__page_order order;
  gm__page_holds holds;
  gm__page_owners owners;
  gm__page_keys keys;
  gm__page_planes planes;
  uint32_t held;
  uint32_t tables; /* that were made and not destroyed */
  uint64_t hold_count, taken, refused, found, evicted, copied;
};

static inline const gm_services *gm__pages_services(const gm_pages *set) { return gm__context_services(set->ctx); }

/* Entry `index` of a table of `bytes` large entries. */
static inline void *gm__page_piece_at(const gm__page_pieces *table, uint32_t index, size_t bytes) {
  return (unsigned char *)table->pieces[index / GM__PAGE_PIECE] + index % GM__PAGE_PIECE * bytes;
}

/* The first page of a granule; of the one after the last: max_pages. */
static inline gm_page gm__granule_first(const gm_pages *set, uint32_t granule) {
  const uint64_t first = (uint64_t)granule * set->planes.granule_pages;
  return first < set->max_pages ? (gm_page)first : set->max_pages;
}

#endif

/* Buckets: pooled blocks by size class, each an allocation of its own. Classes are powers of two, or 2^bits between one
 * and the next. Externally synchronised. */
#ifndef GM_CORE_POOL_BUCKET_H
#define GM_CORE_POOL_BUCKET_H

#include "core/pool/node.h"
#include "core/pool/order.h"

enum { GM__BUCKET_OTHERS = GM__ORDER_SLOTS };

typedef struct gm__bucket {
  gm__node_list list;  /* all of them, newest first */
  gm__node_list idle;  /* of these: what no stream is known to use, by GM__BY_USE; settled last first */
  gm__node_list rings; /* the others, by GM__BY_RING: the oldest node of each ring */
  uint32_t served;     /* requests that it served since it was looked at last */
} gm__bucket;

typedef struct gm__buckets {
  gm__bucket *classes;                  /* by size class */
  uint32_t class_count, bits;           /* classes between two powers of two: 1 << bits */
  gm__node_list ages;                   /* all of them, newest first */
  uint32_t idle;                        /* blocks that no stream is known to use: the pool's cache */
  uint32_t busy[GM__BUCKET_OTHERS + 1]; /* others, by the slot of the stream that freed them: the streams' caches */
  uint32_t most;                        /* blocks kept in one bucket; more only while streams still use them */
} gm__buckets;

/* False without host memory. `bits`: at most GM__SIZE_CLASS_BITS_MAX. */
bool gm__buckets_init(gm__buckets *buckets, const gm_services *services, uint32_t bits);
void gm__buckets_clear(gm__buckets *buckets, const gm_services *services);

/* The class of requests for so many bytes, which are whole units of the device's alignment. */
uint32_t gm__bucket_class(const gm__buckets *buckets, uint64_t bytes);

/* The classes whose blocks serve a request of that class are below this: of less than twice its size. */
uint32_t gm__bucket_class_end(const gm__buckets *buckets, uint32_t size_class);

/* What the pool takes for `bytes`: their class in whole units; `bytes` themselves when that would be more than
 * `largest` (the driver's largest allocation; 0: no bound known). */
uint64_t gm__bucket_round(const gm__buckets *buckets, uint64_t bytes, uint64_t unit, uint64_t largest);

/* In and out; a block whose mark names streams comes in as one that the stream in the slot (GM__ORDER_HOST: another)
 * may still use, else as idle. */
void gm__bucket_put(gm__buckets *buckets, gm__node *node, int slot);
void gm__bucket_remove(gm__buckets *buckets, gm__node *node);

/* No stream uses it any more. */
void gm__bucket_settle(gm__buckets *buckets, gm__node *node);

/* The stream goes, and its slot: what it may still use counts elsewhere. For all nodes of a ring that has the slot. */
void gm__bucket_forget(gm__buckets *buckets, gm__node *node, int slot);

static inline gm__node *gm__ring_newer(const gm__node *node) { return node->links[GM__BY_USE].next; }
static inline gm__node *gm__ring_older(const gm__node *node) { return node->links[GM__BY_USE].prev; }
static inline gm__node *gm__ring_newest(const gm__node *oldest) { return oldest->links[GM__BY_USE].prev; }

#endif

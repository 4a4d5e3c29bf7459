/* Segments: memory of a pool that is carved into parts, and the holes in it (best_fit). Externally synchronised (the
 * pool's lock). */
#ifndef GM_CORE_POOL_SEGMENT_H
#define GM_CORE_POOL_SEGMENT_H

#include "core/algo/heap.h"
#include "core/algo/span_map.h"
#include "core/pool/node.h"
#include "core/pool/order.h"
#include "core/pool/request.h"

/* Segments that can serve the same requests; their holes are searched together. */
typedef struct gm__segment_kind {
  struct gm__segment_kind *next;
  uint32_t align, usage, flags; /* what their memory can do: GM_HOST_VISIBLE, GM_COMMIT */
  gm_must_be must_be;
  bool beside_device;
  gm__heap heap; /* grouped by the streams that may still use the hole */
} gm__segment_kind;

typedef struct gm__segment {
  struct gm__segment *prev, *next; /* of the pool */
  gm__segment_kind *kind;
  gm__node *node; /* its memory, in state GM__NODE_SEGMENT */
  void *map_memory;
  size_t map_size;
  gm__span_map map;
  bool idle; /* one hole, and no stream is known to use it */
} gm__segment;

typedef struct gm__segments {
  const gm_services *services;
  gm__segment_kind *kinds;
  gm__segment *first;          /* newest first */
  uint64_t size;               /* what to take at a time; UINT64_MAX: as the pool grows */
  uint64_t granule;            /* every part is so many bytes, times n, at a multiple of it */
  uint32_t frees;              /* since streams were asked how far they are */
  bool all_local, all_visible; /* the device has no other memory */
} gm__segments;

/* For a device with these memory types. */
void gm__segments_init(gm__segments *segments, const gm_device *device, const gm_services *services);

/* Forget everything; the memory itself is the supply layer's. */
void gm__segments_clear(gm__segments *segments);

/* The kind of memory that was taken for the request; NULL without host memory. */
gm__segment_kind *gm__segments_kind(gm_pool *pool, const gm__want *want, const gm_memory *memory);

/* What memory for the request is to be asked for with: all that later requests of its sort need. */
gm__want gm__segments_want(const gm_pool *pool, const gm__want *want);

/* Fits in that hole, order aside. */
bool gm__segments_fit(const gm_pool *pool, const gm__want *want, const gm__node *hole);

/* A hole for the request of which a verdict of at most `worst` is true; *out_pending: streams that stand in the way of
 * others. */
gm__node *gm__segments_find(gm_pool *pool, const gm__want *want, int slot, gm__order_verdict worst,
                            uint64_t *out_pending, gm__order_verdict *out_verdict);

/* Cut the request's bytes out of the hole: a node that is AWAY; NULL without host memory. */
gm__node *gm__segments_carve(gm_pool *pool, const gm__want *want, gm__node *hole);

/* The part becomes a hole and is joined with its neighbours, as far as they wait for the same streams. */
void gm__segments_put(gm_pool *pool, gm__node *part);

/* Move holes of streams that are done to where everybody finds them. Asks no driver, but for points of single holes. */
void gm__segments_settle(gm_pool *pool);

/* Join the holes of the stream with idle neighbours: these wait for it, too, from then on. True if there were any. */
void gm__segments_gather(gm_pool *pool, int slot);

/* The part that contains the address, which is in the segment. */
gm__node *gm__segment_part(const gm__segment *segment, uint64_t address);

/* Make the segment's memory one hole. `hole`: an unused node for it. */
void gm__segment_open(gm_pool *pool, gm__segment *segment, gm__node *hole);

/* An idle segment gives up its hole and leaves the pool. Its memory. */
gm__node *gm__segment_close(gm_pool *pool, gm__segment *segment);

#endif

/* How much a pool keeps for reuse, on two levels: what a stream has just freed, for that stream (quick lists of a lane;
 * blocks of a bucket that it may still use), and what is anybody's (holes and segments nobody uses; idle blocks of
 * buckets). Bounded in number, bytes and age; the bounds in number follow the pressure (F13, F21, F23). */
#ifndef GM_CORE_POOL_CACHE_H
#define GM_CORE_POOL_CACHE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/base/thread.h"
#include "gm/pool.h"

typedef struct gm__cache {
  uint64_t max_bytes;                     /* UINT64_MAX: no bound */
  uint64_t max_age_ns;                    /* UINT64_MAX: auto */
  double low, high, factor;               /* of pressure; by what the first two grow and shrink */
  _Atomic uint32_t lanes;                 /* that have quick lists, in all arenas */
  _Atomic uint64_t all;                   /* blocks that the pool may keep together, */
  _Atomic uint64_t local_now, global_now; /* those of one stream, those of nobody */

  gm__mutex lock;           /* all below; taken before every other one */
  uint64_t local, global;   /* as configured */
  uint64_t kept;            /* put there on purpose: neither bound is less, whatever the pressure is */
  double scale;             /* of both */
  uint64_t marked_ns, mark; /* what was freed up to that time of the device's clock, was so then */
} gm__cache;

/* By the configuration, as it is now. */
void gm__cache_init(gm_pool *pool);
void gm__cache_end(gm_pool *pool);

/* One lane more shares what the pool's quick lists may keep. Takes no lock. */
void gm__cache_add_lane(gm_pool *pool);

/* So many blocks were put there on purpose, and stay: of buckets. */
void gm__cache_widen(gm_pool *pool, uint64_t blocks);

/* See to the bounds, after something was taken from the driver: what was so slow is little slower by it. No lock is
 * held. Does nothing while another thread is at it. */
void gm__cache_tend(gm_pool *pool);

/* The same now, and what is older than the bound, whatever the pressure; the bytes given back. */
uint64_t gm__cache_clean(gm_pool *pool);

#endif

/* How much a pool keeps for reuse. There are two levels. The first is what a stream has just freed and may use again:
 * quick lists of its cache, busy blocks of buckets. The second is what any stream may use: free chunks, unused
 * segments, idle blocks of buckets. Both are bounded in number, bytes and age. The bounds in number grow
 * while the pressure is low, and shrink while it is high. */
#ifndef GM_CORE_HEAP_KEEP_H
#define GM_CORE_HEAP_KEEP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/base/thread.h"
#include "gm/pool.h"
#include "gm/pressure.h"

struct gm__heap;

typedef struct gm__keep {
  _Atomic uint64_t max_bytes; /* UINT64_MAX: no bound */
  bool strict;                /* max_bytes holds after each free and each request */
  _Atomic bool aggressive;    /* freed blocks join at once, and unused segments go when the pool grows */
  gm__mutex lock;             /* guards all below; locked before every other lock */
  uint64_t max_age_ns;        /* UINT64_MAX: auto */
  double low, high, factor;   /* pressures below and above which the scale changes, and by how much; factor 1: never */
  double coalesce, cleanup; /* what coalescing_threshold and cleanup.threshold are for this pool; negative: the keys */
  gm_pressure_thresholds pressure; /* of this pool; negative members: the keys */
  uint64_t local, global, all;     /* most blocks of one stream, of the second level, of the pool: as configured */
  double scale;                    /* of the first two: 1/16 to 16, or one step beyond */
  uint64_t kept;                   /* blocks of a warm-up: no bound is less */
  uint64_t epoch_ns, epoch;        /* the host's time and the device's clock at the last inspection */
} gm__keep;

/* Reads the bounds from the configuration. `keep_bytes` is of gm_pool_params. */
void gm__keep_init(struct gm__heap *heap, uint64_t keep_bytes);

/* Tells the bounds to the arenas and the dedicated blocks, which are ready. */
void gm__keep_start(struct gm__heap *heap);

void gm__keep_end(gm__keep *keep);

/* Tells changed bounds to the arenas and the dedicated blocks. REQUIRES: keep lock. */
void gm__keep_publish(struct gm__heap *heap);

/* The coalescing_threshold and cleanup.threshold of the pool as they are now, and the thresholds of its pressure. */
double gm__keep_coalesce(struct gm__heap *heap);
double gm__keep_cleanup(struct gm__heap *heap);
gm_pressure_thresholds gm__keep_pressure(struct gm__heap *heap);
/* INVALID_ARGUMENT: the thresholds of the pressure are out of order. REQUIRES: keep lock. */
gm_status gm__keep_check_pressure(struct gm__heap *heap, gm_error *err);

/* The bound in age of so many milliseconds; UINT64_MAX: auto. */
uint64_t gm__keep_age_ns(uint64_t age_ms);

/* Gives back what is above the bound in bytes. REQUIRES: no lock. */
void gm__keep_hold_bytes(struct gm__heap *heap);

/* A warm-up put so many blocks into buckets: no bound is less from now on. */
void gm__keep_widen(struct gm__heap *heap, uint64_t blocks);

/* Applies the bounds after the driver gave memory: a slow call bears a little more work. Does nothing while another
 * thread does it. REQUIRES: no lock. */
void gm__keep_tend(struct gm__heap *heap);

/* Applies a strict bound in bytes: after a free on the stream, which submits nothing, or after a request. Does nothing
 * while the stream is captured. REQUIRES: no lock. */
void gm__keep_hold(struct gm__heap *heap, const gm_stream *stream, bool after_free);

/* Applies the bounds now, and gives back what is older than the bound in age, whatever the pressure. Returns the bytes
 * given back. REQUIRES: no lock. */
uint64_t gm__keep_clean(struct gm__heap *heap);

#endif

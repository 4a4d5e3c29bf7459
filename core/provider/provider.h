/* The provider of a pool: driver memory under a cap, from the device's backend or from the user's callbacks. It records
 * each driver allocation, finds it by address, and maps pages. It frees only what it is told to. No lock of the pool is
 * held while the backend or a callback allocates, frees or submits. */
#ifndef GM_CORE_PROVIDER_PROVIDER_H
#define GM_CORE_PROVIDER_PROVIDER_H

#include "core/device/device_alloc.h"
#include "core/device/stream.h"
#include "core/provider/address_map.h"
#include "core/provider/allocation.h"
#include "core/provider/handles.h"
#include "core/provider/ladder.h"
#include "core/provider/memory_kind.h"
#include "core/provider/request.h"
#include "core/room/claim.h"
#include "core/room/room.h"
#include "core/track/profiler.h"
#include "core/track/stats.h"
#include "gm/pool.h"

struct gm__provider {
  gm_device *device;
  char name[48]; /* the pool's */
  bool has_upstream;
  bool no_trim;        /* idle memory goes back only when the caller says so */
  bool captures;       /* GM_POOL_CAPTURES */
  gm_share_kind share; /* its memory is made so that it can be exported in this way */
  float priority;      /* of its memory at the driver; 0: the driver's default */
  gm_upstream upstream;
  const gm__profiler *profiler; /* NULL: no profiler is there */
  gm__memory_rules rules;
  gm__claim claim;                      /* the cap, what is taken of it, and the limits of the device */
  gm__stats stats;                      /* the pool's, apart from what arenas count */
  struct gm__reclaimer *lender;         /* gives idle memory to other pools; NULL: nobody does */
  gm__rung_total rungs[GM__RUNG_COUNT]; /* of all requests so far, by gm_rung */
  gm__pages pages;                      /* where the device maps memory in pages */

  gm__mutex lock; /* the provider lock: of all below, and of core/bucket */
  gm__allocation_table allocations;
  gm__address_map addresses;
  gm__refused refused, probed;   /* the last request that was refused; probed: of those with GM_POOLED_ONLY */
  _Atomic uint32_t object_count; /* native objects of all allocations (native_objects.h) */
  uint32_t sweep_at;             /* as many of them bring the next sweep (core/heap/object_sweep.h) */
};

static inline const gm_services *gm__provider_services(const gm__provider *provider) {
  return gm__context_services(provider->device->ctx);
}

/* True when the device's other pools may have its idle memory given back. */
static inline bool gm__provider_lends(const gm__provider *provider) {
  return !provider->has_upstream && !provider->no_trim;
}

static inline bool gm__provider_forked(const gm__provider *provider) {
  return gm__context_forked(provider->device->ctx);
}

/* Prepares the provider; `rules` and `pages` are still to be prepared. The second function ends it. */
void gm__provider_init(gm__provider *provider, gm_device *device, const gm_pool_params *params, uint64_t pool_id);
void gm__provider_clear(gm__provider *provider, bool forked);

/* Keeps the reason why the request is refused, for gm_explain. Memory beside the device is a second choice: the reason
 * why gm_alloc was refused stays. REQUIRES: no lock of the provider. */
void gm__provider_note_failure(gm__provider *provider, const gm__want *want, const gm_error *failure);

/* Takes `bytes` for the request from the driver. The allocation is AWAY. OVER_LIMIT, OUT_OF_DEVICE_MEMORY and the
 * backend's other answers. REQUIRES: no lock. */
gm_status gm__provider_alloc(gm__provider *provider, const gm__want *want, uint64_t bytes, gm__allocation **out,
                             gm_error *err);

/* Makes an allocation, AWAY, of memory that is wrapped or imported: want->bytes from `offset` on. `import` gives the
 * memory back when it is freed; NULL: it is wrapped. OVER_LIMIT, OUT_OF_HOST_MEMORY, INVALID_ARGUMENT (wrapped memory
 * overlaps memory of the pool): the caller keeps the memory. REQUIRES: no lock. */
gm_status gm__provider_adopt(gm__provider *provider, const gm__want *want, const gm_memory *memory, uint64_t offset,
                             struct gm__import *import, gm__allocation **out, gm_error *err);

/* Enters a VA range as an allocation in the tables, for a segment, or takes it out again. The segment owns its pages.
 * OUT_OF_HOST_MEMORY, DRIVER. REQUIRES: no lock. */
gm_status gm__provider_enter_range(gm__provider *provider, const gm_memory *memory, struct gm__segment *segment,
                                   gm__allocation **out, gm_error *err);
void gm__provider_leave_range(gm__provider *provider, gm__allocation *allocation);

/* Allocations on their way back to the driver, linked by links[GM__BY_USE].next. */
typedef struct gm__leaving {
  gm__allocation *first;
  uint64_t bytes;
} gm__leaving;

/* Takes an allocation that nobody uses out of the tables, and puts it on the list. REQUIRES: provider lock. */
void gm__provider_leave(gm__provider *provider, gm__leaving *leaving, gm__allocation *allocation);

/* Gives all allocations on the list back. REQUIRES: no lock. */
void gm__provider_return(gm__provider *provider, gm__leaving *leaving);

/* AddressSanitizer and profilers forget the memory, which goes back. */
void gm__provider_let_go(const gm__provider *provider, const gm_memory *memory, const gm__allocation *allocation);

/* Gives back every allocation when the pool ends, and waits for nothing. A forked child gives back host memory only. */
void gm__provider_end(gm__provider *provider);

#endif

/* Handles: physical memory of a pool's device in whole pages. A handle is mapped into one of the pool's VA ranges
 * (va_range.h), or it lies in the handle cache and waits to be mapped again. The pages lock is taken before an arena's
 * lock, and it is held while the driver is called. */
#ifndef GM_CORE_PROVIDER_HANDLES_H
#define GM_CORE_PROVIDER_HANDLES_H

#include "core/base/thread.h"
#include "core/provider/handle_cache.h"
#include "core/provider/request.h"

struct gm__growth; /* ask.h */

typedef struct gm__pages {
  gm__mutex lock; /* the pages lock: of all that follows, and of the pool's VA ranges */
  bool usable;
  uint32_t type;       /* the memory type of every handle */
  uint64_t page_bytes; /* a power of two */
  gm__handle *handles; /* by number, from 1 */
  uint32_t capacity;
  uint32_t unused; /* first record without memory, linked by `next`; 0: none */
  gm__handle_cache handle_cache;
  _Atomic uint64_t idle_bytes; /* of the handles in the cache */
  uint64_t made;               /* handles that were ever made */
  uint64_t drawn;              /* bytes of promises that growths took; who wants to know sets it to 0 before */
  uint32_t shut_count;         /* handles that are shut */
  uint64_t asleep_bytes;       /* of handles that are asleep */
  _Atomic bool asleep;         /* the pool sleeps: nobody is given memory, and handles may be asleep */
} gm__pages;

/* Prepares provider->pages, and its end. `wanted` false: the pool maps no pages. */
void gm__pages_init(gm__provider *provider, bool wanted);
void gm__pages_clear(gm__provider *provider, gm_close_mode mode);

/* Bytes of the handles in the cache. Takes no lock. */
uint64_t gm__pages_idle_bytes(const gm__provider *provider);

/* Gives the handles in the cache back to the device. Returns their bytes. REQUIRES: pages lock. */
uint64_t gm__pages_release(gm__provider *provider);

/* Finds a handle of at most `most` pages, mapped nowhere. A cached one is taken first, even of up to `reach` pages. A
 * new one is as large as the room allows. When the device is full, small new ones replace cached ones that are too
 * large. `growth`: what asks the device (ask.h). The provider's answers. REQUIRES: pages lock. */
gm_status gm__handle_obtain(gm__provider *provider, struct gm__growth *growth, uint32_t most, uint32_t reach,
                            uint32_t *out, gm_error *err);

/* A handle that is mapped nowhere goes into the cache, or back to the device. REQUIRES: pages lock. */
void gm__handle_keep(gm__provider *provider, uint32_t number);
void gm__handle_destroy(gm__provider *provider, uint32_t number);

/* A handle that is mapped nowhere gives its memory back, and keeps its record. gm__handle_wake takes as much memory
 * again; its answers are the provider's. REQUIRES: pages lock. */
void gm__handle_sleep(gm__provider *provider, uint32_t number);
gm_status gm__handle_wake(gm__provider *provider, struct gm__growth *growth, uint32_t number, gm_error *err);

/* True when the pool sleeps. Whoever hands out pages asks under the pages lock, or under an arena lock:
 * gm__arenas_sleep has entered each of them since it said so. */
static inline bool gm__pages_are_asleep(const gm__pages *pages) {
  return atomic_load_explicit(&pages->asleep, memory_order_acquire);
}

/* The refusal of `op` by a pool that sleeps. */
gm_status gm__pages_say_asleep(const gm__provider *provider, const char *op, gm_error *err);

/* BUSY, with the cause noted, while the pool sleeps; else GM_OK. */
gm_status gm__pages_check_awake(const gm__provider *provider, const gm__want *want, gm_error *err);

static inline uint64_t gm__handle_bytes(const gm__pages *pages, uint32_t number) {
  return pages->handles[number].pages * pages->page_bytes;
}

#endif

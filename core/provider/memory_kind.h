/* Kinds of memory. All memory of a kind can serve the same requests of a pool. Pure. */
#ifndef GM_CORE_PROVIDER_MEMORY_KIND_H
#define GM_CORE_PROVIDER_MEMORY_KIND_H

#include "core/device/device.h"
#include "core/provider/request.h"

/* A kind: what its memory can do. */
typedef struct gm__memory_kind {
  uint32_t align, usage, flags; /* flags: GM_HOST_VISIBLE, GM_COMMIT */
  gm_must_be must_be;
  bool beside_device;
  gm__type_wish wish;
} gm__memory_kind;

/* A pool's knowledge of its device's memory types, and the way it takes memory. */
typedef struct gm__memory_rules {
  bool zeroes;                 /* new memory is filled with zeros before anybody gets a part of it */
  uint64_t small;              /* quick lists keep blocks of at most so many bytes */
  uint64_t apart;              /* blocks of at most so many bytes have pages of their own; 0: none have */
  _Atomic uint64_t size;       /* bytes to take at a time; UINT64_MAX: as the pool grows */
  uint64_t ahead;              /* most bytes to take beyond what a request needs; UINT64_MAX: no bound */
  uint64_t granule;            /* a power of two: every chunk has whole granules, and begins at one */
  bool all_local, all_visible; /* the device has no other memory */
} gm__memory_rules;

void gm__memory_rules_init(gm__memory_rules *rules, const gm_device *device);

/* The kind that a request needs. */
gm__memory_kind gm__kind_of(const gm__memory_rules *rules, const gm__want *want);
bool gm__kind_serves(const gm__memory_kind *kind, const gm__memory_kind *asked);

#endif

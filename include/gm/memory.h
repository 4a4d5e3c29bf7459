/* Words for memory that programs and backends share: types of memory, one driver allocation, usage, mapping. Plain
 * data. */
#ifndef GM_MEMORY_H
#define GM_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

#include "gm/export.h"

GM_BEGIN_DECLS

/* Properties of a kind of memory. A device lists its types in order of preference for data that kernels use. */
typedef enum gm_memory_flags {
  GM_MEMORY_DEVICE_LOCAL = 1,     /* the device's own memory, fast for it */
  GM_MEMORY_HOST_VISIBLE = 2,     /* the host can map it */
  GM_MEMORY_HOST_COHERENT = 4,    /* needs no flush and no invalidate */
  GM_MEMORY_HOST_CACHED = 8,      /* fast for the host to read */
  GM_MEMORY_HOST_POINTER = 16,    /* gm_memory.host is set: no mapping needed */
  GM_MEMORY_PINNED = 32,          /* page-locked host memory */
  GM_MEMORY_MANAGED = 64,         /* migrates between device and host (gm/managed.h) */
  GM_MEMORY_APART = 128,          /* another kind of handle than the other types have; only for callers that name this
                                     type (gm_request.memory_types) */
  GM_MEMORY_WRITE_COMBINED = 256, /* the host writes it fast and in order, and reads it slowly: it is not cached */
  GM_MEMORY_LAZY = 512,    /* the system may give the bytes only at their first touch. GM_COMMIT takes them at once.
                              Vulkan's LAZILY_ALLOCATED types hold images alone, so gm lists none of them */
  GM_MEMORY_SYSTEM = 1024, /* lies in the host's RAM, and takes nothing of a card's own memory */
  GM_MEMORY_PERSISTENT_MAP = 2048 /* the host may keep a mapping while kernels use the memory (GM_MAPPED) */
} gm_memory_flags;

/* One kind of memory that a device offers. */
typedef struct gm_memory_type {
  uint32_t struct_size;
  uint32_t flags;           /* gm_memory_flags */
  uint32_t heap;            /* types with equal numbers share the bytes of one heap */
  uint32_t share_kinds;     /* bit 1 << kind for each gm_share_kind that this type can be made for */
  uint64_t heap_bytes;      /* 0: unknown */
  uint64_t max_alloc_bytes; /* 0: as the device */
  uint64_t atom_bytes;      /* unit of flush and invalidate, a power of two up to 2^30; 1: coherent */
} gm_memory_type;

/* The uses of memory. 0 means TRANSFER and STORAGE. */
typedef enum gm_usage {
  GM_USAGE_TRANSFER = 1,
  GM_USAGE_STORAGE = 2,
  GM_USAGE_UNIFORM = 4,
  GM_USAGE_INDIRECT = 8,
  GM_USAGE_READBACK = 16 /* the host reads it: gm prefers cached memory */
} gm_usage;

/* One driver allocation, by value. */
typedef struct gm_memory {
  uint64_t handle;  /* internal: the backend's object; never 0 */
  uint64_t address; /* device address of the first byte; 0: the API has none */
  uint64_t bytes;   /* usable bytes, at least those asked for */
  void *host;       /* host address without mapping; NULL if there is none */
  uint32_t type;
  bool wrapped; /* the engine's memory: freeing it releases it, and destroys nothing */
} gm_memory;

/* A box of bytes, which a strided copy moves: `slices` times `rows` rows of `row_bytes`. Offsets are bytes from the
 * begin of the block, or of host memory, to the first byte of the box. A pitch is the bytes from one row or slice to
 * the next; 0 means tight. */
typedef struct gm_rect {
  uint64_t row_bytes, rows, slices;
  uint64_t src_offset, src_row_pitch, src_slice_pitch;
  uint64_t dst_offset, dst_row_pitch, dst_slice_pitch;
} gm_rect;

/* How the host will use a mapping. */
typedef enum gm_map_mode {
  GM_MAP_READ = 1,
  GM_MAP_WRITE = 2,
  GM_MAP_DISCARD = 4, /* the contents of the range need not be kept */
  GM_MAP_NO_WAIT = 8  /* wait for no work, and use no stream; the caller knows that the device is done with the range */
} gm_map_mode;

/* Where a buffer, or a tracked allocation, lives. */
typedef enum gm_location { GM_LOCATION_DEVICE = 0, GM_LOCATION_PINNED = 1, GM_LOCATION_HOST = 2 } gm_location;

/* The two sides of managed memory. */
typedef enum gm_managed_place { GM_MANAGED_ON_DEVICE = 0, GM_MANAGED_ON_HOST = 1 } gm_managed_place;

/* How a range of managed memory will be used. */
typedef enum gm_managed_advice {
  GM_ADVICE_READ_MOSTLY = 0,  /* both sides may keep a copy */
  GM_ADVICE_STAY_ON = 1,      /* prefers to be at `place` */
  GM_ADVICE_ACCESSED_FROM = 2 /* `place` keeps a mapping wherever the memory is */
} gm_managed_advice;

GM_END_DECLS

#endif

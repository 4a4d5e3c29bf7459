/* A request for memory. Plain data. */
#ifndef GM_REQUEST_H
#define GM_REQUEST_H

#include "gm/memory.h"
#include "gm/stream.h"

GM_BEGIN_DECLS

typedef enum gm_must_be {
  GM_DEVICE_LOCAL = 0,      /* the device's own memory; on a device with unified memory, any memory it has */
  GM_DEVICE_ACCESSIBLE = 1, /* memory that kernels can use; it may be pinned host memory */
  GM_ANYWHERE = 2           /* today as GM_DEVICE_ACCESSIBLE */
} gm_must_be;

typedef enum gm_request_flags {
  GM_ZERO = 1,          /* zero-filled, in the order of the request's stream; implies GM_INSERT_WAIT. INVALID without
                           a stream where gm may make none of its own (no GM_CAP_STREAMS) */
  GM_INSERT_WAIT = 2,   /* never NEEDS_WAIT or NEEDS_BARRIER: gm inserts the wait into the stream */
  GM_COMMIT = 4,        /* the system really gives the memory before the call returns. Some devices need a queue for
                           that (GM_CAP_COMMIT_QUEUE). Where gm may make none, gm uses the request's stream, after its
                           earlier work. INVALID without a stream there */
  GM_HOST_VISIBLE = 8,  /* the host can map it; the short word for `require` GM_MEMORY_HOST_VISIBLE */
  GM_ALLOW_SPANS = 16,  /* one block of several memories where one piece is not available (gm/spans.h); implies
                           GM_INSERT_WAIT */
  GM_EVICTABLE = 32,    /* gm may move it to host memory when memory is short (gm/relocation.h): for buffers only, as
                           GM_RELOCATABLE */
  GM_RELOCATABLE = 64,  /* gm may move it while it is not locked (gm/relocation.h): for buffers only. INVALID in
                           gm_alloc,  whose caller names the memory itself */
  GM_SHAREABLE = 128,   /* other processes can open it (gm/share.h): INVALID in a pool that was not made to share */
  GM_POOLED_ONLY = 256, /* only memory that the pool keeps; EXHAUSTED where that does not suffice. gm asks neither the
                           driver nor another pool */
  GM_DEDICATED = 512,   /* the block is a driver allocation of its own, at offset 0 of its native object, in any pool.
                           Its bytes are those asked for, rounded up to 4 or to the memory's atom. In a pool with red
                           zones the block begins behind its zone. Not with GM_ALLOW_SPANS */
  GM_MAPPED = 1024      /* mapped as long as it lives: gm_block_host has the pointer, and gm_free needs no unmap. Only
                           types with GM_MEMORY_PERSISTENT_MAP serve. Not with GM_ALLOW_SPANS */
} gm_request_flags;

/* Which memory serves a request. All members at 0 mean: as `must_be` and `flags` say.
 *
 * A type serves if it has all flags of `require`, and its bit in `memory_types`, and if it is as `must_be` and `flags`
 * say. Where no type does, the request is INVALID, and gm_explain names the wish that failed. GM_DEVICE_LOCAL is the
 * default of `must_be`, so a request for memory beside a card's own says GM_DEVICE_ACCESSIBLE.
 *
 * Among the types that serve, gm takes the one that has most flags of `prefer`. Where that type is full, the next one
 * serves. A flag that no such type has is no failure, and gm_explain tells it. Memory that was taken for one set of
 * these wishes serves no other one, except that GM_HOST_VISIBLE memory may serve all.
 *
 * gm does not know the type of an upstream's memory (gm_upstream). There `require`, `memory_types` and GM_MAPPED are
 * INVALID, and `prefer` has no effect. */

typedef struct gm_request { /* zero-initialised, with `bytes` set, it is a valid request */
  uint64_t bytes;           /* > 0 */
  uint32_t align;    /* a power of two; 0: the device's. It holds for the address of the block, and for its offset
                        in a native buffer (gm_vulkan_memory.memory_offset: not always) */
  uint32_t tag;      /* gm_tag(ctx, "kv"); 0: none */
  gm_stream *stream; /* NULL: host order, so nothing uses the memory yet */
  uint32_t flags;    /* gm_request_flags */
  gm_must_be must_be;
  uint32_t usage;        /* gm_usage; 0: transfer and storage */
  uint32_t memory_types; /* bit 1 << index for each type of gm_device_memory_type that may serve; 0: all */
  uint32_t require;      /* gm_memory_flags that the memory must have */
  uint32_t prefer;       /* gm_memory_flags that the memory should have */
  uint64_t deadline_ns;  /* nanoseconds to wait for memory before gm answers EXHAUSTED; 0: none. UINT64_MAX: for ever.
                            See gm_alloc */
  uint64_t reserved[1];  /* 0; a later member counts only with a flag of its own, which an older gm refuses */
} gm_request;

GM_END_DECLS

#endif

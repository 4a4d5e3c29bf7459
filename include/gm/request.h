/* What a caller asks for when it asks for memory (F72). Plain data. */
#ifndef GM_REQUEST_H
#define GM_REQUEST_H

#include "gm/stream.h"

GM_BEGIN_DECLS

typedef enum gm_must_be {
  GM_DEVICE_LOCAL = 0,      /* the device's own memory (on a device with unified memory: any it has) */
  GM_DEVICE_ACCESSIBLE = 1, /* kernels can use it; may be pinned host memory */
  GM_ANYWHERE = 2
} gm_must_be;

typedef enum gm_request_flags {
  GM_ZERO = 1,         /* zero-filled, in the order of the request's stream; means GM_INSERT_WAIT too. Without a stream
                          INVALID where gm may make none of its own (gm_device_info.capabilities) */
  GM_INSERT_WAIT = 2,  /* never NEEDS_WAIT or NEEDS_BARRIER: gm inserts the wait into the stream */
  GM_COMMIT = 4,       /* really taken from the system before the call returns. Where that takes a queue
                          (GM_CAP_COMMIT_QUEUE) and gm may make none, on the request's stream, behind its earlier work;
                          without one INVALID */
  GM_HOST_VISIBLE = 8, /* can be mapped */
  GM_ALLOW_SPANS = 16, /* where it cannot be had in one piece: one block of several memories (gm/spans.h), with
                          GM_INSERT_WAIT implied */
  GM_EVICTABLE = 32,   /* 32 and 64 come with later versions: INVALID, and gm_explain says so */
  GM_RELOCATABLE = 64,
  GM_SHAREABLE = 128,  /* can be exported (gm/share.h): INVALID in a pool that was not made to share */
  GM_POOLED_ONLY = 256 /* only what the pool keeps: EXHAUSTED where that serves nothing, and nobody else is asked */
} gm_request_flags;

typedef struct gm_request { /* zero-initialised but for bytes it is a good request */
  uint64_t bytes;           /* > 0 */
  uint32_t align;           /* power of two; 0: the device's */
  uint32_t flags;           /* gm_request_flags */
  gm_stream *stream;        /* NULL: host order */
  uint32_t tag;             /* gm_tag(ctx, "kv"); 0: none */
  gm_must_be must_be;
  uint32_t usage;       /* gm_usage; 0: transfer and storage */
  uint64_t deadline_ns; /* comes with a later version; must be 0 */
  uint64_t reserved[2]; /* 0: a later member counts only with a flag of its own, which an older gm refuses */
} gm_request;

GM_END_DECLS

#endif

/* The order of a stream, and a place in that order. Backends and engines share these words. */
#ifndef GM_STREAM_KIND_H
#define GM_STREAM_KIND_H

#include <stdint.h>

#include "gm/export.h"

GM_BEGIN_DECLS

typedef enum gm_stream_kind {
  GM_STREAM_FIFO = 0,            /* work runs in the order of submission: CUDA, HIP, in-order OpenCL, CPU */
  GM_STREAM_FIFO_IF_BARRIER = 1, /* work starts in order, but only a barrier makes it a dependency: Vulkan */
  GM_STREAM_UNORDERED = 2        /* work has no order without points: out-of-order OpenCL */
} gm_stream_kind;

/* A place in the order of a stream, by value. A point that is all zero has passed. Points of gm's own streams and
 * imported native points look alike. Where an API counts references, gm_point_release gives the reference back. Never
 * grows. */
typedef struct gm_point {
  uint64_t stream; /* id of the stream; never used again in its context; 0: none */
  uint64_t handle; /* internal: the backend's object */
  uint64_t value;
} gm_point;

GM_END_DECLS

#endif

/* What the order of a stream means, and memory as the seam knows it: words shared by backends and engines. */
#ifndef GM_STREAM_KIND_H
#define GM_STREAM_KIND_H

#include <stdint.h>

#include "gm/export.h"

GM_BEGIN_DECLS

typedef enum gm_stream_kind {
  GM_STREAM_FIFO = 0,            /* work runs in the order of submission: CUDA, HIP, in-order OpenCL, CPU */
  GM_STREAM_FIFO_IF_BARRIER = 1, /* starts in order, but only a barrier makes it a dependency: Vulkan */
  GM_STREAM_UNORDERED = 2        /* no order without points: out-of-order OpenCL */
} gm_stream_kind;

/* A place in the order of a stream, by value. All zero: already passed. Points of gm's own streams and imported native
 * ones look alike; where an API counts references, gm_point_release gives the reference back. Never grows. */
typedef struct gm_point {
  uint64_t stream; /* id of the stream, never reused in a context; 0: none */
  uint64_t handle; /* the backend's */
  uint64_t value;
} gm_point;

GM_END_DECLS

#endif

/* Streams: their life, and waiting for all their work. */
#ifndef GM_BACKENDS_VULKAN_STREAM_H
#define GM_BACKENDS_VULKAN_STREAM_H

#include "backends/vulkan/vulkan_queue.h"

/* The host waits until all work of the stream is done and the host can see its writes. */
gm_status gm__vulkan_stream_drain(gm__vulkan_stream *stream, gm_error *err);

/* May a call use the mapping of host-visible memory? It would have to drain the stream first. A call that gives a point
 * (`out`) must not wait, so it may only where no work can be running. */
bool gm__vulkan_stream_may_drain(gm__vulkan_stream *stream, const gm_backend_point *out);

#endif

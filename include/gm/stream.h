/* Streams, and points in their order.
 *
 * Every function that returns a status may answer INVALID_ARGUMENT, FORKED or OUT_OF_HOST_MEMORY. It may also answer
 * what the driver said: DRIVER, DEVICE_LOST or OUT_OF_DEVICE_MEMORY. Each comment has only the other statuses. A point
 * of another device is INVALID_ARGUMENT in every function of this header. */
#ifndef GM_STREAM_H
#define GM_STREAM_H

#include "gm/device.h"
#include "gm/stream_kind.h"

GM_BEGIN_DECLS

typedef struct gm_stream gm_stream; /* an order of work on a device; thread-safe, except gm_stream_close */

/* Creates a stream that gm owns. The caller closes *out. NOT_SUPPORTED: the device is adopted, and its engine forbids
 * it. */
GM_API gm_status gm_stream_create(gm_device *device, gm_stream **out, gm_error *err);

/* Adopts a queue or stream of the engine. `native` is a gm_opencl_queue, gm_vulkan_queue and so on. The caller closes
 * *out before it destroys its own queue.
 *
 * Adopting a queue again on the same `device` gives the same gm_stream. gm counts the adoptions, and the caller closes
 * each one. INVALID_ARGUMENT names what differs from the first open adoption (of a gm_vulkan_queue: may_submit, lock,
 * unlock, user). NOT_SUPPORTED: the backend adopts no queues.
 *
 * A third-party backend may be unable to tell queues apart (stream_same in gm/backend.h). There each adoption is a
 * stream of its own, which waits for memory that was freed on the others. */
GM_API gm_status gm_stream_adopt(gm_device *device, const gm_native_stream *native, gm_stream **out, gm_error *err);

/* Finds the stream of a native handle, or adopts it. The device owns the adoption: the caller closes nothing, and the
 * stream closes with the device. A handle that was seen before costs a hash look-up, so an engine may ask for each
 * request. Asking again on other terms is INVALID_ARGUMENT, as for gm_stream_adopt.
 *
 * Call gm_stream_forget before the native stream is destroyed. Where the API numbers its streams (CUDA 12), gm sees
 * that a handle belongs to a new stream. If the engine forgot nothing, gm then waits once for the whole device, and
 * lets go of the older stream. Without numbers (older CUDA, HIP) gm takes the new stream for the older one. An OpenCL
 * queue is retained, and the queues of Vulkan live as long as their device. A thread's own stream
 * (CU_STREAM_PER_THREAD) is a stream for each thread; forget it before the thread ends.
 *
 * NOT_SUPPORTED: the backend cannot tell streams by their handles. BUSY: the older stream cannot end yet. Thread-safe.
 */
GM_API gm_status gm_stream_of(gm_device *device, const gm_native_stream *native, gm_stream **out, gm_error *err);

/* Ends the device's adoption of a native stream, as gm_stream_close does, with the same answers. After BUSY the stream
 * is known as before. GM_OK also for a stream that gm_stream_of has not seen. NOT_SUPPORTED as gm_stream_of. */
GM_API gm_status gm_stream_forget(gm_device *device, const gm_native_stream *native, gm_error *err);

/* Chooses the stream for calls whose `stream` is NULL and which need one: waiting copies, fills, mappings, GM_ZERO in
 * host order. NULL chooses gm's own again, where gm may make one. Frees and requests with NULL stay in host order.
 *
 * The device does not own the stream. While it is chosen it does not close: gm_stream_close and gm_stream_forget answer
 * BUSY. A call that another thread has begun may still use the stream chosen before; end such calls before you close
 * it.
 *
 * INVALID_ARGUMENT: the stream is closed, or another device's. NOT_SUPPORTED: gm may not submit to the stream. FORKED.
 * Thread-safe. */
GM_API gm_status gm_device_set_default_stream(gm_device *device, gm_stream *stream, gm_error *err);

/* Closes a stream. NULL is GM_OK.
 *
 * A stream that was adopted several times stays open until the last adoption is closed; an earlier close ends only its
 * own adoption. The adoption of gm_stream_of is the device's: closing it is INVALID_ARGUMENT. The last close waits for
 * the stream's work; of an adopted stream, for the work that gm knows of. It then settles what pools remember of the
 * stream, and releases it. Blocks may outlive the stream. In best-fit pools that know the stream it looks at all
 * blocks, some nanoseconds each. Requests of other threads come in between: it holds no lock for more than a thousand.
 *
 * Some streams forbid gm to wait: the engine gave no leave to submit, or the stream belongs to another thread. Such a
 * stream closes if no pool has memory that its work may still use.
 *
 * After BUSY the stream stays open in all pools. It comes when such memory is left, when the engine is capturing the
 * stream, and for the device's default stream (gm_device_set_default_stream). BUSY also comes when another thread's
 * request is asking the driver about the stream for more than a second.
 *
 * No other thread may use the stream meanwhile, unless that thread holds an adoption of its own. Until the device
 * closes, a late destructor may still name a closed stream. gm_free and gm_free_ptr then treat it as NULL, since its
 * work is done. All other calls answer INVALID_ARGUMENT. After 64 more streams were closed, the name may belong to a
 * later stream. */
GM_API gm_status gm_stream_close(gm_stream *stream, gm_error *err);

/* Returns what the stream's order means for the reuse of memory. NULL gives GM_STREAM_FIFO. */
GM_API gm_stream_kind gm_stream_get_kind(const gm_stream *stream);
/* Returns the device of a stream. Borrowed. */
GM_API gm_device *gm_stream_device(const gm_stream *stream);
/* Returns the id of a stream. An id is never 0, and never used again in its context. */
GM_API uint64_t gm_stream_id(const gm_stream *stream);

/* Hands submitted work to the device. */
GM_API gm_status gm_stream_flush(gm_stream *stream, gm_error *err);

/* Hands submitted work to the device and waits until it is done. NOT_SUPPORTED: gm may not submit to this stream, so it
 * cannot wait for it. */
GM_API gm_status gm_stream_sync(gm_stream *stream, gm_error *err);

/* Makes later work of the stream follow all its earlier work, and see its results. On a FIFO stream this does nothing.
 * NOT_SUPPORTED: gm may not submit to this stream. */
GM_API gm_status gm_stream_barrier(gm_stream *stream, gm_error *err);

/* Records a point after all work that was submitted to the stream so far. The caller releases *out. NOT_SUPPORTED: gm
 * may not submit to this stream. */
GM_API gm_status gm_stream_record(gm_stream *stream, gm_point *out, gm_error *err);

/* Imports a point that the engine made (an event, a timeline value) into the stream's order. The caller releases *out.
 * NOT_SUPPORTED: the API has no such points. */
GM_API gm_status gm_stream_import_point(gm_stream *stream, const gm_native_point *native, gm_point *out, gm_error *err);

/* Returns the API's own event or semaphore of a point. `out` is a gm_opencl_point, gm_vulkan_point and so on, with its
 * head filled in. It is valid until the point is released. Its handle is 0 when the point has passed. NOT_SUPPORTED:
 * the API has no such object. */
GM_API gm_status gm_point_native(gm_device *device, const gm_point *point, gm_native_point *out, gm_error *err);

/* Tells gm that the engine records the work of a stream from now on, instead of running it: into a command buffer, for
 * example. gm need not be told of the captures of CUDA and HIP, because their drivers tell it.
 *
 * Until gm_stream_capture_end gm treats the stream as captured. A pool serves it with memory that it already holds and
 * that needs no wait. A pool of GM_POOL_CAPTURES serves it with new memory, too. gm inserts no wait into it, and waits
 * for nothing there. A free in its order is noted as everywhere. Captures are counted, so each begin needs its end. A
 * captured stream does not close: BUSY. Thread-safe. */
GM_API gm_status gm_stream_capture_begin(gm_stream *stream, gm_error *err);
/* Tells gm that one capture of the stream is over. INVALID_ARGUMENT: none is under way. Thread-safe. */
GM_API gm_status gm_stream_capture_end(gm_stream *stream, gm_error *err);

/* Tells gm when the work of a stream is done. The engine promises this: when `point` has passed, no work of the stream
 * uses memory that was freed in its order so far. The same holds for blocks that gm_use_on named so far. NULL means
 * that the work is done. The promise counts in every pool of the device.
 *
 * gm asks the stream nothing. So memory comes back from a stream that gm may not submit to. Any thread can also settle
 * a stream that belongs to another thread, or to one that has ended; the stream can then be closed.
 *
 * Any point of the device will do. gm_stream_import_point makes one of the engine's own and submits nothing. The point
 * stays the caller's and may be released at once. The native object behind an imported point must live until the point
 * has passed. The call may be repeated, also before the last point has passed. gm keeps the newest promise, and the
 * oldest one that is under way.
 *
 * INVALID_ARGUMENT: the point is another device's, or the stream is closed. NOT_SUPPORTED: the backend cannot keep a
 * point, and this one has not passed. OUT_OF_HOST_MEMORY: repeat the call, because some pools may not know yet. FORKED.
 * Thread-safe. */
GM_API gm_status gm_stream_passed(gm_stream *stream, const gm_point *point, gm_error *err);

/* Makes later work of `stream` wait for a point; the host does not wait. A point of a closed stream counts as passed.
 */
GM_API gm_status gm_stream_wait(gm_stream *stream, const gm_point *point, gm_error *err);

/* Tells whether the device has passed the point; it does not wait. */
GM_API gm_status gm_point_done(gm_device *device, const gm_point *point, bool *out, gm_error *err);

/* Waits on the host until the point has passed. TIMEOUT: `timeout_ns` nanoseconds passed first. UINT64_MAX waits
 * without limit. */
GM_API gm_status gm_point_wait(gm_device *device, const gm_point *point, uint64_t timeout_ns, gm_error *err);

/* Releases a point and zeroes it. NULL and zero points are allowed. A point of another device is left unchanged. */
GM_API void gm_point_release(gm_device *device, gm_point *point);

GM_END_DECLS

#endif

/* Streams and points: order is data (F66).
 *
 * A function that returns a status may answer INVALID_ARGUMENT, FORKED, OUT_OF_HOST_MEMORY, and what the driver said
 * (DRIVER, DEVICE_LOST, OUT_OF_DEVICE_MEMORY). What else it answers stands beside it. */
#ifndef GM_STREAM_H
#define GM_STREAM_H

#include "gm/device.h"
#include "gm/stream_kind.h"

GM_BEGIN_DECLS

typedef struct gm_stream gm_stream; /* an order of work on a device. Thread-safe, except close. */

/* A stream of gm's own making. NOT_SUPPORTED on an adopted device that forbids it. The caller closes *out. */
GM_API gm_status gm_stream_create(gm_device *device, gm_stream **out, gm_error *err);

/* The engine's queue or stream: `native` is a gm_opencl_queue, gm_vulkan_queue, ... . A queue that is adopted on
 * `device` already gives the same gm_stream, counted: each adoption is closed once. INVALID_ARGUMENT names what differs
 * from the first adoption that is open (gm_vulkan_queue: may_submit, lock, unlock, user). NOT_SUPPORTED: the backend
 * adopts none. The caller closes *out before it destroys its own. A backend from outside may not tell queues apart
 * (stream_same in backend.h): there each adoption is a stream of its own, which waits for what was freed on the others.
 */
GM_API gm_status gm_stream_adopt(gm_device *device, const gm_native_stream *native, gm_stream **out, gm_error *err);

/* Ends one adoption of a stream that was adopted more than once, and nothing else: the others go on with it. The last
 * call waits for the stream's work (of an adopted one: for what gm knows of), settles what pools remember of it, lets
 * go. NULL is GM_OK. Where gm may not wait there (the engine lent it without leave to submit, or it is another thread's
 * own), a stream closes as long as no pool has memory that its work may still use. BUSY, and the stream stays open, in
 * all pools: such memory is left; the engine is capturing the stream; or a request of another thread is in the driver
 * with the stream, to learn how far it is, and stays there for a second. Not while another thread uses the stream,
 * unless that thread holds an adoption of its own. Blocks may outlive it. Until the device closes a closed stream may
 * still be named, by a destructor that comes late: gm_free and gm_free_ptr take it for NULL, since its work is done,
 * and other calls answer INVALID_ARGUMENT. After 64 more streams were closed the name may be that of a later one. */
GM_API gm_status gm_stream_close(gm_stream *stream, gm_error *err);

/* What the stream's order means for the reuse of memory (gm_stream_kind). NULL: GM_STREAM_FIFO. */
GM_API gm_stream_kind gm_stream_get_kind(const gm_stream *stream);
GM_API gm_device *gm_stream_device(const gm_stream *stream); /* borrowed */
GM_API uint64_t gm_stream_id(const gm_stream *stream);       /* never reused in its context, never 0 */

/* Hand submitted work to the device. */
GM_API gm_status gm_stream_flush(gm_stream *stream, gm_error *err);

/* Hand it over and wait until it is done. NOT_SUPPORTED: gm may not submit there, so it cannot wait. */
GM_API gm_status gm_stream_sync(gm_stream *stream, gm_error *err);

/* Later work of the stream follows, and sees, all earlier work of it. Nothing to do on a FIFO stream.
 * NOT_SUPPORTED: gm may not submit there. */
GM_API gm_status gm_stream_barrier(gm_stream *stream, gm_error *err);

/* A point after everything submitted to the stream so far. NOT_SUPPORTED: gm may not submit there. The caller releases
 * *out. */
GM_API gm_status gm_stream_record(gm_stream *stream, gm_point *out, gm_error *err);

/* A point of the engine's own making (event, timeline value) in that stream's order. NOT_SUPPORTED: the API has
 * none. The caller releases *out. */
GM_API gm_status gm_stream_import_point(gm_stream *stream, const gm_native_point *native, gm_point *out, gm_error *err);

/* The API's own event or semaphore of a point: `out` is a gm_opencl_point, gm_vulkan_point, ... with its head filled.
 * Good until the point is released; its handle is 0 when the point has passed. NOT_SUPPORTED: the API has none. */
GM_API gm_status gm_point_native(gm_device *device, const gm_point *point, gm_native_point *out, gm_error *err);

/* The engine says: all work of the stream that uses a block freed so far in its order, or named by gm_use_on, is done
 * when `point` has passed (NULL: it is done), in every pool of the device. gm asks the stream nothing, so this is how
 * memory comes back from one that gm may not submit to, and how any thread settles a stream that belongs to another, or
 * to one that has ended: afterwards it can be closed. Any point of the device will do; the engine's own comes from
 * gm_stream_import_point, which submits nothing. The point stays the caller's and may be released at once; what lies
 * behind an imported one lives until it has passed. To say it twice, or again before the last point has passed, is
 * fine: the newest word counts, and the oldest that is under way.
 * INVALID_ARGUMENT: the point is another device's, or the stream is closed; NOT_SUPPORTED: the backend cannot keep a
 * point, and it has not passed yet; OUT_OF_HOST_MEMORY: say it again, some pools may not know; FORKED. Thread-safe. */
GM_API gm_status gm_stream_passed(gm_stream *stream, const gm_point *point, gm_error *err);

/* Later work of `stream` waits for the point; the host does not. A point of a closed stream counts as passed. A point
 * of another device is INVALID_ARGUMENT in every function of this header. */
GM_API gm_status gm_stream_wait(gm_stream *stream, const gm_point *point, gm_error *err);

/* Whether the device has passed the point; does not wait. INVALID_ARGUMENT, FORKED; else what the backend says. */
GM_API gm_status gm_point_done(gm_device *device, const gm_point *point, bool *out, gm_error *err);

/* The host waits. GM_ERR_TIMEOUT when timeout_ns passed first; UINT64_MAX waits without limit. */
GM_API gm_status gm_point_wait(gm_device *device, const gm_point *point, uint64_t timeout_ns, gm_error *err);

/* Give the point back and zero it. NULL and zero points are fine; one of another device is left as it is. */
GM_API void gm_point_release(gm_device *device, gm_point *point);

GM_END_DECLS

#endif

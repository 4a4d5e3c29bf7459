/* Streams of the CPU backend: a bounded FIFO of tasks and one worker, started with the first asynchronous task; and
 * points, which are places in that FIFO: {stream, how many tasks}. Entries 12 and 13. Thread-safe. */
#ifndef GM_BACKENDS_CPU_CPU_STREAM_H
#define GM_BACKENDS_CPU_CPU_STREAM_H

#include "backends/cpu/cpu_task.h"

/* With `out` NULL returns when the task is done; else at once (or when the queue has room), and *out passes with the
 * task. Fails only when the worker thread cannot be started, and then nothing was queued. */
gm_status gm__cpu_stream_submit(void *stream, const gm__cpu_task *task, gm_backend_point *out, gm_error *err);

gm_status gm__cpu_stream_create(void *device, void **out_stream, gm_stream_kind *out_kind, gm_error *err);
void gm__cpu_stream_close(void *device, void *stream, gm_close_mode mode);
gm_status gm__cpu_stream_flush(void *device, void *stream, gm_error *err);
gm_status gm__cpu_stream_sync(void *device, void *stream, gm_error *err);
gm_status gm__cpu_point_record(void *device, void *stream, gm_backend_point *out, gm_error *err);
gm_status gm__cpu_point_done(void *device, const gm_backend_point *point, bool *out, gm_error *err);
gm_status gm__cpu_point_wait(void *device, const gm_backend_point *point, uint64_t timeout_ns, gm_error *err);
gm_status gm__cpu_point_wait_on(void *device, void *stream, const gm_backend_point *point, gm_error *err);
gm_status gm__cpu_point_copy(void *device, const gm_backend_point *point, gm_backend_point *out, gm_error *err);
void gm__cpu_point_release(void *device, const gm_backend_point *point, gm_close_mode mode);

#endif

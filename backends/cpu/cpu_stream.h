/* Streams of the CPU backend. A stream is a bounded FIFO of tasks with one worker, which starts with the first
 * asynchronous task. A point is a place in that FIFO: {stream, number of tasks}. Thread-safe. */
#ifndef GM_BACKENDS_CPU_CPU_STREAM_H
#define GM_BACKENDS_CPU_CPU_STREAM_H

#include "backends/cpu/cpu_task.h"

/* Submit `task`. With `out` NULL the call returns when the task is done. Otherwise it returns at once, or as soon as
 * the queue has room, and *out passes with the task. The call fails only when the worker thread cannot start; then
 * nothing was queued. */
gm_status gm__cpu_stream_submit(void *stream, const gm__cpu_task *task, gm_backend_point *out, gm_error *err);

#endif

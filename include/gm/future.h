/* Futures: requests that wait for memory without a thread that waits. A future is a value of the caller's. gm keeps no
 * memory for it.
 *
 * A free wakes nobody, so that frees cost nothing. Somebody has to look: gm_future_done, gm_future_wait, a thread whose
 * own request waits (gm_request.deadline_ns), gm_context_poll, or the thread of gm_monitor_start. Each look serves all
 * futures of the device whose turn it is, those of other threads, too.
 *
 * Futures and requests with a deadline stand in one queue of the device, in the order in which they came. None passes
 * another one. The exception is one that waits for its own pool, at the cap or a quota: those of other pools pass it.
 * gm_alloc without a deadline does not stand in the queue. It may take memory before it.
 *
 * Every call is thread-safe. Two threads must not start the same future at once. */
#ifndef GM_FUTURE_H
#define GM_FUTURE_H

#include "gm/pool.h"

GM_BEGIN_DECLS

typedef struct gm_future gm_future;

/* Is called once, when a future is done, on the thread that served it, under no lock. It may call gm, and start another
 * future. It must not start `future` again, end its memory, or throw. */
typedef void (*gm_future_callback)(void *user, gm_future *future);

/* A place in the queue of a device: internal. Never grows. */
typedef struct gm_turn {
  struct gm_turn *next;
  const void *pool;
  const void *server;
  uint64_t deadline, joined, looked;
  bool serves, narrow;
} gm_turn;

/* A request under way. While it waits, its memory must neither move nor end: gm_future_cancel comes first. The pool and
 * the request's stream stay open meanwhile. Never grows. */
struct gm_future {
  gm_acquire answer;  /* once it is done: the answer of gm_alloc */
  gm_status status;   /* once it is done: GM_OK where `answer` is one with a block, else why it has none */
  gm_block block;     /* once it is done, with a block: the caller frees it */
  gm_request request; /* internal, with all that follow */
  gm_turn turn;
  gm_future_callback callback;
  void *user;
  uint64_t seen;
  uint32_t looks, state;
  bool narrow, patient;
};

/* Asks for a block, and does not wait. True: the future is done now, with a block or with a refusal that no waiting
 * helps. False: it waits. Memory that is there is taken at once where nobody waits at the device. The request is
 * copied. Its `deadline_ns` says when the wait ends; 0: never.
 *
 * A future that waits already stays as it is. gm logs that and drops the new request.
 *
 * How a future ends, in `answer` and `status`:
 * - with a block: OK, FRESH, NEEDS_WAIT or NEEDS_BARRIER, and GM_OK;
 * - the deadline passed: EXHAUSTED and TIMEOUT;
 * - gm_future_cancel: EXHAUSTED and CANCELLED;
 * - the pool was destroyed by force: INVALID and CANCELLED. gm_pool_destroy answers BUSY while a future waits;
 * - in a forked child: FAILED and FORKED;
 * - the device was lost, or the driver failed: FAILED, and DEVICE_LOST or what the driver said;
 * - the request cannot be served at all: as gm_alloc answers, and the reason. */
GM_API bool gm_alloc_async(gm_pool *pool, const gm_request *request, gm_future *out);

/* Looks once, and serves futures whose turn it is. True: the future is done. While the callback runs, only its own
 * thread gets true. */
GM_API bool gm_future_done(gm_future *future);

/* Waits until the future is done, `timeout_ns` at most (UINT64_MAX: for ever), and serves futures meanwhile. Hold no
 * lock that a callback or an evictor takes. GM_OK: it is done; `answer` tells how. TIMEOUT: it waits on.
 * INVALID_ARGUMENT: it was never started. */
GM_API gm_status gm_future_wait(gm_future *future, uint64_t timeout_ns, gm_error *err);

/* Has `callback` called when the future is done. If it is done already, it is called at once, on this thread. One that
 * is cancelled calls nothing. BUSY: as for gm_future_cancel. INVALID_ARGUMENT: `callback` is NULL, the future was never
 * started, or it has a callback already. */
GM_API gm_status gm_future_on_done(gm_future *future, gm_future_callback callback, void *user, gm_error *err);

/* Ends the wait. After GM_OK the future is done, and its memory is the caller's. If gm_acquired(future->answer), the
 * block is yours. Otherwise nothing is. While another thread serves it, or runs its callback, the call waits for that.
 * Hold no lock that a callback or an evictor takes.
 *
 * BUSY: the calling thread itself is serving it, because an evictor called this. INVALID_ARGUMENT: it was never
 * started. */
GM_API gm_status gm_future_cancel(gm_future *future, gm_error *err);

GM_END_DECLS

#endif

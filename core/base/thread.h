/* Mutex, condition, thread, once. Every function is thread-safe; init and destroy belong to one thread. */
#ifndef GM_CORE_BASE_THREAD_H
#define GM_CORE_BASE_THREAD_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/inner.h"
#include "core/base/posix/thread_types.h"
#include "core/base/rank.h"
#include "gm/status.h"

/* A mutex is not recursive and must not move. gm__mutex_init makes it, or `= GM__MUTEX_INIT` for a leaf. None of these
 * functions can fail. */
GM__INNER void gm__mutex_init(gm__mutex *mutex, gm__rank rank);
GM__INNER void gm__mutex_destroy(gm__mutex *mutex);
GM__INNER void gm__mutex_lock(gm__mutex *mutex);
bool gm__mutex_try_lock(gm__mutex *mutex);
GM__INNER void gm__mutex_unlock(gm__mutex *mutex);

/* A wait may end without a signal, so the caller checks its condition in a loop. A gm__cond must not move. */
GM__INNER void gm__cond_init(gm__cond *cond);
GM__INNER void gm__cond_destroy(gm__cond *cond);
GM__INNER void gm__cond_signal(gm__cond *cond);
GM__INNER void gm__cond_broadcast(gm__cond *cond);
GM__INNER void gm__cond_wait(gm__cond *cond, gm__mutex *mutex);

/* Wait until `deadline` (core/base/clock.h). False: that moment has passed. The wall clock does not change it. */
GM__INNER bool gm__cond_wait_until(gm__cond *cond, gm__mutex *mutex, uint64_t deadline);

/* Start `run(arg)` in a thread with all signals blocked and with the name `name`, cut to 15 bytes. *out must not move
 * until gm__thread_join. GM_ERR_SYSTEM: the system has no thread, and there is nothing to join. */
GM__INNER gm_status gm__thread_create(gm__thread *out, const char *name, void (*run)(void *arg), void *arg,
                                      gm_error *err);

/* Wait for the end of the thread. Call it exactly once for each thread, and not from the thread itself. */
GM__INNER void gm__thread_join(gm__thread *thread);

/* Call `run` once for this `once` (static, `= GM__ONCE_INIT`). On return `run` has ended. */
void gm__once_run(gm__once *once, void (*run)(void));

#endif

/* Mutex, condition, thread, once. Every function is thread-safe; init and destroy belong to one thread. */
#ifndef GM_CORE_BASE_THREAD_H
#define GM_CORE_BASE_THREAD_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/posix/thread_types.h"
#include "core/base/rank.h"
#include "gm/status.h"

/* Not recursive; gm__mutex_init, or `= GM__MUTEX_INIT` for a leaf. Must not move. None of these functions can fail. */
void gm__mutex_init(gm__mutex *mutex, gm__rank rank);
void gm__mutex_destroy(gm__mutex *mutex);
void gm__mutex_lock(gm__mutex *mutex);
bool gm__mutex_try_lock(gm__mutex *mutex);
void gm__mutex_unlock(gm__mutex *mutex);

/* Waiting may end without a signal: the caller looks at its condition again, in a loop. Must not move. */
void gm__cond_init(gm__cond *cond);
void gm__cond_destroy(gm__cond *cond);
void gm__cond_signal(gm__cond *cond);
void gm__cond_broadcast(gm__cond *cond);
void gm__cond_wait(gm__cond *cond, gm__mutex *mutex);

/* The same until `deadline` (core/base/clock.h); false when that moment has passed. Not moved by the wall clock. */
bool gm__cond_wait_until(gm__cond *cond, gm__mutex *mutex, uint64_t deadline);

/* Start `run(arg)` in a thread with all signals blocked, named `name` (cut to 15 bytes). *out must stay in place until
 * gm__thread_join. GM_ERR_SYSTEM when the system has no thread: nothing to join then. */
gm_status gm__thread_create(gm__thread *out, const char *name, void (*run)(void *arg), void *arg, gm_error *err);

/* Wait for its end. Exactly once per created thread, and not from the thread itself. */
void gm__thread_join(gm__thread *thread);

/* Calls `run` the first time for this `once` (static, `= GM__ONCE_INIT`); on return it has been run. */
void gm__once_run(gm__once *once, void (*run)(void));

#endif

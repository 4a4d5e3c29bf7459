#include "core/base/thread.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "core/base/cancel.h"
#include "core/base/clock.h"
#include "core/base/error.h"

/* gm drops the results of the lock functions on purpose. With default attributes they can only report misuse: a lock of
 * another thread, or one that is not initialised. They never report a state that a caller could act on. */

void gm__mutex_init(gm__mutex *mutex, gm__rank rank) {
  pthread_mutex_init(&mutex->native, NULL);
  mutex->rank = rank;
}

void gm__mutex_destroy(gm__mutex *mutex) { pthread_mutex_destroy(&mutex->native); }

void gm__mutex_lock(gm__mutex *mutex) {
  gm__rank_expect(mutex->rank);
  pthread_mutex_lock(&mutex->native);
  gm__rank_enter(mutex->rank);
}

bool gm__mutex_try_lock(gm__mutex *mutex) {
  if (pthread_mutex_trylock(&mutex->native) != 0) return false;
  gm__rank_enter(mutex->rank);
  return true;
}

void gm__mutex_unlock(gm__mutex *mutex) {
  gm__rank_leave(mutex->rank);
  pthread_mutex_unlock(&mutex->native);
}

void gm__cond_init(gm__cond *cond) {
  pthread_condattr_t attributes;
  pthread_condattr_init(&attributes);
  pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  pthread_cond_init(&cond->native, &attributes);
  pthread_condattr_destroy(&attributes);
}

void gm__cond_destroy(gm__cond *cond) { pthread_cond_destroy(&cond->native); }

void gm__cond_signal(gm__cond *cond) { pthread_cond_signal(&cond->native); }

void gm__cond_broadcast(gm__cond *cond) { pthread_cond_broadcast(&cond->native); }

void gm__cond_wait(gm__cond *cond, gm__mutex *mutex) {
  GM__UNCANCELLED();
  pthread_cond_wait(&cond->native, &mutex->native);
}

bool gm__cond_wait_until(gm__cond *cond, gm__mutex *mutex, uint64_t deadline) {
  if (deadline == GM__NEVER) {
    gm__cond_wait(cond, mutex);
    return true;
  }
  GM__UNCANCELLED();
  struct timespec until = {(time_t)(deadline / 1000000000u), (long)(deadline % 1000000000u)};
  return pthread_cond_timedwait(&cond->native, &mutex->native, &until) == 0;
}

static void *thread_main(void *opaque) {
  gm__thread *thread = opaque;
  pthread_setname_np(pthread_self(), thread->name);
  thread->run(thread->arg);
  return NULL;
}

gm_status gm__thread_create(gm__thread *out, const char *name, void (*run)(void *arg), void *arg, gm_error *err) {
  out->run = run;
  out->arg = arg;
  snprintf(out->name, sizeof out->name, "%s", name);
  sigset_t all, before;
  sigfillset(&all);
  /* Signals are blocked around the creation, so that the thread begins with the mask. */
  pthread_sigmask(SIG_SETMASK, &all, &before);
  int code = pthread_create(&out->native, NULL, thread_main, out);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  if (code)
    return gm__fail_native(err, GM_ERR_SYSTEM, code, "pthread_create", "no thread %s: %s", name, strerror(code));
  return GM_OK;
}

void gm__thread_join(gm__thread *thread) {
  GM__UNCANCELLED();
  pthread_join(thread->native, NULL);
}

void gm__once_run(gm__once *once, void (*run)(void)) { pthread_once(&once->native, run); }

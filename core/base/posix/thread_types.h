/* The members of a mutex, a condition, a thread and a once on this system. Only the functions of core/base/thread.h
 * look inside. */
#ifndef GM_CORE_BASE_POSIX_THREAD_TYPES_H
#define GM_CORE_BASE_POSIX_THREAD_TYPES_H

#include <pthread.h>

#include "core/base/rank.h"

typedef struct gm__mutex {
  pthread_mutex_t native;
  gm__rank rank;
} gm__mutex;

typedef struct gm__cond {
  pthread_cond_t native;
} gm__cond;

typedef struct gm__thread {
  pthread_t native;
  void (*run)(void *arg);
  void *arg;
  char name[16];
} gm__thread;

typedef struct gm__once {
  pthread_once_t native;
} gm__once;

#define GM__MUTEX_INIT \
  { PTHREAD_MUTEX_INITIALIZER, GM__RANK_LEAF }
#define GM__ONCE_INIT \
  { PTHREAD_ONCE_INIT }

#endif

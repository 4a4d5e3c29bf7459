/* gm's data for each thread: a few words that are found without a call, and a sign of life for other threads. */
#ifndef GM_CORE_BASE_THREAD_HERE_H
#define GM_CORE_BASE_THREAD_HERE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/thread_data.h"

enum { GM__HERE_SLOTS = 16 };

/* A cache of the calling thread, for keys that are never used again. */
typedef struct gm__thread_here {
  struct {
    uint64_t key; /* 0: empty */
    void *value;
  } slots[GM__HERE_SLOTS];
  const void *self; /* the sign of life; without one, what all such threads have */
  bool ended;       /* the thread has ended: the cache keeps only entries that all threads share */
} gm__thread_here;

extern _Thread_local gm__thread_here gm__here GM__THREAD_DATA __attribute__((visibility("hidden")));

/* Identifies the calling thread once it has a sign of life. No other thread is identified so while anybody holds a
 * reference to that. All threads without a sign of life are the same. */
static inline const void *gm__thread_self(void) { return gm__here.self; }

static inline void *gm__here_find(uint64_t key) {
  const size_t at = key % GM__HERE_SLOTS;
  return gm__here.slots[at].key == key ? gm__here.slots[at].value : NULL;
}

static inline void gm__here_keep(uint64_t key, void *value) {
  gm__here.slots[key % GM__HERE_SLOTS].key = key;
  gm__here.slots[key % GM__HERE_SLOTS].value = value;
}

/* The calling thread's sign of life, with one reference for the caller. NULL: no host memory, or the system has no key
 * left, or the thread has ended and runs its destructors. */
typedef struct gm__thread_life gm__thread_life;
gm__thread_life *gm__thread_life_take(void);
void gm__thread_life_give(gm__thread_life *life); /* NULL does nothing */
bool gm__thread_life_ended(gm__thread_life *life);

#endif

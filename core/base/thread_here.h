/* What gm keeps for each thread: a few words found without a call, and a sign of life that others can look at. */
#ifndef GM_CORE_BASE_THREAD_HERE_H
#define GM_CORE_BASE_THREAD_HERE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { GM__HERE_SLOTS = 16 };

#define GM__HERE_NOBODY UINT64_MAX /* a key that is never kept */

/* A cache of the calling thread, for whoever has keys that are never used again. Its address names the thread among the
 * living ones. */
typedef struct gm__thread_here {
  struct {
    uint64_t key; /* 0: empty */
    void *value;
  } slots[GM__HERE_SLOTS];
  bool ended; /* nothing is kept any more but what all threads share */
} gm__thread_here;

extern _Thread_local gm__thread_here gm__here __attribute__((tls_model("initial-exec"), visibility("hidden")));

static inline const void *gm__thread_self(void) { return &gm__here; }

static inline void *gm__here_find(uint64_t key) {
  const size_t at = key % GM__HERE_SLOTS;
  return gm__here.slots[at].key == key ? gm__here.slots[at].value : NULL;
}

static inline void gm__here_keep(uint64_t key, void *value) {
  gm__here.slots[key % GM__HERE_SLOTS].key = key;
  gm__here.slots[key % GM__HERE_SLOTS].value = value;
}

/* The calling thread's sign of life, with one reference for the caller; NULL: no host memory, or none can be had, or
 * the thread has ended and this is one of the destructors that run behind it. */
typedef struct gm__thread_life gm__thread_life;
gm__thread_life *gm__thread_life_take(void);
void gm__thread_life_give(gm__thread_life *life); /* NULL: nothing */
bool gm__thread_life_ended(gm__thread_life *life);

#endif

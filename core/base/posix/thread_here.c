#include "core/base/thread_here.h"

#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>

#include "core/base/alloc.h"
#include "core/base/thread.h"

/* The thread holds one reference until its end, when the system runs the key's destructor. The main thread of a process
 * that exits never comes there. Destructors of other keys may use gm. So gm sets the key again in each of the system's
 * rounds but the last two. The last round belongs to the sanitizers, and nothing may run after it. */

static const char here_nobody;

_Thread_local gm__thread_here gm__here GM__THREAD_DATA __attribute__((visibility("hidden"))) = {.self = &here_nobody};

struct gm__thread_life {
  _Atomic uint32_t references;
  _Atomic bool ended;
  unsigned rounds; /* the thread's rounds of destructors so far */
};

static gm__once here_once = GM__ONCE_INIT;
static pthread_key_t here_key;
static bool here_has_key;

void gm__thread_life_give(gm__thread_life *life) {
  if (life && atomic_fetch_sub(&life->references, 1) == 1) gm__release(NULL, life, sizeof *life);
}

bool gm__thread_life_ended(gm__thread_life *life) { return atomic_load(&life->ended); }

static void here_end(void *opaque) {
  gm__thread_life *life = opaque;
  if (++life->rounds < PTHREAD_DESTRUCTOR_ITERATIONS - 1 && pthread_setspecific(here_key, life) == 0) return;
  /* another thread may take over this thread's entries from now on */
  gm__here = (gm__thread_here){.self = &here_nobody, .ended = true};
  atomic_store(&life->ended, true);
  gm__thread_life_give(life);
}

static void here_make_key(void) { here_has_key = pthread_key_create(&here_key, here_end) == 0; }

static gm__thread_life *here_new(void) {
  gm__thread_life *life = gm__alloc(NULL, sizeof *life);
  if (!life) return NULL;
  atomic_init(&life->references, 1);
  if (pthread_setspecific(here_key, life) == 0) {
    gm__here.self = life;
    return life;
  }
  gm__thread_life_give(life);
  return NULL;
}

gm__thread_life *gm__thread_life_take(void) {
  gm__once_run(&here_once, here_make_key);
  if (!here_has_key || gm__here.ended) return NULL;
  gm__thread_life *life = pthread_getspecific(here_key);
  if (!life) life = here_new();
  if (life) atomic_fetch_add(&life->references, 1);
  return life;
}

#include "core/base/barrier.h"

#include <linux/membarrier.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/thread.h"

#if defined(__SANITIZE_THREAD__)
#define BARRIER_IS_SEEN 0
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define BARRIER_IS_SEEN 0
#endif
#endif
#ifndef BARRIER_IS_SEEN
#define BARRIER_IS_SEEN 1
#endif

static gm__once barrier_once = GM__ONCE_INIT;
static bool barrier_there;

static bool barrier_call(int command) { return syscall(SYS_membarrier, command, 0, 0) == 0; }

static void barrier_ask(void) {
  barrier_there = BARRIER_IS_SEEN && barrier_call(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED);
}

bool gm__barrier_ready(void) {
  gm__once_run(&barrier_once, barrier_ask);
  return barrier_there;
}

/* A forked child is not registered any more. If the call failed for that reason, the older form would still work: it is
 * slow and needs no registration. */
void gm__barrier_all(void) {
  if (barrier_call(MEMBARRIER_CMD_PRIVATE_EXPEDITED)) return;
  if (barrier_call(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) && barrier_call(MEMBARRIER_CMD_PRIVATE_EXPEDITED)) return;
  barrier_call(MEMBARRIER_CMD_GLOBAL);
}

/* After sched_yield a real-time thread would run on, and the thread that it waits for never. */
void gm__thread_yield(void) { gm__sleep_ns(50000); }

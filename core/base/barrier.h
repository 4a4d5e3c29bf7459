/* A memory barrier in every running thread of the process at once. One side of a protocol between threads then needs no
 * barrier of its own. Thread-safe. */
#ifndef GM_CORE_BASE_BARRIER_H
#define GM_CORE_BASE_BARRIER_H

#include <stdbool.h>

/* Is the barrier available? False where the system lacks it, and under the thread sanitizer, which cannot see it. */
bool gm__barrier_ready(void);

/* On return every other thread has passed a full barrier since the call. REQUIRES: gm__barrier_ready. */
void gm__barrier_all(void);

/* Let other threads run, those of a lower priority, too: so it sleeps some 50 us. For short waits in a loop. */
void gm__thread_yield(void);

/* Pause without leaving the processor, for the shortest waits: the processor does not speculate meanwhile. */
static inline void gm__thread_pause(void) {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

#endif

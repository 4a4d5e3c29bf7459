/* A memory barrier in every running thread of the process at once, so that one side of a protocol between threads needs
 * none of its own. Thread-safe. */
#ifndef GM_CORE_BASE_BARRIER_H
#define GM_CORE_BASE_BARRIER_H

#include <stdbool.h>

/* Can it be had here? False where the system lacks it, and under the thread sanitizer, which cannot see it. */
bool gm__barrier_ready(void);

/* On return every other thread has passed a full barrier since the call. Only where gm__barrier_ready said true. */
void gm__barrier_all(void);

/* Let others run; for short waits in a loop. */
void gm__thread_yield(void);

/* The same for waits so short that the processor need not go: it does not guess ahead meanwhile. */
static inline void gm__thread_pause(void) {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

#endif

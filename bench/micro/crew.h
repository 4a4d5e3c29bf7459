/* Threads that begin together. */
#ifndef GM_BENCH_CREW_H
#define GM_BENCH_CREW_H

#include <stdint.h>

enum { CREW_MOST = 64 };

typedef void crew_work(void *user, unsigned thread);

/* Run `work` on so many threads (one: the caller's own). The nanoseconds from their common start to the end of the
 * last; 0: a thread could not be started. */
uint64_t crew_run(unsigned threads, crew_work *work, void *user);

#endif

/* A trace on an allocator: how long, how much, how many driver calls. */
#ifndef GM_BENCH_REPLAY_H
#define GM_BENCH_REPLAY_H

#include <stdio.h>

#include "bench/measure/peer.h"
#include "bench/trace/events.h"

/* A cold run, `runs` warm ones, one with each event timed if `latency`; writes one "name value" a line. With `runs` 0 a
 * cold run alone, which stops at the first allocation that fails. 0, or -1: out of host memory. */
int replay_measure(const peer_library *peer, const bench_events *events, unsigned runs, bool latency, FILE *out);

/* Two runs that look: do blocks overlap, are they multiples of 256 bytes, which failed? Writes these counts. 0 when no
 * block overlaps another, else -1. */
int replay_check(const peer_library *peer, const bench_events *events, FILE *out);

#endif

/* Small loops: the same size again and again, random sizes, blocks that another thread frees. */
#ifndef GM_BENCH_MICRO_H
#define GM_BENCH_MICRO_H

#include <stdbool.h>
#include <stdio.h>

#include "bench/measure/peer.h"

typedef struct micro_params {
  unsigned threads, runs;
  size_t pairs; /* allocations of each thread in one run */
  bool plain;   /* single events are not timed */
} micro_params;

/* Writes "ns_per_event" (wall clock over the allocations and frees of all threads, the least of the runs) and "failed".
 * 0, or -1: out of host memory or threads. */
typedef int micro_case(const peer_library *peer, const micro_params *params, FILE *out);

micro_case micro_pair;   /* 1 MiB, freed at once; also the quantiles of single events */
micro_case micro_random; /* 4 KiB to 64 MiB, each power of two as likely, 1000 alive in each thread */
micro_case micro_cross;  /* `threads` is 2: 1 MiB, one allocates, the other frees on its own stream */

/* The one of that name: "pair", "random", "cross"; NULL: none. */
micro_case *micro_find(const char *name);

#endif

/* Figures that only gm can be asked for: host memory for each live block, and the cost of tracking and recording. On
 * the null device.
 */
#ifndef GM_BENCH_OWN_H
#define GM_BENCH_OWN_H

#include <stddef.h>
#include <stdio.h>

/* Each writes "name value" lines. 0, or -1 with the reason on standard error. */
typedef int own_case(size_t pairs, unsigned runs, FILE *out);

own_case own_metadata; /* "bytes_per_block": growth of gm's host memory from 10 000 to 110 000 live blocks */
own_case own_tracking; /* "plain_ns", "tracked_ns": an allocation or free, with tags and ages and without */

/* "plain_ns", "recorded_ns": an allocation or free without and with a recording, into a file of the folder for
 * temporary ones. "written_ns": what the end of the recording takes for each event. */
own_case own_recording;

/* The cost of calls beside `pairs` live blocks of some KiB, on mapped pages and without ("no_vmm_..."): the mean, or
 * the worst ("..._most"), in ns. "..._most_pages": the most pages that a call was the first to touch, on any machine:
 * a table that is copied has many. "alloc", "free" (in no order), "again": after a trim. "large": blocks of 1 to 64
 * MiB that come and go. "trim". "close": of the stream that all were freed on. */
own_case own_scale;

/* "pair_ns": gm_alloc or gm_free of 1 MiB, one after the other. In "plain-pair" the requests ask for nothing else.
 * Those of "typed-pair" name the memory type that plain ones get, too. Those of "rare-pair" name a type and a usage,
 * which the memory of plain requests does not serve. "fixed-pair" is of a pool of fixed sizes. In
 * "future-pair" gm_alloc_async takes the place of gm_alloc. */
own_case own_plain_pair, own_typed_pair, own_rare_pair, own_fixed_pair, own_future_pair;

/* "scope_ns": the begin and the end of a performance scope with a name, and a pair as in "plain-pair" between them. */
own_case own_scope;

/* Pairs as in "plain-pair", in wall clock over the events of all threads. "one_ns" is of one thread on one device,
 * "shared_ns" of two threads on it, and "two_ns" of two threads with a device each. */
own_case own_devices;

/* By its name above, without "own_" and with "-" for "_"; NULL: none. */
own_case *own_find(const char *name);

#endif

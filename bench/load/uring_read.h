/* Reads of a whole file by io_uring, without liburing: what loads by threads are held against. */
#ifndef GM_BENCH_LOAD_URING_READ_H
#define GM_BENCH_LOAD_URING_READ_H

#include <stdbool.h>
#include <stdint.h>

/* Reads `bytes` bytes of `fd`, which is open for direct reads, to `memory`, which is at a page. `depth` reads of
 * `piece` bytes are under way at a time; it is a power of two. False: the system refuses, or a read failed. */
bool uring_read(int fd, unsigned char *memory, uint64_t bytes, uint32_t piece, uint32_t depth);

#endif

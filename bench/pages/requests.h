/* How many sequences of a trace of requests fit in the same memory: in ranges, in pages, and at best. */
#ifndef GM_BENCH_PAGES_REQUESTS_H
#define GM_BENCH_PAGES_REQUESTS_H

/* Prints a row for each way. Returns what a program leaves with. */
int requests_play(const char *path);

#endif

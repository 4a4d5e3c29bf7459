/* Handles of pages that are mapped nowhere, by size: the largest of at most so many pages in a bounded number of steps.
 * Pure; externally synchronised. */
#ifndef GM_CORE_POOL_SPARE_H
#define GM_CORE_POOL_SPARE_H

#include <stdbool.h>
#include <stdint.h>

enum {
  GM__SPARE_BINS = 512, /* the last one: whatever is larger */
  GM__SPARE_WORDS = GM__SPARE_BINS / 64
};

/* One piece of physical memory: whole pages. */
typedef struct gm__handle {
  uint64_t native; /* 0: no memory */
  uint32_t first;  /* page of the range that it is mapped at */
  uint32_t pages;
  uint32_t next; /* of its spare ones, or of the unused records */
  uint64_t made; /* the how manieth of the pool */
  bool shut;     /* mapped, and the driver would neither open nor unmap it: pages.c */
} gm__handle;

/* Zero-initialised there are none. Numbers are places in a table of handles, from 1. */
typedef struct gm__spare {
  uint64_t words[GM__SPARE_WORDS];
  uint32_t heads[GM__SPARE_BINS];
} gm__spare;

void gm__spare_put(gm__spare *spare, gm__handle *handles, uint32_t number);

/* The largest of at most `most` pages, else the smallest of at most `reach`; of equal ones the last that came. Taken
 * out; 0: none. */
uint32_t gm__spare_take(gm__spare *spare, gm__handle *handles, uint32_t most, uint32_t reach);

#endif

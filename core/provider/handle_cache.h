/* The handle cache: handles that are mapped nowhere, in bins by size. It finds the largest one below a bound in a
 * bounded number of steps. Pure. The caller synchronises. */
#ifndef GM_CORE_PROVIDER_HANDLE_CACHE_H
#define GM_CORE_PROVIDER_HANDLE_CACHE_H

#include <stdbool.h>
#include <stdint.h>

enum {
  GM__HANDLE_CACHE_BINS = 512, /* the last bin has all larger handles */
  GM__HANDLE_CACHE_WORDS = GM__HANDLE_CACHE_BINS / 64
};

/* Physical memory in whole pages, which the driver maps as one. */
typedef struct gm__handle {
  uint64_t native; /* the driver's; 0: the record has no memory, or it is asleep */
  uint32_t first;  /* the page of the range where it is mapped */
  uint32_t pages;
  uint32_t next; /* in its bin of the cache, or in the list of unused records */
  uint64_t made; /* its ordinal number among all handles of the pool */
  bool shut;     /* it is mapped, and the driver refused to open and to unmap it (handles.c) */
  bool asleep;   /* it has given its memory back, and keeps its pages until it wakes or is destroyed */
} gm__handle;

/* All zeros: it is empty. A number is a place in the table of handles, from 1. */
typedef struct gm__handle_cache {
  uint64_t words[GM__HANDLE_CACHE_WORDS];
  uint32_t heads[GM__HANDLE_CACHE_BINS];
} gm__handle_cache;

void gm__handle_cache_put(gm__handle_cache *handle_cache, gm__handle *handles, uint32_t number);

/* Takes out the largest handle of at most `most` pages, else the smallest of at most `reach`. Among several such it
 * takes the one that came last. 0: there is none. */
uint32_t gm__handle_cache_take(gm__handle_cache *handle_cache, gm__handle *handles, uint32_t most, uint32_t reach);

#endif

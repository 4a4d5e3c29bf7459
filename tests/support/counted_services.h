/* Services for tests: memory that counts, starts dirty, checks the size at release and fails the N-th request. It has
 * a log that keeps the last line, too. Counting is thread-safe.
 *
 *   counted_services host;
 *   counted_services_init(&host);
 *   host.fail_at = n;                // the n-th request and those after it fail
 *   ... use &host.services ...
 *   counted_services_check(&host);   // all given back, each with the size it was asked for with */
#ifndef GM_TESTS_SUPPORT_COUNTED_SERVICES_H
#define GM_TESTS_SUPPORT_COUNTED_SERVICES_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gm/services.h"

typedef struct counted_services {
  gm_services services; /* points at this struct, which must not move */
  atomic_size_t calls;
  atomic_size_t live_blocks;
  atomic_size_t live_bytes;
  atomic_size_t peak_bytes; /* highest live_bytes; exact with one thread */
  atomic_size_t wrong_releases;
  size_t fail_at;    /* 1: the first request fails; 0: none */
  size_t fail_count; /* how many from there on; 0: all */
  int last_level;
  atomic_size_t lines;
  char last_line[1024];
} counted_services;

/* Stands right before each block. */
typedef struct counted_head {
  void *start;
  size_t bytes;
  size_t align;
  size_t mark;
} counted_head;

#define COUNTED_MARK ((size_t)0x5e1fc0de)

static inline int counted_fails(counted_services *host) {
  size_t call = atomic_fetch_add(&host->calls, 1) + 1;
  if (!host->fail_at || call < host->fail_at) return 0;
  return !host->fail_count || call < host->fail_at + host->fail_count;
}

static inline void *counted_alloc(void *user, size_t bytes, size_t align) {
  counted_services *host = user;
  if (counted_fails(host)) return NULL;
  unsigned char *start = malloc(bytes + align + sizeof(counted_head));
  if (!start) return NULL;
  uintptr_t at = ((uintptr_t)start + sizeof(counted_head) + align - 1) & ~(uintptr_t)(align - 1);
  unsigned char *block = start + (at - (uintptr_t)start);
  counted_head head = {start, bytes, align, COUNTED_MARK};
  memcpy(block - sizeof head, &head, sizeof head);
  memset(block, 0xa5, bytes);
  atomic_fetch_add(&host->live_blocks, 1);
  size_t live = atomic_fetch_add(&host->live_bytes, bytes) + bytes;
  if (live > atomic_load(&host->peak_bytes)) atomic_store(&host->peak_bytes, live);
  return block;
}

static inline void counted_release(void *user, void *ptr, size_t bytes) {
  counted_services *host = user;
  counted_head head;
  memcpy(&head, (unsigned char *)ptr - sizeof head, sizeof head);
  if (head.mark != COUNTED_MARK || head.bytes != bytes) atomic_fetch_add(&host->wrong_releases, 1);
  atomic_fetch_sub(&host->live_blocks, 1);
  atomic_fetch_sub(&host->live_bytes, head.bytes);
  free(head.start);
}

static inline void counted_log(void *user, int level, const char *line) {
  counted_services *host = user;
  host->last_level = level;
  snprintf(host->last_line, sizeof host->last_line, "%s", line);
  atomic_fetch_add(&host->lines, 1);
}

static inline void counted_services_init(counted_services *host) {
  memset(host, 0, sizeof *host);
  host->services = (gm_services){.alloc = counted_alloc, .release = counted_release, .log = counted_log, .user = host};
}

/* Needs cmocka.h. */
#define counted_services_check(host)                           \
  do {                                                         \
    assert_int_equal(atomic_load(&(host)->live_blocks), 0);    \
    assert_int_equal(atomic_load(&(host)->live_bytes), 0);     \
    assert_int_equal(atomic_load(&(host)->wrong_releases), 0); \
  } while (0)

#endif

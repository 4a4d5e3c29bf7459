/* The wishes that a thread's requests came with, and the arena that serves each. So gm_alloc reads a wish once. An
 * answer stays right as long as the pool: a device's memory types and an arena's kind never change. Plain data. */
#ifndef GM_CORE_ARENA_WISHES_H
#define GM_CORE_ARENA_WISHES_H

#include <string.h>

#include "core/arena/arena_set.h"

enum { GM__WISHES = 8 }; /* the last ones; more than a thread has as a rule */

/* The wishes of a request for its memory, but for alignment. Members of gm_request that lie side by side are one
 * word. */
typedef struct gm__wish {
  uint64_t flags, usage, require; /* flags and must_be; usage and memory_types; require and prefer */
} gm__wish;

_Static_assert(offsetof(gm_request, must_be) == offsetof(gm_request, flags) + 4, "read as one word");
_Static_assert(offsetof(gm_request, memory_types) == offsetof(gm_request, usage) + 4, "read as one word");
_Static_assert(offsetof(gm_request, prefer) == offsetof(gm_request, require) + 4, "read as one word");

/* An empty place has no arena. So the wish of all zeros finds none. */
typedef struct gm__wishes {
  struct {
    gm__wish wish;
    gm__arena *arena;
  } known[GM__WISHES];
  uint32_t next; /* the place that the next new wish gets */
} gm__wishes;

/* Two members that lie side by side, as one word. */
static inline uint64_t gm__wish_word(const void *members) {
  uint64_t word;
  memcpy(&word, members, sizeof word);
  return word;
}

static inline gm__wish gm__wish_of(const gm_request *request) {
  return (gm__wish){gm__wish_word(&request->flags), gm__wish_word(&request->usage), gm__wish_word(&request->require)};
}

/* Properties that the memory of plain requests need not have; 0: every arena of a thread serves. */
static inline uint64_t gm__wish_odd(const gm__wish *wish) {
  static const uint32_t odd_flags[2] = {~(uint32_t)GM_INSERT_WAIT, UINT32_MAX};
  static const uint32_t odd_usage[2] = {~(uint32_t)(GM_USAGE_TRANSFER | GM_USAGE_STORAGE), UINT32_MAX};
  return (wish->flags & gm__wish_word(odd_flags)) | wish->require | (wish->usage & gm__wish_word(odd_usage));
}

/* Is every chunk aligned as the request asks? `granule`: the arena's. */
static inline bool gm__wish_is_aligned(const gm_request *request, uint64_t granule) {
  return request->align <= granule && !(request->align & (request->align - 1));
}

/* Is the request for plain memory, which every arena of a thread has? */
static inline bool gm__wish_is_plain(const gm_request *request, uint64_t granule) {
  const gm__wish wish = gm__wish_of(request);
  return !(gm__wish_odd(&wish) | request->deadline_ns | request->reserved[0]) && gm__wish_is_aligned(request, granule);
}

/* The arena for that wish; NULL: it is not known. */
static inline gm__arena *gm__wishes_find(const gm__wishes *wishes, const gm__wish *wish) {
  for (int i = 0; i < GM__WISHES; i++) {
    const gm__wish *known = &wishes->known[i].wish;
    if (!((known->flags ^ wish->flags) | (known->usage ^ wish->usage) | (known->require ^ wish->require))) {
      return wishes->known[i].arena;
    }
  }
  return NULL;
}

static inline void gm__wishes_keep(gm__wishes *wishes, const gm__wish *wish, gm__arena *arena) {
  wishes->known[wishes->next].wish = *wish;
  wishes->known[wishes->next].arena = arena;
  wishes->next = (wishes->next + 1) % GM__WISHES;
}

#endif

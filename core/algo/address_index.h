/* The address index finds the chunk that begins at an address. Once somebody asks for that, it also finds the chunk
 * that an address lies in. The caller synchronises. */
#ifndef GM_CORE_ALGO_ADDRESS_INDEX_H
#define GM_CORE_ALGO_ADDRESS_INDEX_H

#include "core/algo/anchor.h"
#include "core/algo/chunk.h"

/* The chunks by their anchors (anchor.h). */
typedef struct gm__lookup_inside {
  uint32_t *slots; /* as many as in the other table; NULL: nobody has asked yet */
  uint32_t shift;  /* anchors are of addresses without these low bits */
  uint32_t end;    /* chunks of smaller numbers are in the table. GM__LOOKUP_ALL: all are */
  gm__anchor_levels levels;
} gm__lookup_inside;

/* A slot has the number of a chunk, and how many steps that chunk is from its own place. So a search passes other
 * chunks without a look at their records. */
enum {
  GM__LOOKUP_STEPS_AT = 24, /* above the number, which has no more bits */
  GM__LOOKUP_FAR = 255      /* so many steps, or more */
};
#define GM__LOOKUP_ALL UINT32_MAX

/* While an index grows: how many insertions go between two calls that look through so many old slots. */
enum { GM__LOOKUP_GRANT = 16, GM__LOOKUP_SCAN = 1024 };

#define GM__LOOKUP_STEP (UINT32_C(1) << GM__LOOKUP_STEPS_AT)
_Static_assert((uint32_t)GM__CHUNKS_MAX <= GM__LOOKUP_STEP, "a number has room in a slot");

/* The tables that an index grew out of. Their chunks go over to the new ones a few at a time. */
typedef struct gm__lookup_old {
  uint32_t *slots, *inside_slots; /* NULL: there is none */
  uint32_t bits;
  uint32_t at;      /* slots before this one are empty */
  uint32_t unready; /* how many more may be inserted, beyond `room`, once all have gone over */
} gm__lookup_old;

typedef struct gm__lookup {
  uint32_t *slots;     /* 0: empty. Never NULL: an index without memory has a shared empty table */
  uint32_t bits;       /* there are 1 << bits slots; 0: it has none of its own */
  uint32_t down, mask; /* down: from the product to a place. mask: the highest place */
  uint32_t room;       /* how many more may be inserted before gm__lookup_reserve has work */
  gm__lookup_inside inside;
  gm__lookup_old old;
} gm__lookup;

/* An index without slots of its own. */
void gm__lookup_init(gm__lookup *lookup);

bool gm__lookup_reserve_slow(gm__lookup *lookup, const gm__chunks *chunks);

/* Makes sure that one more chunk can be inserted. No call copies a table: see GM__LOOKUP_SCAN. False without host
 * memory. */
static inline bool gm__lookup_reserve(gm__lookup *lookup, const gm__chunks *chunks) {
  return lookup->room || gm__lookup_reserve_slow(lookup, chunks);
}

void gm__lookup_clear(gm__lookup *lookup, const gm_services *services);

/* From now on the index finds chunks by any address in them. `shift` is that of their granules: each chunk begins at a
 * multiple. Insertions and removals take a little more time afterwards. False without host memory. */
bool gm__lookup_open_inside(gm__lookup *lookup, const gm__chunks *chunks, uint32_t shift);

/* The chunk that contains the address; 0: there is none. Call gm__lookup_open_inside before. The first calls fill the
 * table of anchors, GM__LOOKUP_SCAN chunks with each. Until it is full they look back from the address, too. So a call
 * takes time for all chunks only if the one looked for is very large, or there is none. */
uint32_t gm__lookup_find_inside(gm__lookup *lookup, const gm__chunks *chunks, uint64_t address);

static inline uint32_t gm__lookup_hash(uint64_t key, uint32_t down) {
  return (uint32_t)(key * UINT64_C(0x9e3779b97f4a7c15) >> down);
}

static inline uint32_t gm__lookup_place(const gm__lookup *lookup, uint64_t address) {
  return gm__lookup_hash(address, lookup->down);
}

/* Insertion where the slot is taken, or chunks are found by any address in them. */
void gm__lookup_insert_slow(gm__lookup *lookup, const gm__chunks *chunks, uint32_t number);

/* Inserts a chunk. gm__lookup_reserve made room for it. */
static inline void gm__lookup_insert(gm__lookup *lookup, const gm__chunks *chunks, uint32_t number) {
  uint32_t *slot = &lookup->slots[gm__lookup_place(lookup, gm__chunk_at(chunks, number)->address)];
  lookup->room--;
  if (__builtin_expect(*slot || lookup->inside.slots, 0)) {
    gm__lookup_insert_slow(lookup, chunks, number);
    return;
  }
  *slot = number;
}

/* The chunk that begins there, if it is in its own place; 0: it is not. */
static inline uint32_t gm__lookup_find_home(const gm__lookup *lookup, const gm__chunks *chunks, uint64_t address) {
  const uint32_t slot = lookup->slots[gm__lookup_place(lookup, address)];
  if (__builtin_expect(slot >= GM__LOOKUP_STEP || gm__chunk_at(chunks, slot)->address != address, 0)) return 0;
  return slot;
}

uint32_t gm__lookup_find_far(const gm__lookup *lookup, const gm__chunks *chunks, uint64_t address);

/* The chunk that begins there; 0: there is none. */
static inline uint32_t gm__lookup_find(const gm__lookup *lookup, const gm__chunks *chunks, uint64_t address) {
  const uint32_t number = gm__lookup_find_home(lookup, chunks, address);
  return __builtin_expect(number != 0, 1) ? number : gm__lookup_find_far(lookup, chunks, address);
}

void gm__lookup_remove_slow(gm__lookup *lookup, const gm__chunks *chunks, uint32_t number);

/* Removes a chunk, which must be in the index. */
static inline void gm__lookup_remove(gm__lookup *lookup, const gm__chunks *chunks, uint32_t number) {
  const uint32_t at = gm__lookup_place(lookup, gm__chunk_at(chunks, number)->address);
  const bool alone = lookup->slots[at] == number && lookup->slots[(at + 1) & lookup->mask] < GM__LOOKUP_STEP;
  lookup->room++;
  if (__builtin_expect(!alone || lookup->inside.slots, 0)) {
    gm__lookup_remove_slow(lookup, chunks, number);
    return;
  }
  lookup->slots[at] = 0;
}

#endif

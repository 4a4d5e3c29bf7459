/* Free chunks in bins by size: search for a nearly best fit, cutting and joining. Pure: no lock, no device, no
 * allocation. Inline functions are those that every allocation needs. The caller synchronises. */
#ifndef GM_CORE_ALGO_TLSF_H
#define GM_CORE_ALGO_TLSF_H

#include "core/algo/chunk.h"

enum {
  GM__TLSF_SUB_BITS = 6,
  GM__TLSF_SUB_BINS = 1 << GM__TLSF_SUB_BITS, /* bins from one power of two to the next */
  GM__TLSF_BINS = (33 - GM__TLSF_SUB_BITS) * GM__TLSF_SUB_BINS,
  GM__TLSF_WORDS = (GM__TLSF_BINS + 63) / 64,
  GM__TLSF_SCAN = 8 /* free chunks looked at in the request's own bin: fewer cost packing, more cost time */
};

/* Free chunks that are searched together. All zeros: there are none. */
typedef struct gm__tlsf {
  uint64_t words[GM__TLSF_WORDS];
  uint32_t top; /* bits of the words that are not 0 */
  uint32_t heads[GM__TLSF_BINS];
} gm__tlsf;

/* The bin of a size. Sizes below GM__TLSF_SUB_BINS have a bin each; from there on bins begin at 2^k * (1 + i /
 * GM__TLSF_SUB_BINS). It has no branch, because sizes are hard to predict. */
static inline uint32_t gm__tlsf_bin(uint32_t granules) {
  const uint32_t down = 31u - GM__TLSF_SUB_BITS - (uint32_t)__builtin_clz(granules | GM__TLSF_SUB_BINS);
  return (down << GM__TLSF_SUB_BITS) + (granules >> down);
}

/* Puts the chunk into its bin. (Chunk 0 is written to as a neighbour, and never read.) */
static inline void gm__tlsf_put(gm__chunks *chunks, gm__tlsf *tlsf, uint32_t number) {
  gm__chunk *chunk = gm__chunk_at(chunks, number);
  const uint32_t bin = gm__tlsf_bin(chunk->granules), head = tlsf->heads[bin];
  chunk->bin = (uint16_t)bin;
  chunk->prev = 0;
  chunk->next = head;
  gm__chunk_at(chunks, head)->prev = number;
  tlsf->heads[bin] = number;
  tlsf->words[bin / 64] |= UINT64_C(1) << bin % 64;
  tlsf->top |= UINT32_C(1) << bin / 64;
}

static inline void gm__tlsf_take(gm__chunks *chunks, gm__tlsf *tlsf, uint32_t number) {
  const gm__chunk *chunk = gm__chunk_at(chunks, number);
  const uint32_t bin = chunk->bin, prev = chunk->prev, next = chunk->next;
  gm__chunk_at(chunks, next)->prev = prev;
  gm__chunk_at(chunks, prev)->next = next;
  if (prev) return;
  tlsf->heads[bin] = next;
  if (next) return;
  tlsf->words[bin / 64] &= ~(UINT64_C(1) << bin % 64);
  if (!tlsf->words[bin / 64]) tlsf->top &= ~(UINT32_C(1) << bin / 64);
}

/* A free chunk gets another size. */
static inline __attribute__((always_inline)) void gm__tlsf_resize(gm__chunks *chunks, gm__tlsf *tlsf, uint32_t number,
                                                                  uint32_t granules) {
  gm__chunk *chunk = gm__chunk_at(chunks, number);
  if (gm__tlsf_bin(granules) == chunk->bin) {
    chunk->granules = granules;
    return;
  }
  gm__tlsf_take(chunks, tlsf, number);
  chunk->granules = granules;
  gm__tlsf_put(chunks, tlsf, number);
}

/* The first bin after `bin` that is not empty; GM__TLSF_BINS: there is none. */
static inline uint32_t gm__tlsf_next_after(const gm__tlsf *tlsf, uint32_t bin) {
  uint32_t word = bin / 64;
  uint64_t bits = tlsf->words[word] & (UINT64_MAX << bin % 64 << 1);
  if (!bits) {
    const uint32_t words = tlsf->top & (UINT32_MAX << word << 1);
    if (!words) return GM__TLSF_BINS;
    word = (uint32_t)__builtin_ctz(words);
    bits = tlsf->words[word];
  }
  return word * 64 + (uint32_t)__builtin_ctzll(bits);
}

/* Like gm__tlsf_next_after, from `bin` itself on. */
static inline uint32_t gm__tlsf_next(const gm__tlsf *tlsf, uint32_t bin) {
  return tlsf->heads[bin] ? bin : gm__tlsf_next_after(tlsf, bin);
}

/* The smallest that fits among the first few of a bin; 0: there is none. */
static inline uint32_t gm__tlsf_scan(const gm__chunks *chunks, const gm__tlsf *tlsf, uint32_t bin, uint32_t granules) {
  uint32_t best = 0, number = tlsf->heads[bin];
  uint32_t least = 0 - granules; /* more than any waste; what is too small wastes more than that, in 32 bits */
  for (int i = 0; i < GM__TLSF_SCAN && number; i++) {
    const gm__chunk *chunk = gm__chunk_at(chunks, number);
    const uint32_t waste = chunk->granules - granules;
    if (!waste) return number;
    if (waste < least) {
      least = waste;
      best = number;
    }
    number = chunk->next;
  }
  return best;
}

/* A free chunk of at least so many granules (> 0), close to the smallest. 0: none was found, though there may be one:
 * gm__tlsf_search (tlsf_search.h) knows. */
static inline __attribute__((always_inline)) uint32_t gm__tlsf_find(const gm__chunks *chunks, const gm__tlsf *tlsf,
                                                                    uint32_t granules) {
  uint32_t bin = gm__tlsf_next(tlsf, gm__tlsf_bin(granules));
  if (bin == GM__TLSF_BINS) return 0;
  const uint32_t found = gm__tlsf_scan(chunks, tlsf, bin, granules);
  if (found) return found;
  bin = gm__tlsf_next_after(tlsf, bin);
  return bin == GM__TLSF_BINS ? 0 : gm__tlsf_scan(chunks, tlsf, bin, granules);
}

/* The first granules (less than all) of a free chunk become the chunk `front`, which is AWAY. The rest stays a free
 * chunk. `front` was taken before. */
static inline __attribute__((always_inline)) void gm__tlsf_cut(gm__chunks *chunks, gm__tlsf *tlsf, uint32_t free_chunk,
                                                               uint32_t granules, uint64_t bytes, uint32_t front) {
  gm__chunk *rest = gm__chunk_at(chunks, free_chunk), *chunk = gm__chunk_at(chunks, front);
  chunk->address = rest->address;
  chunk->seq = rest->seq;
  chunk->granules = granules;
  chunk->segment_index = rest->segment_index;
  chunk->cache = rest->cache;
  chunk->state = GM__CHUNK_AWAY;
  gm__chunk_insert(chunks, rest->left, front, free_chunk);
  rest->address += bytes;
  gm__tlsf_resize(chunks, tlsf, free_chunk, rest->granules - granules);
}

/* The bytes to skip at the begin of the chunk for that alignment (a power of two). */
static inline uint64_t gm__chunk_pad(const gm__chunk *chunk, uint64_t align) {
  return (0 - chunk->address) & (align - 1);
}

/* Takes out all free chunks, linked by `next`; 0: there are none. */
uint32_t gm__tlsf_drain(gm__chunks *chunks, gm__tlsf *tlsf);

#endif

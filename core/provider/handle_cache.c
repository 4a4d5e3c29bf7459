#include "core/provider/handle_cache.h"

#include <stdbool.h>
#include <stddef.h>

#include "core/algo/tlsf.h"

/* Invariants. A bin has the handles of the sizes that gm__tlsf_bin puts together, newest first. A bit of `words` is set
 * when its bin has one. Below 2 * GM__TLSF_SUB_BINS pages a bin has one size, so its first handle is the answer. Larger
 * handles are few: their bins are looked at as a whole. */

static uint32_t handle_cache_bin(uint32_t pages) {
  const uint32_t bin = gm__tlsf_bin(pages);
  return bin < GM__HANDLE_CACHE_BINS ? bin : GM__HANDLE_CACHE_BINS - 1;
}

/* The first bin from `bin` on that is not empty; GM__HANDLE_CACHE_BINS: there is none. */
static uint32_t handle_cache_next(const gm__handle_cache *handle_cache, uint32_t bin) {
  for (uint32_t word = bin / 64; word < GM__HANDLE_CACHE_WORDS; word++) {
    const uint64_t behind = word == bin / 64 ? UINT64_MAX << bin % 64 : UINT64_MAX;
    const uint64_t bits = handle_cache->words[word] & behind;
    if (bits) return word * 64 + (uint32_t)__builtin_ctzll(bits);
  }
  return GM__HANDLE_CACHE_BINS;
}

/* The last bin before `bin` that is not empty. */
static uint32_t handle_cache_last(const gm__handle_cache *handle_cache, uint32_t bin) {
  for (uint32_t word = bin / 64 + 1; word-- > 0;) {
    const uint64_t before = word == bin / 64 ? (UINT64_C(1) << bin % 64) - 1 : UINT64_MAX;
    const uint64_t bits = handle_cache->words[word] & before;
    if (bits) return word * 64 + 63 - (uint32_t)__builtin_clzll(bits);
  }
  return GM__HANDLE_CACHE_BINS;
}

/* True when `one` serves so many pages better than `other`. */
static bool handle_cache_is_better(const gm__handle *one, const gm__handle *other, uint32_t most) {
  if (one->pages <= most) return other->pages > most || one->pages > other->pages;
  return other->pages > one->pages;
}

/* Where the list of the bin names its best handle; NULL: none is within reach. */
static uint32_t *handle_cache_best(gm__handle_cache *handle_cache, gm__handle *handles, uint32_t bin, uint32_t most,
                                   uint32_t reach) {
  uint32_t *best = NULL;
  if (bin == GM__HANDLE_CACHE_BINS) return NULL;
  for (uint32_t *at = &handle_cache->heads[bin]; *at; at = &handles[*at].next) {
    const bool reached = handles[*at].pages <= reach;
    if (reached && (!best || handle_cache_is_better(&handles[*at], &handles[*best], most))) best = at;
    if (bin < 2 * GM__TLSF_SUB_BINS) break;
  }
  return best;
}

void gm__handle_cache_put(gm__handle_cache *handle_cache, gm__handle *handles, uint32_t number) {
  const uint32_t bin = handle_cache_bin(handles[number].pages);
  handles[number].next = handle_cache->heads[bin];
  handle_cache->heads[bin] = number;
  handle_cache->words[bin / 64] |= UINT64_C(1) << bin % 64;
}

uint32_t gm__handle_cache_take(gm__handle_cache *handle_cache, gm__handle *handles, uint32_t most, uint32_t reach) {
  uint32_t bin = handle_cache_bin(most);
  uint32_t *best = handle_cache_best(handle_cache, handles, bin, most, reach);
  if (!best || handles[*best].pages > most) {
    uint32_t *less = handle_cache_best(handle_cache, handles, handle_cache_last(handle_cache, bin), most, reach);
    if (less) best = less;
  }
  if (!best) best = handle_cache_best(handle_cache, handles, handle_cache_next(handle_cache, bin + 1), most, reach);
  if (!best) return 0;
  const uint32_t number = *best;
  bin = handle_cache_bin(handles[number].pages);
  *best = handles[number].next;
  if (!handle_cache->heads[bin]) handle_cache->words[bin / 64] &= ~(UINT64_C(1) << bin % 64);
  return number;
}

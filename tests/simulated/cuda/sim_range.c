#include "tests/simulated/cuda/sim_range.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/simulated/cuda/sim_context.h"
#include "tests/simulated/cuda/sim_queue.h"
#include "tests/simulated/cuda/sim_span.h"

enum { RANGE_ALIGNMENT = 512 };

static sim_range **ranges; /* in order of address */
static size_t range_count, range_capacity;
static uint64_t range_next_id = 1;
static sim_span_list range_claims;

/* The size is what the system lends without access: a terabyte, less under tools that watch memory. */
static void range_reserve(void) {
  for (uint64_t bytes = (uint64_t)1 << 40; bytes >= (uint64_t)1 << 34 && !range_claims.end; bytes >>= 1) {
    void *at = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED) continue;
    range_claims.begin = (uint64_t)(uintptr_t)at;
    range_claims.end = range_claims.begin + bytes;
  }
}

bool sim_range_claim(uint64_t bytes, uint64_t alignment, uint64_t *at_out) {
  if (!range_claims.end) range_reserve();
  if (bytes > range_claims.end - range_claims.begin) return false;
  return sim_span_take(&range_claims, bytes, alignment, at_out);
}

bool sim_range_claim_at(uint64_t at, uint64_t bytes) {
  if (!range_claims.end) range_reserve();
  return sim_span_take_at(&range_claims, at, bytes);
}

void sim_range_unclaim(uint64_t at) { sim_span_give(&range_claims, at); }

bool sim_range_is_device(uint64_t address) {
  return range_claims.end && address >= range_claims.begin && address < range_claims.end;
}

static size_t range_index(uint64_t address) {
  size_t low = 0, high = range_count;
  while (low < high) {
    size_t middle = (low + high) / 2;
    if (ranges[middle]->at + ranges[middle]->bytes > address)
      high = middle;
    else
      low = middle + 1;
  }
  return low;
}

sim_range *sim_range_after(uint64_t address) {
  size_t index = range_index(address);
  return index < range_count ? ranges[index] : NULL;
}

sim_range *sim_range_find(uint64_t address) {
  sim_range *range = sim_range_after(address);
  return range && range->at <= address ? range : NULL;
}

bool sim_range_is_free(uint64_t at, uint64_t bytes) {
  const sim_range *range = sim_range_after(at);
  return !range || range->at >= at + bytes;
}

static bool range_grow(void) {
  if (range_count < range_capacity) return true;
  size_t capacity = range_capacity ? range_capacity * 2 : 64;
  sim_range **grown = realloc(ranges, capacity * sizeof *grown);
  if (!grown) return false;
  ranges = grown;
  range_capacity = capacity;
  return true;
}

sim_range *sim_range_add(const sim_range *like) {
  sim_range *range = range_grow() ? malloc(sizeof *range) : NULL;
  if (!range) return NULL;
  *range = *like;
  range->id = range_next_id++;
  size_t index = range_index(range->at);
  memmove(ranges + index + 1, ranges + index, (range_count - index) * sizeof *ranges);
  ranges[index] = range;
  range_count++;
  return range;
}

void sim_range_remove(sim_range *range) {
  size_t index = range_index(range->at);
  range_count--;
  memmove(ranges + index, ranges + index + 1, (range_count - index) * sizeof *ranges);
  if (range->phys) sim_phys_release(range->phys);
  free(range);
}

CUresult sim_range_create(sim_kind kind, uint64_t bytes, int device, CUcontext context, sim_range **out) {
  if (bytes > UINT64_MAX - RANGE_ALIGNMENT) return CUDA_ERROR_OUT_OF_MEMORY;
  uint64_t rounded = (bytes + RANGE_ALIGNMENT - 1) / RANGE_ALIGNMENT * RANGE_ALIGNMENT;
  sim_range like = {.bytes = bytes, .kind = kind, .device = device, .context = context};
  CUresult result = sim_phys_create(device, rounded, false, &like.phys);
  if (result) return result;
  if (sim_range_claim(rounded, RANGE_ALIGNMENT, &like.at)) {
    *out = sim_range_add(&like);
    if (*out) return CUDA_SUCCESS;
    sim_range_unclaim(like.at);
  }
  sim_phys_release(like.phys);
  return CUDA_ERROR_OUT_OF_MEMORY;
}

void sim_range_destroy(sim_range *range) {
  if (range->kind != SIM_OPENED) sim_phys_poison(range->phys, 0xdd);
  sim_range_unclaim(range->at);
  sim_range_remove(range);
}

static void range_drop(sim_range *range) {
  void *host = (void *)(uintptr_t)range->at;
  bool owned = range->kind == SIM_HOST || range->kind == SIM_SHARED;
  uint64_t bytes = range->bytes;
  if (range->phys) {
    sim_range_destroy(range);
    return;
  }
  sim_range_remove(range);
  if (owned) munmap(host, bytes);
}

void sim_range_drop_context(CUcontext context) {
  for (size_t i = range_count; i-- > 0;)
    if (ranges[i]->context == context) range_drop(ranges[i]);
}

uint64_t sim_range_count(sim_kind kind) {
  uint64_t count = 0;
  for (size_t i = 0; i < range_count; i++) count += ranges[i]->kind == kind && !ranges[i]->freed;
  return count;
}

uint64_t sim_range_bytes(sim_kind kind) {
  uint64_t bytes = 0;
  for (size_t i = 0; i < range_count; i++)
    if (ranges[i]->kind == kind && !ranges[i]->freed) bytes += ranges[i]->bytes;
  return bytes;
}

bool sim_range_ok(uint64_t at, uint64_t bytes) {
  if (!at || bytes > UINT64_MAX - at) return false;
  if (!sim_range_is_device(at)) return true;
  for (uint64_t end = at + bytes; at < end;) {
    const sim_range *range = sim_range_find(at);
    if (!range) return false;
    at = range->at + range->bytes;
  }
  return true;
}

bool sim_range_is_pinned(uint64_t at, uint64_t bytes) {
  const sim_range *range = sim_range_find(at);
  return range && bytes <= range->at + range->bytes - at;
}

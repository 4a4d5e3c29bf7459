/* A heap hands out blocks of one device in stream order. It knows no names, guards or quotas. It decides in which order
 * a request is tried (heap_alloc.c). It alone trims (trim.c). It finds live blocks (live.h). */
#ifndef GM_CORE_HEAP_HEAP_H
#define GM_CORE_HEAP_HEAP_H

#include "core/arena/arena_set.h"
#include "core/bucket/dedicated.h"
#include "core/device/reclaimer.h"
#include "core/heap/keep.h"

typedef struct gm__heap {
  gm_device *device;
  gm_strategy strategy; /* never AUTO */
  bool checked;         /* a free compares the whole gm_block */
  bool guarded;         /* a guard wraps each block */
  uint64_t id;          /* the pool's */
  gm_request wishes;    /* what all its requests ask for: must_be, usage, memory_types, require, prefer */
  const struct gm__placement *placement;
  gm__provider provider;
  gm__observers observers;
  gm__arena_set arenas;
  gm__dedicated dedicated;
  gm__keep keep;
  bool (*reap)(void *guard); /* gives the heap the freed blocks that a guard holds back: true: it got any */
  void *guard;
  gm__reclaimer reclaimer; /* in the device's list, unless the pool has an upstream */
} gm__heap;

/* Bytes that the pool keeps for reuse now. */
static inline uint64_t gm__heap_pooled(const gm__heap *heap) { return gm__arenas_pooled(&heap->arenas); }

/* The bound on reserved bytes now: the cap, or less where the device's figures say so. UINT64_MAX: none. The call reads
 * those figures, so it is not for the hot path. */
uint64_t gm__heap_limit(gm__heap *heap);

/* The bytes that the pool could have at most now: its limit, or where gm has none, what the device has free.
 * UINT64_MAX: that is not known. It costs as gm__heap_limit does. */
uint64_t gm__heap_most(gm__heap *heap);

/* The number of live blocks. Blocks that a guard holds back are among them. */
uint64_t gm__heap_live(const gm__heap *heap);

/* Whether memory is on the device, or page-locked host memory beside it. */
gm_location gm__heap_location(const gm__heap *heap, const gm_memory *memory);

/* The pool's statistics now. */
gm_stats gm__heap_stats(gm__heap *heap);

/* ---- blocks ---- */

/* Why a request, or a part of one, was not served. */
typedef struct gm__refusal {
  gm_status status; /* GM_OK: the answer says all, and no failure is to be noted */
  gm_error failure; /* filled in by the code that refused */
} gm__refusal;

/* Nothing is refused yet. A backend may fail without a word, so both strings are empty, not undefined. */
static inline void gm__refusal_begin(gm__refusal *why) {
  why->status = why->failure.status = GM_OK;
  why->failure.native_code = 0;
  why->failure.op[0] = why->failure.message[0] = 0;
}

/* Hands out a block for the request. Without a block *why says the reason. Its status is not GM_OK where the caller is
 * to note the failure (gm__heap_refuse). REQUIRES: no guard. */
gm_acquire gm__heap_alloc(gm__heap *heap, const gm__want *want, gm_block *out, gm__refusal *why);

/* Like gm__heap_alloc, but *grant is memory in hand, zeroed if asked. No other thread can name it before
 * gm__heap_hand_out. `grant->done`: it is the block *out already, which never happens in a guarded heap. */
gm_acquire gm__heap_grant(gm__heap *heap, const gm__want *want, gm__grant *grant, gm_block *out, gm__refusal *why);

/* Makes the caller's block of memory in hand. `fresh`: the driver has just given the memory. */
void gm__heap_hand_out(gm__heap *heap, const gm__want *want, const gm__grant *grant, bool fresh, gm_block *out);

/* Takes memory in hand back. The request's stream may have been given work on it, so its order holds. */
void gm__heap_undo(gm__heap *heap, const gm__want *want, const gm__grant *grant);

/* Notes the failure of a request as final, and counts it. Returns gm_alloc's answer for it. */
gm_acquire gm__heap_refuse(gm__heap *heap, const gm__want *want, gm__refusal *why);
gm_acquire gm__refusal_answer(gm_status status);

/* Takes the block back in the order of the stream. After BUSY, INVALID_ARGUMENT or OUT_OF_HOST_MEMORY nothing has
 * changed. */
gm_status gm__heap_free(gm__heap *heap, const gm_block *block, gm_stream *stream);

/* Frees the block that begins at the address and has at least so many bytes. REQUIRES: no guard. */
gm_status gm__heap_free_at(gm__heap *heap, uint64_t address, uint64_t bytes, gm_stream *stream);

/* Takes the block from its owner; nobody gets it until the pool ends. */
void gm__heap_quarantine(gm__heap *heap, const gm_block *block);

/* ---- giving back ---- */

/* Gives idle memory back to the driver until at most `keep_bytes` are pooled: dedicated blocks (gm__dedicated_trim),
 * then segments and pages, oldest first. Only memory goes that was freed last at or before `freed_by` on the device's
 * clock (gm__freed_by). Returns the bytes given back. */
uint64_t gm__heap_trim(gm__heap *heap, uint64_t keep_bytes, uint64_t freed_by);

/* Like gm__heap_trim, for memory that is known to be done with now: it waits for no stream. Without `submit` it also
 * records no points. */
void gm__heap_give_done(gm__heap *heap, uint64_t keep_bytes, bool submit);

/* Asks the streams which pooled memory is idle, and gives nothing back. Returns the bytes that a trim could give back
 * now. */
uint64_t gm__heap_collect(gm__heap *heap);

/* Waits a millisecond at most until the driver says that idle streams are idle. Some drivers answer a point only after
 * a round trip. REQUIRES: no lock. */
void gm__heap_await(gm__heap *heap);

#endif

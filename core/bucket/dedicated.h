/* Dedicated blocks: each is a driver allocation of its own. Pooled ones are kept by size class (bucket.h). Wrapped,
 * imported and managed memory is dedicated, too, and never pooled. "The lock" is the provider lock. */
#ifndef GM_CORE_BUCKET_DEDICATED_H
#define GM_CORE_BUCKET_DEDICATED_H

#include "core/bucket/bucket.h"
#include "core/provider/grant.h"
#include "core/provider/provider.h"
#include "core/track/observers.h"

enum { GM__DEDICATED_LOOKS = 64 }; /* blocks of several streams that a request looks at before it gives up */

typedef struct gm__dedicated {
  gm__provider *provider;
  gm__observers *observers;
  bool checked; /* a free compares all members of its block */
  bool guarded; /* a guard follows each block: nothing is handed out inside the lock */
  bool bounded; /* buckets are the pool's strategy: a free gives back what is above the bounds */
  _Atomic uint64_t most_idle, most_of_stream, most_of_pool; /* the bounds, in blocks */

  /* REQUIRES: provider lock, for all that follows. */
  gm__buckets buckets;
  gm__allocation_list
      multi_stream; /* blocks outside the buckets that other streams than their owner's may use: GM__BY_USE */
  gm__order order;
  uint64_t live;                       /* blocks that are out */
  uint32_t events_below, quotas_below; /* the recorder and the quotas know of records with lower numbers so far */
} gm__dedicated;

/* False without host memory. `bits`: of gm__buckets_init. `most`: blocks kept in one bucket. */
bool gm__dedicated_init(gm__dedicated *dedicated, gm__provider *provider, gm__observers *observers, uint32_t bits,
                        uint32_t most);
/* When the pool ends: releases all points and tables. The provider releases the memory. */
void gm__dedicated_clear(gm__dedicated *dedicated, gm_close_mode mode);

/* ---- allocating ---- */

/* Finds a pooled block for the request. It is AWAY, or it is handed out already (grant->done, *block filled) where
 * nothing is left to do outside the lock. *answer says what the caller must do first. `others`: memory that other
 * streams use serves, too, with a wait. */
bool gm__dedicated_alloc_pooled(gm__dedicated *dedicated, const gm__want *want, bool others, gm__grant *grant,
                                gm_acquire *answer, gm_block *block);

/* Takes new memory for the request, AWAY: as much as its class, or exactly its bytes where that is too much. The
 * provider's answers. */
gm_status gm__dedicated_alloc_fresh(gm__dedicated *dedicated, const gm__want *want, gm__grant *grant,
                                    gm_acquire *answer, gm_error *err);

/* The caller gets the grant as a block. */
void gm__dedicated_hand_out(gm__dedicated *dedicated, const gm__want *want, const gm__grant *grant, bool fresh,
                            gm_block *out);

/* A grant that was never handed out goes back, in the order of the stream that may have got work on it. */
void gm__dedicated_undo(gm__dedicated *dedicated, const gm__grant *grant, gm_stream *stream);

void gm__dedicated_describe(gm__grant *grant, gm__allocation *allocation);

/* ---- freeing ---- */

/* gm_free of a dedicated block. *out_track_id: what the tracker must forget; 0: nothing. */
gm_status gm__dedicated_free(gm__dedicated *dedicated, const gm_block *block, gm_stream *stream,
                             uint64_t *out_track_id);

/* gm_free_ptr of the dedicated block that begins at the address and has at least `bytes`. */
gm_status gm__dedicated_free_at(gm__dedicated *dedicated, uint64_t address, uint64_t bytes, gm_stream *stream,
                                uint64_t *out_track_id);

/* Takes a block from its owner for good: nobody gets its memory again. */
void gm__dedicated_quarantine(gm__dedicated *dedicated, const gm_block *block);

/* Gives idle blocks back until at most `keep_bytes` are pooled: the smallest one that is enough by itself. Where none
 * is, the oldest go until one is enough for the rest. `pooled` tells how many bytes the whole pool keeps. It takes only
 * blocks that were free at that time already. */
void gm__dedicated_trim(gm__dedicated *dedicated, uint64_t (*pooled)(void *user), void *user, uint64_t keep_bytes,
                        uint64_t freed_by, gm__leaving *leaving);

/* Gives idle blocks back, oldest first, until the pool has at most `reserved` bytes. It takes them from classes that
 * served fewer requests since the last sweep than they have blocks. */
void gm__dedicated_sweep(gm__dedicated *dedicated, uint64_t reserved, gm__leaving *leaving);

/* ---- REQUIRES: provider lock ---- */

/* The allocation becomes pooled, after work of the stream in `slot`. */
void gm__dedicated_keep(gm__dedicated *dedicated, gm__allocation *allocation, int slot);

/* Takes a pooled allocation out of its bucket. */
void gm__dedicated_pull(gm__dedicated *dedicated, gm__allocation *allocation);

/* Puts an allocation on the list of those that leave. gm__dedicated_detach: a pooled and idle one. gm__dedicated_leave:
 * one that was never pooled. */
void gm__dedicated_detach(gm__dedicated *dedicated, gm__leaving *leaving, gm__allocation *allocation);
void gm__dedicated_leave(gm__dedicated *dedicated, gm__leaving *leaving, gm__allocation *allocation);

/* Asks which streams are done with a pooled allocation. True: it is idle. */
bool gm__dedicated_settle(gm__dedicated *dedicated, gm__allocation *allocation);

/* Settles the blocks of a bucket as far as their streams are known to be. It looks at one block of a stream's list that
 * is not done, and at GM__DEDICATED_LOOKS of those that several streams may use. */
void gm__dedicated_settle_bucket(gm__dedicated *dedicated, const gm__bucket *bucket);

/* Asks the engine's points with which free blocks wait. It looks at allocations until there is no such point, and
 * leaves the lock after each piece. */
void gm__dedicated_settle_given(gm__dedicated *dedicated);

/* Notes that an allocation which is not pooled has a last use. A stream that closes must find it. */
void gm__dedicated_note_use(gm__dedicated *dedicated, gm__allocation *allocation);

/* The slot's stream has done all its work, is not pinned, and closes: no block names it any more, and the slot is free.
 * It leaves the lock after each piece. False: a thread came to use the stream outside the lock. */
bool gm__dedicated_forget(gm__dedicated *dedicated, int slot);

/* Tells the pool's observers that the block is out, or that its owner freed it in the order of the stream. `counted`:
 * the quota has its bytes already. */
void gm__dedicated_observe_enter(const gm__dedicated *dedicated, const gm__allocation *allocation, bool counted);
void gm__dedicated_observe_leave(const gm__dedicated *dedicated, const gm__allocation *allocation,
                                 const gm_stream *stream);

/* Writes a block that is out to a recording that begins. */
void gm__dedicated_record(const gm__dedicated *dedicated, const gm__allocation *allocation);

/* The event buffer for the allocation; NULL: the pool is not recorded, or its memory is only lent. */
gm__event_buffer *gm__dedicated_events(const gm__dedicated *dedicated, const gm__allocation *allocation);

#endif

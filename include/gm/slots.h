/* Slots: equal places in device memory for things that rotate, such as the experts of a mixture or LoRA adapters. A set
 * has one block of a pool, and slot i begins i * stride bytes into it. Neither moves while the set lives, so addresses
 * stay valid in captured graphs.
 *
 * gm_slots_get finds what a key names, or has the program's loader put it into a slot. One thread loads, and others
 * that want the same key wait for it. A lease says that somebody uses a slot. gm evicts nothing that is leased. A slot
 * is used for another key only after the points have passed at which its leases were given back.
 *
 * Every call is thread-safe, but for gm_slots_destroy. Loaders run under no lock, and those of different keys at once.
 */
#ifndef GM_SLOTS_H
#define GM_SLOTS_H

#include <stddef.h>
#include <stdint.h>

#include "gm/pool.h"
#include "gm/stream.h"

GM_BEGIN_DECLS

enum {
  GM_SLOTS_MOST = 1 << 20,  /* slots of a set */
  GM_SLOT_KEY_MOST = 4096,  /* bytes of a key */
  GM_SLOT_POINTS_MOST = 8,  /* points of a slot that have not passed */
  GM_SLOT_STRIDE_UNIT = 256 /* bytes: strides are whole multiples */
};

/* Flags of a set. */
enum { GM_SLOTS_LRU = 1 /* evicts what was used longest ago. Without it: S3-FIFO, as GM_CACHE_S3FIFO of gm/cache.h */ };
/* Flags of gm_slots_get. */
enum {
  GM_SLOTS_NO_LOAD = 1, /* NOT_FOUND where the key is not there, also while another thread loads it */
  GM_SLOTS_NO_WAIT = 2  /* OVER_LIMIT where slots could be had by waiting for points, or for another thread's choice */
};

typedef struct gm_slots gm_slots; /* a set of slots; it keeps its pool and its context from being destroyed */

/* Where a slot is. Borrowed: the block is the set's. Never grows. */
typedef struct gm_slot {
  uint64_t lease;  /* gives the lease back; 0 in a loader's call */
  gm_block block;  /* of the whole set */
  uint64_t offset; /* bytes from the block's begin: index * stride */
  uint64_t bytes;  /* slot_bytes of the set */
  uint32_t index;
  uint32_t reserved; /* 0 */
} gm_slot;

/* Puts what `key` names into a slot. The call may return before the contents are there: then *out_ready is a point of
 * the pool's device after which they are. *out_ready is zero at first, and the set releases it. After a failure no work
 * on the slot is left but that before *out_ready. The loader fills `err` in, or leaves it. It may call gm, this set
 * included, but for gm_slots_destroy. It must not throw. */
typedef gm_status (*gm_slots_load)(void *user, const void *key, size_t key_bytes, const gm_slot *slot,
                                   gm_point *out_ready, gm_error *err);

/* Zero-initialised with struct_size, slots, slot_bytes and load set, it is a set in S3-FIFO's order. */
typedef struct gm_slots_params {
  uint32_t struct_size;
  uint32_t slots;            /* 1 to GM_SLOTS_MOST */
  uint64_t slot_bytes;       /* bytes of a slot. The stride is that, rounded up to GM_SLOT_STRIDE_UNIT */
  const gm_request *request; /* how the pool is asked, without `bytes` and `stream`; copied. NULL: no wishes */
  gm_slots_load load;
  void *user;     /* handed to `load`; borrowed until gm_slots_destroy returns */
  uint32_t flags; /* GM_SLOTS_LRU */
  uint32_t reserved;
} gm_slots_params;

/* Figures of a set. Counts are since it was made, unless they say "now". */
typedef struct gm_slots_stats {
  uint32_t struct_size;
  uint32_t slots;
  uint64_t stride; /* bytes from one slot to the next */
  uint64_t bytes;  /* of device memory, now */
  uint32_t there;  /* slots whose contents a key finds, now */
  uint32_t leased; /* slots with a lease, now; those that are being loaded included */
  uint64_t leases; /* now; those that wait for a load included */
  uint64_t hits;   /* gets that found the key in a slot */
  uint64_t waits;  /* gets that waited for another thread's load */
  uint64_t loads;  /* calls of the loader */
  uint64_t failed; /* of those: that failed */
  uint64_t evictions;
  uint64_t late;    /* gets that waited on the host for points, to have a slot */
  uint64_t refused; /* gets that answered OVER_LIMIT */
} gm_slots_stats;

/* Makes a set, and gets its memory from `pool`. The caller destroys *out. A slot takes 240 bytes of host memory,
 * and a key that is there 120 and its own. Errors: INVALID_ARGUMENT: also for an unknown flag, for a request with
 * bytes, a stream or GM_ALLOW_SPANS, and for more bytes than 64 bits count. OUT_OF_DEVICE_MEMORY, OVER_LIMIT, DRIVER:
 * what the pool said. OUT_OF_HOST_MEMORY, FORKED. */
GM_API gm_status gm_slots_create(gm_pool *pool, const gm_slots_params *params, gm_slots **out, gm_error *err);

/* Ends a set: waits for the points of its slots, and gives the memory back. NULL is GM_OK. Meanwhile no other thread
 * may use it. BUSY: leases are open, and nothing has changed; the message tells how many. BUSY, too: the block is
 * mapped. In a forked child the call gives back gm's host memory, and is GM_OK. INVALID_ARGUMENT: debug builds know
 * that it was destroyed. */
GM_API gm_status gm_slots_destroy(gm_slots *slots, gm_error *err);

/* Leases the slot that has what a key names; the caller gives out->lease back. A key is 1 to GM_SLOT_KEY_MOST plain
 * bytes. Where the key is not there the calling thread evicts another, if need be, and calls the loader. If another
 * thread loads the key, the call waits for that. Later work of `stream` sees the contents. NULL: the host waits for
 * them.
 *
 * A slot is free for another key if nobody leases it and its points have passed. Where only points stand in the way,
 * the call waits on the host for those of one slot.
 *
 * Errors: OVER_LIMIT: all slots are leased, an ordinary answer; the message tells how many. A loader's failure is the
 * answer to all that waited for it, too; the key is not there then, and the slot is free. BUSY: the call comes from a
 * loader of this set, and the key is being loaded. Such a wait may never end. NOT_FOUND: GM_SLOTS_NO_LOAD.
 * INVALID_ARGUMENT: also an unknown flag, a stream of another device than the pool, and a loader's point of one.
 * OUT_OF_HOST_MEMORY, FORKED, and errors of the driver at a wait: nothing is leased then. */
GM_API gm_status gm_slots_get(gm_slots *slots, const void *key, size_t key_bytes, uint32_t flags, gm_stream *stream,
                              gm_slot *out, gm_error *err);

/* Gives a lease back. `point` comes after the work that reads the slot: gm_stream_record makes one. NULL, or a zero
 * point: the work has passed. The point stays the caller's, and may be released at once. After a device's loss all
 * points have passed. Where GM_SLOT_POINTS_MOST points of the slot have not passed, the call waits on the host for this
 * one.
 *
 * INVALID_ARGUMENT: no such lease is open, as at a double release, or the point is of another device. Leases of sets
 * begin with different numbers: that of another set is refused, as a rule. NOT_SUPPORTED: the backend cannot keep a
 * point. Errors of the driver at a wait. After all of these the lease is open. FORKED. */
GM_API gm_status gm_slots_release(gm_slots *slots, uint64_t lease, const gm_point *point, gm_error *err);

/* Takes a key away, as after an adapter was changed: the next get loads it anew. Those that lease its slot keep that as
 * it is. NOT_FOUND: there is no such key. INVALID_ARGUMENT, FORKED. */
GM_API gm_status gm_slots_drop(gm_slots *slots, const void *key, size_t key_bytes, gm_error *err);

/* Fills `out` with the figures of a set. The caller sets out->struct_size. INVALID_ARGUMENT, FORKED. */
GM_API gm_status gm_slots_get_stats(gm_slots *slots, gm_slots_stats *out, gm_error *err);

GM_END_DECLS

#endif

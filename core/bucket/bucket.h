/* Buckets: pooled blocks by size class. Each block is a driver allocation of its own. Classes are powers of two, or
 * there are 2^bits classes from one power of two to the next. REQUIRES: provider lock, for all of it. */
#ifndef GM_CORE_BUCKET_BUCKET_H
#define GM_CORE_BUCKET_BUCKET_H

#include "core/order/order.h"
#include "core/provider/allocation.h"

enum { GM__BUCKET_SEVERAL = GM__ORDER_SLOTS, GM__FIXED_SIZES = 16 };

/* The sizes of a pool of fixed sizes, which are its classes. One more class is for what is larger. */
typedef struct gm__fixed_sizes {
  uint32_t count;                   /* 0: the classes go by powers of two */
  bool takes_larger, passes_larger; /* GM_POOL_TAKE_LARGER, GM_POOL_PASS_LARGER */
  uint64_t bytes[GM__FIXED_SIZES];  /* ascending, in whole granules of the arenas */
  uint64_t taken;                   /* all bytes of the list: the cap where none is asked for */
} gm__fixed_sizes;

typedef struct gm__bucket {
  gm__allocation_list idle;     /* blocks that no stream is known to use; settled last first */
  gm__allocation_list several;  /* blocks that several streams may use; freed last first */
  gm__allocation_list *streams; /* by slot: blocks that this stream alone may use; freed last first; NULL: none yet */
  uint64_t busy;                /* bits of the slots whose list is not empty */
  uint32_t count;               /* blocks in all lists */
  uint32_t served;              /* requests that it served since the last sweep */
} gm__bucket;

typedef struct gm__buckets {
  const gm_services *services;
  gm__bucket *classes;            /* by size class */
  uint32_t class_count, bits;     /* bits: from one power of two to the next there are 1 << bits classes */
  gm__fixed_sizes fixed;          /* set before gm__buckets_init */
  gm__allocation_list ages;       /* all of them, newest first */
  uint32_t idle;                  /* blocks that no stream is known to use: the pool's cache */
  uint32_t busy[GM__ORDER_SLOTS]; /* by slot, blocks that this stream alone may use: the stream's cache */
  uint32_t most;                  /* blocks kept in one bucket; more stay only while streams use them */
} gm__buckets;

/* False without host memory. `bits`: at most GM__SIZE_CLASS_BITS_MAX. */
bool gm__buckets_init(gm__buckets *buckets, const gm_services *services, uint32_t bits);
void gm__buckets_clear(gm__buckets *buckets);

/* The class of requests for `bytes`, which are whole units of the device's alignment. */
uint32_t gm__bucket_class(const gm__buckets *buckets, uint64_t bytes);

/* True when the class is for requests beyond all fixed sizes: its blocks are not kept. */
static inline bool gm__bucket_is_beyond(const gm__buckets *buckets, uint32_t size_class) {
  return buckets->fixed.count && size_class == buckets->fixed.count;
}

/* The class behind the last one whose blocks serve a request of `size_class`: they have less than twice its size. In a
 * pool of fixed sizes only its own class does. */
uint32_t gm__bucket_class_end(const gm__buckets *buckets, uint32_t size_class);

/* The bytes that the pool takes for `bytes` of that class: those of the class in whole units. If those are more than
 * `largest` (the driver's largest allocation; 0: not known), `bytes` themselves. */
uint64_t gm__bucket_round(const gm__buckets *buckets, uint32_t size_class, uint64_t bytes, uint64_t unit,
                          uint64_t largest);

/* Puts a block in, or takes it out. Its last use says which list it enters. Without host memory for the lists of
 * streams, that is the list of several. */
void gm__bucket_put(gm__buckets *buckets, gm__allocation *allocation);
void gm__bucket_remove(gm__buckets *buckets, gm__allocation *allocation);

/* The block becomes idle: no stream uses it any more. */
void gm__bucket_settle(gm__buckets *buckets, gm__allocation *allocation);

#endif

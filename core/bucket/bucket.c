#include "core/bucket/bucket.h"

#include "core/algo/size_class.h"
#include "core/base/alloc.h"
#include "core/base/saturate.h"

/* Invariants: a pooled allocation is in exactly one list of its class and in the list of ages. Its class is that of the
 * request it was first taken for. So a block that is smaller than its class (because a limit was near) is found again
 * by requests of its size. A stream's list has the blocks of which that stream alone is the last use, in the order of
 * frees. So a stream that is done with a block of its list is done with the older ones. */

bool gm__buckets_init(gm__buckets *buckets, const gm_services *services, uint32_t bits) {
  buckets->services = services;
  buckets->bits = bits;
  buckets->class_count = buckets->fixed.count ? buckets->fixed.count + 1 : gm__size_class_count(bits);
  buckets->classes = gm__alloc_array(services, buckets->class_count, sizeof *buckets->classes);
  return buckets->classes != NULL;
}

void gm__buckets_clear(gm__buckets *buckets) {
  for (uint32_t i = 0; buckets->classes && i < buckets->class_count; i++) {
    gm__release(buckets->services, buckets->classes[i].streams, GM__ORDER_SLOTS * sizeof(gm__allocation_list));
  }
  gm__release(buckets->services, buckets->classes, buckets->class_count * sizeof *buckets->classes);
}

static uint32_t bucket_fixed_class(const gm__fixed_sizes *fixed, uint64_t bytes) {
  uint32_t class = 0;
  while (class < fixed->count && fixed->bytes[class] < bytes) class ++;
  return class;
}

uint32_t gm__bucket_class(const gm__buckets *buckets, uint64_t bytes) {
  if (buckets->fixed.count) return bucket_fixed_class(&buckets->fixed, bytes);
  return gm__size_class_ceil(bytes, buckets->bits);
}

uint32_t gm__bucket_class_end(const gm__buckets *buckets, uint32_t size_class) {
  if (buckets->fixed.count) return size_class + 1;
  const uint32_t end = size_class + (UINT32_C(1) << buckets->bits);
  return end < buckets->class_count ? end : buckets->class_count;
}

uint64_t gm__bucket_round(const gm__buckets *buckets, uint32_t size_class, uint64_t bytes, uint64_t unit,
                          uint64_t largest) {
  if (buckets->fixed.count) return size_class < buckets->fixed.count ? buckets->fixed.bytes[size_class] : bytes;
  const uint64_t rounded = gm__round_up(gm__size_class_bytes(size_class, buckets->bits), unit);
  return largest && rounded > largest ? bytes : rounded;
}

/* True when the bucket has a list for each stream. */
static bool bucket_has_streams(const gm__buckets *buckets, gm__bucket *bucket) {
  if (!bucket->streams) {
    bucket->streams = gm__alloc_array(buckets->services, GM__ORDER_SLOTS, sizeof *bucket->streams);
  }
  return bucket->streams != NULL;
}

static void bucket_enter_idle(gm__buckets *buckets, gm__bucket *bucket, gm__allocation *allocation) {
  allocation->idle = true;
  buckets->idle++;
  gm__allocation_list_push(&bucket->idle, GM__BY_USE, allocation);
}

static void bucket_enter_busy(gm__buckets *buckets, gm__bucket *bucket, gm__allocation *allocation, uint64_t streams) {
  const bool several = streams & (streams - 1) || !bucket_has_streams(buckets, bucket);
  const int slot = several ? GM__BUCKET_SEVERAL : gm__order_lowest(streams);
  allocation->busy_of = (uint8_t)slot;
  if (several) {
    gm__allocation_list_push(&bucket->several, GM__BY_USE, allocation);
    return;
  }
  gm__allocation_list_push(&bucket->streams[slot], GM__BY_USE, allocation);
  buckets->busy[slot]++;
  bucket->busy |= streams;
}

static void bucket_leave(gm__buckets *buckets, gm__bucket *bucket, gm__allocation *allocation) {
  const int slot = allocation->busy_of;
  if (allocation->idle) {
    gm__allocation_list_remove(&bucket->idle, GM__BY_USE, allocation);
    buckets->idle--;
    allocation->idle = false;
  } else if (slot == GM__BUCKET_SEVERAL) {
    gm__allocation_list_remove(&bucket->several, GM__BY_USE, allocation);
  } else {
    gm__allocation_list_remove(&bucket->streams[slot], GM__BY_USE, allocation);
    buckets->busy[slot]--;
    if (!bucket->streams[slot].first) bucket->busy &= ~gm__order_bit(slot);
  }
}

void gm__bucket_put(gm__buckets *buckets, gm__allocation *allocation) {
  gm__bucket *bucket = &buckets->classes[allocation->size_class];
  const uint64_t streams = allocation->cold.use.streams;
  allocation->state = GM__ALLOCATION_POOLED;
  if (streams) {
    bucket_enter_busy(buckets, bucket, allocation, streams);
  } else {
    bucket_enter_idle(buckets, bucket, allocation);
  }
  bucket->count++;
  gm__allocation_list_push(&buckets->ages, GM__BY_AGE, allocation);
}

void gm__bucket_remove(gm__buckets *buckets, gm__allocation *allocation) {
  gm__bucket *bucket = &buckets->classes[allocation->size_class];
  allocation->state = GM__ALLOCATION_AWAY;
  bucket_leave(buckets, bucket, allocation);
  bucket->count--;
  gm__allocation_list_remove(&buckets->ages, GM__BY_AGE, allocation);
}

void gm__bucket_settle(gm__buckets *buckets, gm__allocation *allocation) {
  gm__bucket *bucket = &buckets->classes[allocation->size_class];
  bucket_leave(buckets, bucket, allocation);
  bucket_enter_idle(buckets, bucket, allocation);
}

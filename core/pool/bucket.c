#include "core/pool/bucket.h"

#include "core/algo/size_class.h"
#include "core/base/alloc.h"
#include "core/base/saturate.h"

/* Invariants: a pooled node is in exactly one class list and in the list of ages; its class is that of the request it
 * was first taken for, so a block that is smaller than its class (because a limit was near) is found again by
 * requests of its size. Lists are newest first: what was freed last is warm, what is oldest is given back first.
 *
 * Of its class it is in the list of idle ones, or in a ring of nodes whose frees named the same streams, in the order
 * of frees. A stream that is done with one of a ring is done with the older ones: so the newest says whether all of a
 * ring will do, the oldest whether any will, and what is done leaves from the oldest on. Two rings may have the same
 * streams. */

enum { BUCKET_LOOKS = GM__ORDER_SLOTS }; /* rings looked at by a free */

bool gm__buckets_init(gm__buckets *buckets, const gm_services *services, uint32_t bits) {
  buckets->bits = bits;
  buckets->class_count = gm__size_class_count(bits);
  buckets->classes = gm__alloc_array(services, buckets->class_count, sizeof *buckets->classes);
  return buckets->classes != NULL;
}

void gm__buckets_clear(gm__buckets *buckets, const gm_services *services) {
  gm__release(services, buckets->classes, buckets->class_count * sizeof *buckets->classes);
}

uint32_t gm__bucket_class(const gm__buckets *buckets, uint64_t bytes) {
  return gm__size_class_ceil(bytes, buckets->bits);
}

uint32_t gm__bucket_class_end(const gm__buckets *buckets, uint32_t size_class) {
  const uint32_t end = size_class + (UINT32_C(1) << buckets->bits);
  return end < buckets->class_count ? end : buckets->class_count;
}

uint64_t gm__bucket_round(const gm__buckets *buckets, uint64_t bytes, uint64_t unit, uint64_t largest) {
  const uint64_t least = gm__size_class_round(bytes, buckets->bits);
  const uint64_t rounded = gm__add_sat(least, (unit - least % unit) % unit);
  return largest && rounded > largest ? bytes : rounded;
}

static gm__node *bucket_find_ring(const gm__bucket *bucket, uint64_t streams) {
  gm__node *oldest = bucket->rings.first;
  for (int i = 0; i < BUCKET_LOOKS && oldest; i++, oldest = oldest->links[GM__BY_RING].next) {
    if (oldest->ring == streams) return oldest;
  }
  return NULL;
}

static void bucket_lead(gm__bucket *bucket, gm__node *node) {
  node->leads = true;
  gm__node_list_push(&bucket->rings, GM__BY_RING, node);
}

/* Becomes the newest of its ring, which is the first now. */
static void bucket_enter_ring(gm__bucket *bucket, gm__node *node) {
  gm__node *oldest = bucket_find_ring(bucket, node->ring);
  if (!oldest) {
    node->links[GM__BY_USE] = (gm__node_link){node, node};
    bucket_lead(bucket, node);
    return;
  }
  gm__node *newest = gm__ring_newest(oldest);
  node->links[GM__BY_USE] = (gm__node_link){newest, oldest};
  newest->links[GM__BY_USE].next = node;
  oldest->links[GM__BY_USE].prev = node;
  if (oldest == bucket->rings.first) return;
  gm__node_list_remove(&bucket->rings, GM__BY_RING, oldest);
  gm__node_list_push(&bucket->rings, GM__BY_RING, oldest);
}

static void bucket_leave_ring(gm__bucket *bucket, gm__node *node) {
  const gm__node_link link = node->links[GM__BY_USE];
  link.prev->links[GM__BY_USE].next = link.next;
  link.next->links[GM__BY_USE].prev = link.prev;
  if (!node->leads) return;
  node->leads = false;
  gm__node_list_remove(&bucket->rings, GM__BY_RING, node);
  if (link.next != node) bucket_lead(bucket, link.next);
}

static uint32_t *bucket_count(gm__buckets *buckets, const gm__node *node) {
  return node->idle ? &buckets->idle : &buckets->busy[node->busy_of];
}

void gm__bucket_put(gm__buckets *buckets, gm__node *node, int slot) {
  gm__bucket *bucket = &buckets->classes[node->size_class];
  node->state = GM__NODE_POOLED;
  node->idle = !node->rare.mark.streams;
  node->busy_of = (uint8_t)(slot == GM__ORDER_HOST ? GM__BUCKET_OTHERS : slot);
  node->ring = node->rare.mark.streams;
  *bucket_count(buckets, node) += 1;
  if (node->idle) {
    gm__node_list_push(&bucket->idle, GM__BY_USE, node);
  } else {
    bucket_enter_ring(bucket, node);
  }
  gm__node_list_push(&bucket->list, GM__BY_BUCKET, node);
  gm__node_list_push(&buckets->ages, GM__BY_AGE, node);
}

void gm__bucket_remove(gm__buckets *buckets, gm__node *node) {
  gm__bucket *bucket = &buckets->classes[node->size_class];
  node->state = GM__NODE_AWAY;
  *bucket_count(buckets, node) -= 1;
  if (node->idle) {
    gm__node_list_remove(&bucket->idle, GM__BY_USE, node);
  } else {
    bucket_leave_ring(bucket, node);
  }
  node->idle = false;
  gm__node_list_remove(&bucket->list, GM__BY_BUCKET, node);
  gm__node_list_remove(&buckets->ages, GM__BY_AGE, node);
}

void gm__bucket_settle(gm__buckets *buckets, gm__node *node) {
  gm__bucket *bucket = &buckets->classes[node->size_class];
  buckets->busy[node->busy_of]--;
  buckets->idle++;
  node->idle = true;
  bucket_leave_ring(bucket, node);
  gm__node_list_push(&bucket->idle, GM__BY_USE, node);
}

void gm__bucket_forget(gm__buckets *buckets, gm__node *node, int slot) {
  node->ring &= ~(UINT64_C(1) << slot);
  if (node->busy_of != slot) return;
  buckets->busy[slot]--;
  buckets->busy[GM__BUCKET_OTHERS]++;
  node->busy_of = GM__BUCKET_OTHERS;
}

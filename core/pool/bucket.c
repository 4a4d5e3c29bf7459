#include "core/pool/bucket.h"

#include "core/algo/size_class.h"
#include "core/base/alloc.h"
#include "core/base/saturate.h"

/* Invariants: a pooled node is in exactly one class list and in the list of ages; its class is that of the request it
 * was first taken for, so a block that is smaller than its class (because a limit was near) is found again by
 * requests of its size. Lists are newest first: what was freed last is warm, what is oldest is given back first. */

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

void gm__bucket_put(gm__buckets *buckets, gm__node *node, int slot) {
  node->state = GM__NODE_POOLED;
  node->idle = false;
  node->busy_of = (uint8_t)(slot == GM__ORDER_HOST ? GM__BUCKET_OTHERS : slot);
  buckets->busy[node->busy_of]++;
  gm__node_list_push(&buckets->classes[node->size_class].list, GM__BY_BUCKET, node);
  gm__node_list_push(&buckets->ages, GM__BY_AGE, node);
}

void gm__bucket_remove(gm__buckets *buckets, gm__node *node) {
  node->state = GM__NODE_AWAY;
  *(node->idle ? &buckets->idle : &buckets->busy[node->busy_of]) -= 1;
  node->idle = false;
  gm__node_list_remove(&buckets->classes[node->size_class].list, GM__BY_BUCKET, node);
  gm__node_list_remove(&buckets->ages, GM__BY_AGE, node);
}

void gm__bucket_settle(gm__buckets *buckets, gm__node *node) {
  buckets->busy[node->busy_of]--;
  buckets->idle++;
  node->idle = true;
}

void gm__bucket_forget(gm__buckets *buckets, gm__node *node, int slot) {
  if (node->state != GM__NODE_POOLED || node->idle || node->busy_of != slot) return;
  buckets->busy[slot]--;
  buckets->busy[GM__BUCKET_OTHERS]++;
  node->busy_of = GM__BUCKET_OTHERS;
}

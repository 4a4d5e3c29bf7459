#include "core/pool/bucket.h"

#include "gm/size.h"

/* Invariants: a pooled node is in exactly one class list and in the list of ages; its class is that of the request it
 * was first taken for, so a block that is smaller than its power of two (because a limit was near) is found again by
 * requests of its size. Lists are newest first: what was freed last is warm, what is oldest is given back first. */

uint64_t gm__bucket_round(uint64_t bytes, uint64_t largest) {
  uint64_t rounded = gm_round_up_power_of_2(bytes);
  return largest && rounded > largest ? bytes : rounded;
}

void gm__bucket_put(gm__buckets *buckets, gm__node *node, int slot) {
  node->state = GM__NODE_POOLED;
  node->idle = false;
  node->busy_of = (uint8_t)(slot == GM__ORDER_HOST ? GM__BUCKET_OTHERS : slot);
  buckets->busy[node->busy_of]++;
  gm__node_list_push(&buckets->classes[node->size_class], GM__BY_BUCKET, node);
  gm__node_list_push(&buckets->ages, GM__BY_AGE, node);
}

void gm__bucket_remove(gm__buckets *buckets, gm__node *node) {
  node->state = GM__NODE_AWAY;
  *(node->idle ? &buckets->idle : &buckets->busy[node->busy_of]) -= 1;
  node->idle = false;
  gm__node_list_remove(&buckets->classes[node->size_class], GM__BY_BUCKET, node);
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

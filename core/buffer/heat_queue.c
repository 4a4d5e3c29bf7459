#include "core/buffer/heat_queue.h"

#include <stddef.h>

/* Invariant: a node of warm[t % GM__HEAT_SLOTS] ends at the turn t, and turn < t <= turn + GM__HEAT_SLOTS. */

void gm__heat_ring_init(gm__heat_node *ring) { ring->colder = ring->hotter = ring; }

void gm__heat_ring_join(gm__heat_node *ring, gm__heat_node *node) {
  node->colder = ring->colder;
  node->hotter = ring;
  ring->colder->hotter = node;
  ring->colder = node;
}

void gm__heat_node_leave(gm__heat_node *node) {
  if (!node->hotter) return;
  node->colder->hotter = node->hotter;
  node->hotter->colder = node->colder;
  node->colder = node->hotter = NULL;
}

void gm__heat_queue_init(gm__heat_queue *queue) {
  queue->turn = 0;
  gm__heat_ring_init(&queue->cold);
  for (int i = 0; i < GM__HEAT_SLOTS; i++) gm__heat_ring_init(&queue->warm[i]);
}

/* All nodes of `from` follow those of `to`. */
static void queue_splice(gm__heat_node *to, gm__heat_node *from) {
  if (from->hotter == from) return;
  from->hotter->colder = to->colder;
  from->colder->hotter = to;
  to->colder->hotter = from->hotter;
  to->colder = from->colder;
  gm__heat_ring_init(from);
}

/* Nodes whose heat has ended meanwhile become cold. */
static void queue_advance(gm__heat_queue *queue, uint64_t now) {
  for (int i = 0; i < GM__HEAT_SLOTS && queue->turn < now; i++) {
    queue_splice(&queue->cold, &queue->warm[++queue->turn % GM__HEAT_SLOTS]);
  }
  if (queue->turn < now) queue->turn = now;
}

void gm__heat_queue_join(gm__heat_queue *queue, gm__heat_node *node, uint64_t now, uint64_t end) {
  queue_advance(queue, now);
  if (end > queue->turn + GM__HEAT_SLOTS) end = queue->turn + GM__HEAT_SLOTS;
  gm__heat_ring_join(end <= queue->turn ? &queue->cold : &queue->warm[end % GM__HEAT_SLOTS], node);
}

gm__heat_node *gm__heat_queue_coldest(gm__heat_queue *queue, uint64_t now) {
  queue_advance(queue, now);
  if (queue->cold.hotter != &queue->cold) return queue->cold.hotter;
  for (uint64_t t = 1; t <= GM__HEAT_SLOTS; t++) {
    const gm__heat_node *slot = &queue->warm[(queue->turn + t) % GM__HEAT_SLOTS];
    if (slot->hotter != slot) return slot->hotter;
  }
  return NULL;
}

gm__heat_node *gm__heat_queue_hottest(gm__heat_queue *queue, uint64_t now) {
  queue_advance(queue, now);
  for (uint64_t t = GM__HEAT_SLOTS; t > 0; t--) {
    const gm__heat_node *slot = &queue->warm[(queue->turn + t) % GM__HEAT_SLOTS];
    if (slot->colder != slot) return slot->colder;
  }
  return queue->cold.colder != &queue->cold ? queue->cold.colder : NULL;
}

/* Buffers in the order of their heat. Each step costs the same, however many there are, so the order is rough. Buffers
 * whose heat ends at nearly the same time share a slot, in the order in which they came. The caller synchronises. */
#ifndef GM_CORE_BUFFER_HEAT_QUEUE_H
#define GM_CORE_BUFFER_HEAT_QUEUE_H

#include <stdint.h>

enum { GM__HEAT_SLOTS = 96 }; /* the hottest share the last one */

/* A place in a queue. Zeroed, it is in none. */
typedef struct gm__heat_node {
  struct gm__heat_node *colder, *hotter;
} gm__heat_node;

typedef struct gm__heat_queue {
  uint64_t turn;                      /* buffers whose heat ends at this turn or before are cold */
  gm__heat_node cold;                 /* the ends of rings */
  gm__heat_node warm[GM__HEAT_SLOTS]; /* by turn, modulo their number */
} gm__heat_queue;

void gm__heat_queue_init(gm__heat_queue *queue);

/* An empty ring, and the end of one that a node joins. The node is in no ring before. */
void gm__heat_ring_init(gm__heat_node *ring);
void gm__heat_ring_join(gm__heat_node *ring, gm__heat_node *node);

/* Takes the node out of its queue or ring. Nothing where it is in none. */
void gm__heat_node_leave(gm__heat_node *node);

/* Adds a node, at the turn `now`, whose heat ends at the turn `end`. It is in no queue before. */
void gm__heat_queue_join(gm__heat_queue *queue, gm__heat_node *node, uint64_t now, uint64_t end);

/* The first node in that order, at the turn `now`. NULL: the queue is empty. */
gm__heat_node *gm__heat_queue_coldest(gm__heat_queue *queue, uint64_t now);
gm__heat_node *gm__heat_queue_hottest(gm__heat_queue *queue, uint64_t now);

#endif

/* Inside of a remote tier: its servers, and whose turn it is to talk to them. The tier's turn: remote_turn.h. */
#ifndef GM_CORE_TIER_REMOTE_TIER_H
#define GM_CORE_TIER_REMOTE_TIER_H

#include "core/base/thread.h"
#include "core/context/context.h"
#include "core/tier/remote/remote_reply.h"
#include "core/tier/remote/remote_where.h"
#include "gm/tier.h"

enum { GM__REMOTE_NODES = 256, GM__REMOTE_ROOM = 1 << 16, GM__REMOTE_CLIENT = 96 };

/* How long chunks live that a value does not need any more, and those of a value that is not whole yet. */
#define GM__REMOTE_GRACE_MS "60000"
#define GM__REMOTE_UNFINISHED_MS "600000"

/* A server, and the connection to it. */
typedef struct gm__remote_node {
  gm__remote_address address;
  int fd;           /* -1: not connected */
  uint64_t opened;  /* how often it was connected: requests of an earlier connection get no answer */
  uint64_t failed;  /* the round of requests in which it failed last */
  uint64_t waiting; /* requests without an answer yet */
  bool master;      /* it has slots of the cluster */
  char client[GM__REMOTE_CLIENT], from[GM__REMOTE_CLIENT]; /* what the server calls the connection; "": a Unix socket */
  bool fence; /* that connection was given up with requests on the way, which the server must not carry out later */
  gm__reply_reader reader;
} gm__remote_node;

typedef struct gm__remote_tier {
  gm_context *ctx;
  gm__remote_where where;
  uint64_t timeout_ns;
  char *password; /* NULL: none */
  size_t password_bytes;
  bool opening; /* a server that is not there is not waited for */

  gm__mutex lock; /* guards `busy` and the figures */
  gm__cond turn;
  bool busy; /* a thread talks to the servers; what follows is its own */
  gm_tier_stats stats;

  const char *op;   /* the public call */
  gm_error trouble; /* the last failure, which may be overcome */
  uint64_t round;   /* of requests */
  uint64_t read_bytes, written_bytes, retries;
  gm__remote_node *nodes[GM__REMOTE_NODES];
  uint32_t node_count;
  uint16_t *slots;     /* of a cluster: the node of each slot, or GM__REMOTE_NODES */
  uint32_t guide;      /* the node that told of the slots last */
  bool stale;          /* the slots are to be asked for */
  unsigned char *room; /* GM__REMOTE_ROOM bytes to receive into */
} gm__remote_tier;

static inline const gm_services *gm__remote_services(const gm__remote_tier *tier) {
  return gm__context_services(tier->ctx);
}

#endif

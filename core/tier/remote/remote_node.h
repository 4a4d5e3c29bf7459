/* One server: connecting, asking, answers. REQUIRES, for each function: the tier's turn. Reasons of failures are in
 * tier->trouble, with the server's name. A failure closes the connection. */
#ifndef GM_CORE_TIER_REMOTE_NODE_H
#define GM_CORE_TIER_REMOTE_NODE_H

#include "core/tier/remote/remote_tier.h"

enum { GM__REMOTE_ARGS = 6 };

/* Finds the server of that address, which is new if there is none. OVER_LIMIT: too many. OUT_OF_HOST_MEMORY. */
gm_status gm__remote_node_at(gm__remote_tier *tier, const gm__remote_address *address, uint32_t *out);

/* Connects, unless the connection is there. INVALID_ARGUMENT: the password. TIMEOUT, IO, FORMAT. */
gm_status gm__remote_node_ready(gm__remote_tier *tier, gm__remote_node *node, uint64_t deadline);

/* Sends a request of at most GM__REMOTE_ARGS arguments. */
gm_status gm__remote_node_send(gm__remote_tier *tier, gm__remote_node *node, const gm_tier_part *args, uint32_t count,
                               uint64_t deadline);

/* Takes the answer to the oldest request that has none. The caller frees it. */
gm_status gm__remote_node_receive(gm__remote_tier *tier, gm__remote_node *node, gm__reply **out, uint64_t deadline);

void gm__remote_node_close(gm__remote_node *node);

/* Fills tier->trouble with a server's error, and returns the status. */
gm_status gm__remote_node_refuses(gm__remote_tier *tier, const gm__remote_node *node, const gm__reply *reply);

#endif

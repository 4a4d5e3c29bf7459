/* Which server of a cluster has which slot. REQUIRES, for each function: the tier's turn. */
#ifndef GM_CORE_TIER_REMOTE_MAP_H
#define GM_CORE_TIER_REMOTE_MAP_H

#include "core/tier/remote/remote_tier.h"

/* Asks the servers, one after the other, for the slots, until one tells. NOT_SUPPORTED: it is no cluster. */
gm_status gm__remote_map_refresh(gm__remote_tier *tier, uint64_t deadline);

/* The node of a key. */
uint32_t gm__remote_map_node(const gm__remote_tier *tier, const void *key, size_t bytes);

/* Reads "MOVED slot host:port" or "ASK slot host:port", which the node `from` answered. FORMAT. */
gm_status gm__remote_map_redirect(gm__remote_tier *tier, const gm__remote_node *from, const gm__reply *reply,
                                  uint32_t *out_slot, uint32_t *out_node);

#endif

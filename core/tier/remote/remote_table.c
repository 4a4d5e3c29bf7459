#include <string.h>

#include "core/base/alloc.h"
#include "core/base/descriptor.h"
#include "core/base/error.h"
#include "core/tier/remote/hiredis.h"
#include "core/tier/remote/remote_map.h"
#include "core/tier/remote/remote_node.h"
#include "core/tier/remote/remote_run.h"
#include "core/tier/remote/remote_slot.h"
#include "core/tier/remote/remote_turn.h"
#include "core/tier/remote/remote_value.h"
#include "core/tier/tier_kinds.h"

/* Invariant: a figure that is a count is this tier's own; the others are asked for. */

#define REMOTE_TIMEOUT_NS UINT64_C(10000000000)

/* ---- opening and closing ---- */

/* A child that was forked while a thread talked has half of what that thread did: it leaves that alone. */
static void remote_close(void *own) {
  gm__remote_tier *tier = own;
  const gm_services *services = gm__remote_services(tier);
  const bool forked = gm__context_forked(tier->ctx);
  for (uint32_t i = 0; i < tier->node_count; i++) {
    gm__remote_node *node = tier->nodes[i];
    if (forked && tier->busy)
      gm__descriptor_close(node->fd);
    else
      gm__remote_node_close(node);
    gm__release(services, node, sizeof *node);
  }
  if (tier->password) memset(tier->password, 0, tier->password_bytes);
  gm__release(services, tier->password, tier->password_bytes);
  gm__release(services, tier->slots, GM__REMOTE_SLOTS * sizeof *tier->slots);
  gm__release(services, tier->room, GM__REMOTE_ROOM);
  if (!forked) {
    gm__cond_destroy(&tier->turn);
    gm__mutex_destroy(&tier->lock);
  }
  gm__release(services, tier, sizeof *tier);
}

static gm_status remote_no_memory(gm_error *err) {
  return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, "gm_tier_open", "no host memory for a tier");
}

static gm_status remote_make(gm__remote_tier *tier, const gm_tier_params *params, gm_error *err) {
  const gm_services *services = gm__remote_services(tier);
  tier->room = gm__alloc(services, GM__REMOTE_ROOM);
  if (!tier->room) return remote_no_memory(err);
  if (params->password) {
    tier->password_bytes = strlen(params->password);
    tier->password = gm__alloc(services, tier->password_bytes);
    if (!tier->password) return remote_no_memory(err);
    memcpy(tier->password, params->password, tier->password_bytes);
  }
  if (!tier->where.cluster) return GM_OK;
  tier->slots = gm__alloc_array(services, GM__REMOTE_SLOTS, sizeof *tier->slots);
  if (!tier->slots) return remote_no_memory(err);
  for (size_t i = 0; i < GM__REMOTE_SLOTS; i++) tier->slots[i] = GM__REMOTE_NODES;
  tier->stale = true;
  return GM_OK;
}

/* A first word with a server: is it there, does it take the password, is it one of a cluster? */
static gm_status remote_greet(gm__remote_tier *tier) {
  gm_status status = GM_OK;
  uint32_t index;
  for (size_t i = 0; !status && i < tier->where.seeds; i++) {
    status = gm__remote_node_at(tier, &tier->where.seed[i], &index);
  }
  gm__remote_request request = {
      .args = {{"GET", 3}, {tier->where.prefix, strlen(tier->where.prefix)}}, .count = 2, .key = 1};
  if (!status) status = gm__remote_run(tier, &request, 1);
  if (status) return status == GM_ERR_IO ? tier->trouble.status = GM_ERR_UNAVAILABLE : status;
  if (request.reply->kind != GM__REPLY_NIL && !gm__reply_is_error(request.reply, "WRONGTYPE")) {
    status = gm__remote_expect(tier, &request, GM__REPLY_STRING);
  }
  gm__remote_run_end(tier, &request, 1);
  return status;
}

static gm_status remote_begin(gm__remote_tier *tier, const gm_tier_params *params, gm_error *err) {
  gm_status status = remote_make(tier, params, err);
  if (!status) status = gm__remote_enter(tier, "gm_tier_open", err);
  if (status) return status;
  tier->opening = true;
  status = remote_greet(tier);
  tier->opening = false;
  return gm__remote_leave(tier, status, err);
}

static gm_status remote_open(gm_context *ctx, const char *where, const gm_tier_params *params, void **out_tier,
                             gm_error *err) {
  if (params->max_bytes) {
    return gm__fail(err, GM_ERR_NOT_SUPPORTED, "gm_tier_open",
                    "a remote tier keeps to no `max_bytes`: bound the server by its maxmemory");
  }
  gm__remote_tier *tier = gm__alloc(gm__context_services(ctx), sizeof *tier);
  if (!tier) return remote_no_memory(err);
  tier->ctx = ctx;
  tier->timeout_ns = params->timeout_ns ? params->timeout_ns : REMOTE_TIMEOUT_NS;
  gm__mutex_init(&tier->lock, GM__RANK_LEAF);
  gm__cond_init(&tier->turn);
  gm_status status = gm__remote_where_read(where, &tier->where, err);
  if (!status && !gm__hiredis_open(err)) status = GM_ERR_NOT_SUPPORTED;
  if (!status) status = remote_begin(tier, params, err);
  if (status)
    remote_close(tier);
  else
    *out_tier = tier;
  return status;
}

/* ---- the tier as a whole ---- */

/* A put that answered GM_OK is on the server. The server's configuration decides what it keeps over its own end. */
static gm_status remote_flush(void *own, gm_error *err) {
  (void)own, (void)err;
  return GM_OK;
}

typedef struct remote_sum {
  uint64_t values, value_bytes, stored_bytes;
} remote_sum;

static bool remote_sum_visit(void *user, const void *key, size_t key_bytes, uint64_t value_bytes) {
  remote_sum *sum = user;
  const gm__manifest manifest = {.value_bytes = value_bytes, .chunks = gm__manifest_chunks_of(value_bytes)};
  (void)key;
  sum->values++;
  sum->value_bytes += value_bytes;
  sum->stored_bytes += key_bytes + gm__manifest_bytes(&manifest) + (manifest.chunks ? value_bytes : 0);
  return true;
}

static void remote_stats(void *own, gm_tier_stats *out) {
  gm__remote_tier *tier = own;
  const uint32_t size = out->struct_size;
  remote_sum sum = {0};
  const bool told = gm__remote_list(tier, NULL, 0, remote_sum_visit, &sum, NULL) == GM_OK;
  gm__mutex_lock(&tier->lock);
  if (told) {
    tier->stats.values = sum.values;
    tier->stats.value_bytes = sum.value_bytes;
    tier->stats.stored_bytes = sum.stored_bytes;
  }
  *out = tier->stats;
  gm__mutex_unlock(&tier->lock);
  out->struct_size = size;
}

const gm_tier_ops gm__remote_tier_ops = {.struct_size = sizeof gm__remote_tier_ops,
                                         .abi = GM_TIER_ABI,
                                         .name = "remote",
                                         .open = remote_open,
                                         .close = remote_close,
                                         .put = gm__remote_put,
                                         .value_open = gm__remote_value_open,
                                         .value_read = gm__remote_value_read,
                                         .value_close = gm__remote_value_close,
                                         .remove = gm__remote_remove,
                                         .list = gm__remote_list,
                                         .flush = remote_flush,
                                         .stats = remote_stats};

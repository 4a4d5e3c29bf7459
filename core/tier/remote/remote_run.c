#include "core/tier/remote/remote_run.h"

#include <string.h>

#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/saturate.h"
#include "core/tier/remote/remote_map.h"

/* Invariants. No request is on the way when gm__remote_run returns. A server that failed is not tried twice in one
 * round. A round ends early enough that a cluster can name another server for the slots of one that hangs. */

enum { RUN_SLICE = 4, RUN_PAUSE_MOST = 7 /* the longest pause is 2^7 ms */ };

void gm__remote_run_end(const gm__remote_tier *tier, gm__remote_request *requests, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    gm__reply_free(gm__remote_services(tier), requests[i].reply);
    requests[i].reply = NULL;
  }
}

gm_status gm__remote_expect(gm__remote_tier *tier, const gm__remote_request *request, gm__reply_kind kind) {
  const gm__reply *reply = request->reply;
  if (reply->kind == kind) return GM_OK;
  if (reply->kind == GM__REPLY_ERROR) return gm__remote_node_refuses(tier, tier->nodes[request->node], reply);
  return gm__fail(&tier->trouble, GM_ERR_FORMAT, tier->op, "the server's answer to %.16s is of the wrong kind",
                  (const char *)request->args[0].data);
}

static bool run_is_final(gm_status status) {
  return status != GM_OK && status != GM_ERR_IO && status != GM_ERR_TIMEOUT && status != GM_ERR_UNAVAILABLE;
}

/* ---- one round ---- */

static gm_status run_send(gm__remote_tier *tier, gm__remote_request *request, uint64_t deadline) {
  static const gm_tier_part asking[] = {{"ASKING", 6}};
  if (request->key && !request->asking) {
    const gm_tier_part *key = &request->args[request->key];
    request->node = gm__remote_map_node(tier, key->data, (size_t)key->bytes);
  }
  gm__remote_node *node = tier->nodes[request->node];
  if (node->failed == tier->round) return tier->trouble.status;
  gm_status status = gm__remote_node_ready(tier, node, deadline);
  if (!status && request->asking) status = gm__remote_node_send(tier, node, asking, 1, deadline);
  if (!status) {
    request->sent = true; /* perhaps by half */
    request->opened = node->opened;
    status = gm__remote_node_send(tier, node, request->args, request->count, deadline);
  }
  if (status) node->failed = tier->round;
  return status;
}

/* Reads the answer that says OK to ASKING. */
static gm_status run_skip(gm__remote_tier *tier, gm__remote_node *node, uint64_t deadline) {
  gm__reply *reply = NULL;
  const gm_status status = gm__remote_node_receive(tier, node, &reply, deadline);
  gm__reply_free(gm__remote_services(tier), reply);
  return status;
}

/* The reply says that another server, or a later moment, is right. Frees the reply. */
static gm_status run_redirect(gm__remote_tier *tier, gm__remote_request *request) {
  gm__remote_node *node = tier->nodes[request->node];
  const bool moved = gm__reply_is_error(request->reply, "MOVED "), ask = gm__reply_is_error(request->reply, "ASK ");
  gm_status status = gm__remote_node_refuses(tier, node, request->reply);
  uint32_t slot, to;
  if ((moved || ask) && !tier->slots) {
    status = gm__fail(&tier->trouble, GM_ERR_NOT_SUPPORTED, tier->op,
                      "the server is one of a cluster: open it as redis+cluster://");
  } else if (moved || ask) {
    status = gm__remote_map_redirect(tier, node, request->reply, &slot, &to);
    if (!status && ask) request->node = to;
    if (!status && moved) tier->slots[slot] = (uint16_t)to;
    request->asking = !status && ask;
    if (moved) tier->stale = true;
    if (!status) status = GM_ERR_IO; /* not yet */
  } else {
    request->asking = false;
    tier->stale = true;
  }
  gm__reply_free(gm__remote_services(tier), request->reply);
  request->reply = NULL;
  return status;
}

static bool run_is_elsewhere(const gm__remote_tier *tier, const gm__reply *reply) {
  static const char *const words[] = {"MOVED ", "ASK ", "TRYAGAIN", "CLUSTERDOWN", "LOADING", "MASTERDOWN"};
  for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
    if (gm__reply_is_error(reply, words[i])) return true;
  }
  return tier->slots && gm__reply_is_error(reply, "READONLY");
}

static gm_status run_receive(gm__remote_tier *tier, gm__remote_request *request, uint64_t deadline) {
  gm__remote_node *node = tier->nodes[request->node];
  request->sent = false;
  if (node->fd < 0 || node->opened != request->opened) { /* the connection was lost */
    request->lost = true;
    request->asking = false;
    return tier->trouble.status;
  }
  gm_status status = request->asking ? run_skip(tier, node, deadline) : GM_OK;
  if (!status) status = gm__remote_node_receive(tier, node, &request->reply, deadline);
  request->asking = false;
  if (!status) return run_is_elsewhere(tier, request->reply) ? run_redirect(tier, request) : GM_OK;
  request->lost = true;
  node->failed = tier->round;
  return status;
}

/* The first failure that trying again cannot help, else the last one. */
static gm_status run_worse(gm_status a, gm_status b) { return run_is_final(a) || !b ? a : b; }

static gm_status run_round(gm__remote_tier *tier, gm__remote_request *requests, uint32_t count, uint64_t deadline) {
  gm_status status = GM_OK;
  tier->round++;
  for (uint32_t i = 0; i < count && !run_is_final(status); i++) {
    if (!requests[i].reply) status = run_worse(status, run_send(tier, &requests[i], deadline));
  }
  for (uint32_t i = 0; i < count && !run_is_final(status); i++) {
    if (requests[i].sent) status = run_worse(status, run_receive(tier, &requests[i], deadline));
  }
  return status;
}

/* ---- all rounds ---- */

/* Nobody waits for the answers that are still due. */
static void run_give_up(gm__remote_tier *tier, gm__remote_request *requests, uint32_t count) {
  for (uint32_t i = 0; i < tier->node_count; i++) {
    if (tier->nodes[i]->waiting) gm__remote_node_close(tier->nodes[i]);
  }
  for (uint32_t i = 0; i < count; i++) requests[i].lost |= requests[i].sent;
  gm__remote_run_end(tier, requests, count);
}

static gm_status run_once(gm__remote_tier *tier, gm__remote_request *requests, uint32_t count, uint64_t deadline) {
  gm_status status = GM_OK;
  uint64_t end = deadline;
  if (tier->slots) end = gm__min(end, gm__deadline_after(gm__max(tier->timeout_ns / RUN_SLICE, 1000000)));
  if (tier->slots && tier->stale) status = gm__remote_map_refresh(tier, end);
  return status ? status : run_round(tier, requests, count, end);
}

static bool run_lost_one(const gm__remote_request *requests, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    if (requests[i].once && requests[i].lost) return true;
  }
  return false;
}

static bool run_is_connected(const gm__remote_tier *tier) {
  for (uint32_t i = 0; i < tier->node_count; i++) {
    if (tier->nodes[i]->fd >= 0) return true;
  }
  return false;
}

gm_status gm__remote_run(gm__remote_tier *tier, gm__remote_request *requests, uint32_t count) {
  const uint64_t deadline = gm__deadline_after(tier->timeout_ns);
  for (uint32_t tries = 0;; tries++) {
    const gm_status status = run_once(tier, requests, count, deadline);
    if (!status) return GM_OK;
    if (tier->slots && (status == GM_ERR_TIMEOUT || status == GM_ERR_IO)) tier->stale = true;
    if (run_is_final(status) || gm__deadline_passed(deadline) || run_lost_one(requests, count) ||
        (tier->opening && !run_is_connected(tier))) {
      run_give_up(tier, requests, count);
      return status;
    }
    const uint64_t pause = UINT64_C(1000000) << gm__min(tries, RUN_PAUSE_MOST);
    gm__sleep_ns(gm__min(pause, gm__deadline_left(deadline)));
    tier->retries++;
  }
}

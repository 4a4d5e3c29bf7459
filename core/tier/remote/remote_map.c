#include "core/tier/remote/remote_map.h"

#include <string.h>

#include "core/base/clock.h"
#include "core/base/decimal.h"
#include "core/base/error.h"
#include "core/base/saturate.h"
#include "core/tier/remote/remote_node.h"
#include "core/tier/remote/remote_slot.h"

/* Invariant: each entry of the map is a node that there is, or GM__REMOTE_NODES. */

enum { MAP_SLICE = 4 /* of the time that is left, for one server */ };

uint32_t gm__remote_map_node(const gm__remote_tier *tier, const void *key, size_t bytes) {
  if (!tier->slots) return 0;
  const uint32_t node = tier->slots[gm__remote_slot(key, bytes)];
  return node < tier->node_count ? node : tier->guide; /* which redirects */
}

static gm_status map_wrong(gm__remote_tier *tier) {
  return gm__fail(&tier->trouble, GM_ERR_FORMAT, tier->op, "what the server says about its cluster makes no sense");
}

/* The server of an entry [host, port, ...]. A server that does not know its own name is called as gm called it. */
static gm_status map_server(gm__remote_tier *tier, const gm__remote_node *from, const gm__reply *server,
                            uint32_t *out) {
  gm__remote_address address = {.port = 0};
  const gm__reply *host = server->first, *port = host ? host->next : NULL;
  if (server->kind != GM__REPLY_ARRAY || !port || port->kind != GM__REPLY_INTEGER) return map_wrong(tier);
  if (port->number < 1 || port->number > UINT16_MAX) return map_wrong(tier);
  const bool named = host->kind == GM__REPLY_STRING && host->bytes && strcmp(host->text, "?") != 0;
  if (named && (host->bytes >= sizeof address.host || strlen(host->text) != host->bytes)) return map_wrong(tier);
  memcpy(address.host, named ? host->text : from->address.host, named ? host->bytes : sizeof address.host);
  address.port = (uint16_t)port->number;
  return gm__remote_node_at(tier, &address, out);
}

static gm_status map_range(gm__remote_tier *tier, const gm__remote_node *from, const gm__reply *range) {
  const gm__reply *first = range->first, *last = first ? first->next : NULL, *server = last ? last->next : NULL;
  uint32_t node;
  if (range->kind != GM__REPLY_ARRAY || !server) return map_wrong(tier);
  if (first->kind != GM__REPLY_INTEGER || last->kind != GM__REPLY_INTEGER) return map_wrong(tier);
  if (first->number < 0 || last->number >= GM__REMOTE_SLOTS || first->number > last->number) return map_wrong(tier);
  gm_status status = map_server(tier, from, server, &node);
  if (status) return status;
  for (int64_t slot = first->number; slot <= last->number; slot++) tier->slots[slot] = (uint16_t)node;
  tier->nodes[node]->master = true;
  for (server = server->next; !status && server; server = server->next) {
    status = map_server(tier, from, server, &node); /* a replica may become a master */
  }
  return status;
}

static gm_status map_take(gm__remote_tier *tier, const gm__remote_node *from, const gm__reply *reply) {
  if (reply->kind == GM__REPLY_ERROR) {
    gm__remote_node_refuses(tier, from, reply);
    if (strstr(reply->text, "cluster support disabled")) tier->trouble.status = GM_ERR_NOT_SUPPORTED;
    return tier->trouble.status;
  }
  if (reply->kind != GM__REPLY_ARRAY) return map_wrong(tier);
  if (!reply->count) {
    return gm__fail(&tier->trouble, GM_ERR_IO, tier->op, "the cluster has no slots yet");
  }
  for (uint32_t i = 0; i < tier->node_count; i++) tier->nodes[i]->master = false;
  gm_status status = GM_OK;
  for (const gm__reply *range = reply->first; !status && range; range = range->next) {
    status = map_range(tier, from, range);
  }
  return status;
}

static gm_status map_ask(gm__remote_tier *tier, uint32_t index, uint64_t deadline) {
  static const gm_tier_part args[] = {{"CLUSTER", 7}, {"SLOTS", 5}};
  gm__remote_node *node = tier->nodes[index];
  gm__reply *reply = NULL;
  gm_status status = gm__remote_node_ready(tier, node, deadline);
  if (!status) status = gm__remote_node_send(tier, node, args, 2, deadline);
  if (!status) status = gm__remote_node_receive(tier, node, &reply, deadline);
  if (status) return status;
  status = map_take(tier, node, reply);
  gm__reply_free(gm__remote_services(tier), reply);
  return status;
}

gm_status gm__remote_map_refresh(gm__remote_tier *tier, uint64_t deadline) {
  gm_status status = GM_ERR_IO;
  const uint32_t count = tier->node_count, first = tier->guide;
  for (uint32_t i = 0; i < count && !gm__deadline_passed(deadline); i++) {
    const uint32_t index = (first + i) % count;
    const uint64_t slice = gm__max(gm__deadline_left(deadline) / MAP_SLICE, 1000000);
    status = map_ask(tier, index, gm__min(deadline, gm__deadline_after(slice)));
    if (!status) {
      tier->guide = index;
      tier->stale = false;
      return GM_OK;
    }
    if (status == GM_ERR_NOT_SUPPORTED || status == GM_ERR_INVALID_ARGUMENT || status == GM_ERR_OUT_OF_HOST_MEMORY) {
      return status;
    }
  }
  return status;
}

gm_status gm__remote_map_redirect(gm__remote_tier *tier, const gm__remote_node *from, const gm__reply *reply,
                                  uint32_t *out_slot, uint32_t *out_node) {
  gm__remote_address address;
  uint64_t slot;
  const char *at = strchr(reply->text, ' ');
  if (!at || !gm__decimal(at + 1, &at, &slot) || *at != ' ' || slot >= GM__REMOTE_SLOTS) return map_wrong(tier);
  at++;
  if (*at == ':') { /* the same host */
    char text[GM__REMOTE_HOST + 8];
    const size_t host = strlen(from->address.host), rest = strlen(at);
    if (host + rest >= sizeof text) return map_wrong(tier);
    memcpy(text, from->address.host, host);
    memcpy(text + host, at, rest + 1);
    if (!gm__remote_address_read(text, host + rest, 0, &address)) return map_wrong(tier);
  } else if (!gm__remote_address_read(at, strlen(at), 0, &address)) {
    return map_wrong(tier);
  }
  if (!address.port) return map_wrong(tier);
  *out_slot = (uint32_t)slot;
  return gm__remote_node_at(tier, &address, out_node);
}

#include "core/tier/remote/remote_node.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/clock.h"
#include "core/base/descriptor.h"
#include "core/base/error.h"
#include "core/base/socket.h"

/* Invariants. A node does not move. On an open connection, answers come in the order of the requests, and `waiting`
 * counts those that are due. A connection may be given up with requests on the way. Then gm has the server end it,
 * too, before the next request. Otherwise a put that timed out could replace a later one. */

static gm_status node_fail(gm__remote_tier *tier, gm__remote_node *node, gm_status status) {
  const gm_error was = tier->trouble;
  gm__remote_node_close(node);
  if (node->address.port) {
    return gm__fail_native(&tier->trouble, status, was.native_code, tier->op, "%.200s:%u: %.200s", node->address.host,
                           (unsigned)node->address.port, was.message);
  }
  return gm__fail_native(&tier->trouble, status, was.native_code, tier->op, "%.200s: %.200s", node->address.host,
                         was.message);
}

gm_status gm__remote_node_refuses(gm__remote_tier *tier, const gm__remote_node *node, const gm__reply *reply) {
  const bool password = gm__reply_is_error(reply, "NOAUTH") || gm__reply_is_error(reply, "WRONGPASS");
  const gm_status status = password                                 ? GM_ERR_INVALID_ARGUMENT
                           : gm__reply_is_error(reply, "WRONGTYPE") ? GM_ERR_FORMAT
                                                                    : GM_ERR_IO;
  return gm__fail(&tier->trouble, status, tier->op, "%.200s:%u refuses: %.200s", node->address.host,
                  (unsigned)node->address.port, reply->text);
}

gm_status gm__remote_node_at(gm__remote_tier *tier, const gm__remote_address *address, uint32_t *out) {
  for (uint32_t i = 0; i < tier->node_count; i++) {
    const gm__remote_address *has = &tier->nodes[i]->address;
    *out = i;
    if (has->port == address->port && strcmp(has->host, address->host) == 0) return GM_OK;
  }
  if (tier->node_count == GM__REMOTE_NODES) {
    return gm__fail(&tier->trouble, GM_ERR_OVER_LIMIT, tier->op, "the cluster has more than %d servers",
                    GM__REMOTE_NODES);
  }
  gm__remote_node *node = gm__alloc(gm__remote_services(tier), sizeof *node);
  if (!node) {
    return gm__fail(&tier->trouble, GM_ERR_OUT_OF_HOST_MEMORY, tier->op, "no host memory for a server");
  }
  node->address = *address;
  node->fd = -1;
  *out = tier->node_count;
  tier->nodes[tier->node_count++] = node;
  return GM_OK;
}

void gm__remote_node_close(gm__remote_node *node) {
  if (node->fd < 0) return;
  if (node->waiting && *node->client) node->fence = true;
  gm__descriptor_close(node->fd);
  node->fd = -1;
  node->waiting = 0;
  gm__reply_reader_close(&node->reader);
}

/* ---- requests and answers ---- */

gm_status gm__remote_node_send(gm__remote_tier *tier, gm__remote_node *node, const gm_tier_part *args, uint32_t count,
                               uint64_t deadline) {
  gm__socket_piece pieces[2 * GM__REMOTE_ARGS + 1];
  char heads[GM__REMOTE_ARGS][48];
  size_t used = 0;
  for (uint32_t i = 0; i < count; i++) {
    const int begin = i ? snprintf(heads[i], sizeof heads[i], "\r\n$%" PRIu64 "\r\n", args[i].bytes)
                        : snprintf(heads[i], sizeof heads[i], "*%u\r\n$%" PRIu64 "\r\n", count, args[i].bytes);
    pieces[used++] = (gm__socket_piece){heads[i], (size_t)begin};
    pieces[used++] = (gm__socket_piece){args[i].data, (size_t)args[i].bytes};
    tier->written_bytes += (uint64_t)begin + args[i].bytes;
  }
  pieces[used++] = (gm__socket_piece){"\r\n", 2};
  tier->written_bytes += 2;
  node->waiting++;
  const gm_status status = gm__socket_send(node->fd, pieces, used, deadline, &tier->trouble);
  return status ? node_fail(tier, node, status) : GM_OK;
}

gm_status gm__remote_node_receive(gm__remote_tier *tier, gm__remote_node *node, gm__reply **out, uint64_t deadline) {
  size_t got = 0;
  for (;;) {
    gm_status status = gm__reply_reader_next(&node->reader, out, &tier->trouble);
    if (!status && *out) {
      node->waiting--;
      return GM_OK;
    }
    if (!status && gm__deadline_passed(deadline)) {
      status = gm__fail(&tier->trouble, GM_ERR_TIMEOUT, tier->op, "no answer in time");
    }
    if (!status) status = gm__socket_receive(node->fd, tier->room, GM__REMOTE_ROOM, deadline, &got, &tier->trouble);
    if (!status) status = gm__reply_reader_feed(&node->reader, tier->room, got, &tier->trouble);
    if (status) return node_fail(tier, node, status);
    tier->read_bytes += got;
  }
}

/* ---- connecting ---- */

static gm_status node_ask(gm__remote_tier *tier, gm__remote_node *node, const gm_tier_part *args, uint32_t count,
                          gm__reply **out, uint64_t deadline) {
  const gm_status status = gm__remote_node_send(tier, node, args, count, deadline);
  return status ? status : gm__remote_node_receive(tier, node, out, deadline);
}

static gm_status node_login(gm__remote_tier *tier, gm__remote_node *node, uint64_t deadline) {
  const gm_tier_part args[] = {{"AUTH", 4}, {tier->password, tier->password_bytes}};
  gm__reply *reply = NULL;
  gm_status status = node_ask(tier, node, args, 2, &reply, deadline);
  if (status) return status;
  if (reply->kind == GM__REPLY_ERROR) {
    gm__remote_node_refuses(tier, node, reply);
    status = tier->trouble.status = GM_ERR_INVALID_ARGUMENT;
  } else if (reply->kind != GM__REPLY_STATUS) {
    status = gm__fail(&tier->trouble, GM_ERR_FORMAT, tier->op, "the answer to a password is none");
  }
  gm__reply_free(gm__remote_services(tier), reply);
  if (status) gm__remote_node_close(node);
  return status;
}

/* The server does not do what a fence takes. Without one, a put that timed out could replace a later one. */
static gm_status node_no_fence(gm__remote_tier *tier, gm__remote_node *node, const gm__reply *reply) {
  gm_status status;
  if (reply->kind != GM__REPLY_ERROR) {
    status = gm__fail(&tier->trouble, GM_ERR_FORMAT, tier->op, "%.200s:%u: its answer to CLIENT is of the wrong kind",
                      node->address.host, (unsigned)node->address.port);
  } else if (gm__reply_is_error(reply, "ERR") || gm__reply_is_error(reply, "NOPERM")) {
    status = gm__fail(&tier->trouble, GM_ERR_NOT_SUPPORTED, tier->op,
                      "%.120s:%u must allow CLIENT INFO and CLIENT KILL, or what timed out may replace what is put "
                      "later; it says: %.100s",
                      node->address.host, (unsigned)node->address.port, reply->text);
  } else {
    status = gm__remote_node_refuses(tier, node, reply);
  }
  gm__remote_node_close(node);
  return status;
}

/* Ends the connection of that name. A server does not end the one that asks: so a name of its own is a question whether
 * the server would. */
static gm_status node_kill(gm__remote_tier *tier, gm__remote_node *node, uint64_t deadline) {
  const gm_tier_part args[] = {{"CLIENT", 6}, {"KILL", 4},
                               {"ID", 2},     {node->client, strlen(node->client)},
                               {"ADDR", 4},   {node->from, strlen(node->from)}};
  gm__reply *reply = NULL;
  gm_status status = node_ask(tier, node, args, 6, &reply, deadline);
  if (status) return status;
  if (reply->kind != GM__REPLY_INTEGER) status = node_no_fence(tier, node, reply);
  gm__reply_free(gm__remote_services(tier), reply);
  return status;
}

/* Copies what stands behind `name` up to a blank. */
static void node_field(const char *text, const char *name, char out[GM__REMOTE_CLIENT]) {
  const char *at = strstr(text, name);
  const size_t length = at ? strcspn(at += strlen(name), " \r\n") : 0;
  *out = '\0';
  if (!length || length >= GM__REMOTE_CLIENT) return;
  memcpy(out, at, length);
  out[length] = '\0';
}

static gm_status node_name(gm__remote_tier *tier, gm__remote_node *node, uint64_t deadline) {
  const gm_tier_part args[] = {{"CLIENT", 6}, {"INFO", 4}};
  gm__reply *reply = NULL;
  gm_status status = node_ask(tier, node, args, 2, &reply, deadline);
  if (status) return status;
  const bool told = reply->kind == GM__REPLY_STRING && strncmp(reply->text, "id=", 3) == 0;
  node_field(told ? reply->text : "", "id=", node->client);
  node_field(told ? reply->text : "", " addr=", node->from);
  if (!*node->from || !*node->client) status = node_no_fence(tier, node, reply);
  gm__reply_free(gm__remote_services(tier), reply);
  return status;
}

/* The earlier connection ends, and this one gets a name by which it can be ended. A Unix socket has nothing on the way:
 * the server sees an earlier request first. */
static gm_status node_fence(gm__remote_tier *tier, gm__remote_node *node, uint64_t deadline) {
  if (!node->address.port) return GM_OK;
  const bool owed = node->fence, known = *node->client;
  gm_status status = owed ? node_kill(tier, node, deadline) : GM_OK;
  if (!status) node->fence = false;
  if (!status) status = node_name(tier, node, deadline);
  if (!status && !owed && !known) status = node_kill(tier, node, deadline);
  return status;
}

static gm_status node_connect(gm__remote_tier *tier, gm__remote_node *node, uint64_t deadline) {
  gm_status status = gm__socket_connect(node->address.host, node->address.port, deadline, &node->fd, &tier->trouble);
  if (status) {
    node->fd = -1;
    return node_fail(tier, node, status);
  }
  node->waiting = 0;
  node->opened++;
  status = gm__reply_reader_open(&node->reader, gm__remote_services(tier), &tier->trouble);
  if (status) {
    gm__descriptor_close(node->fd);
    node->fd = -1;
    return status;
  }
  if (tier->password) status = node_login(tier, node, deadline);
  return status ? status : node_fence(tier, node, deadline);
}

gm_status gm__remote_node_ready(gm__remote_tier *tier, gm__remote_node *node, uint64_t deadline) {
  if (node->fd >= 0 && !node->waiting && (gm__reply_reader_has_rest(&node->reader) || !gm__socket_is_quiet(node->fd))) {
    gm__remote_node_close(node); /* the server ended it, or said something that nobody asked for */
  }
  return node->fd >= 0 ? GM_OK : node_connect(tier, node, deadline);
}

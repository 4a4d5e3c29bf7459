#include <stdio.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/error.h"
#include "core/base/key_map.h"
#include "core/base/saturate.h"
#include "core/tier/remote/remote_key.h"
#include "core/tier/remote/remote_run.h"
#include "core/tier/remote/remote_turn.h"
#include "core/tier/remote/remote_value.h"

/* Invariants. A thread has no turn while it calls the visitor. A key is visited once: a server may name it twice. A
 * list ends: the server says how many keys it has, and names no more pages and values than such a server can. */

enum {
  LIST_STEP = 200,           /* keys that the server looks at for one page */
  LIST_STEP_MOST = 25600,    /* after pages without a value: its table may be much larger than its keys */
  LIST_PAGES_MOST = 1 << 22, /* of one server, whatever it says that it has */
  LIST_SLACK = 4096,         /* pages and values beside those that the server's count of keys allows */
  LIST_COUNTS_MOST = 8,      /* how often a server is asked for its count, as others may put meanwhile */
  LIST_PATTERN = 2 * (GM__REMOTE_PREFIX + GM_TIER_KEY_MOST) + 8,
  LIST_CURSOR = 24
};

typedef struct list_state {
  gm__remote_tier *tier;
  gm_tier_visit visit;
  void *user;
  gm__remote_key begin; /* of the server's keys that are visited */
  size_t own_bytes;     /* of each key that are the tier's */
  size_t pattern_bytes;
  char pattern[LIST_PATTERN];
  char cursor[LIST_CURSOR];
  bool more;              /* the visitor wants more */
  uint64_t pages, values; /* of the server that is asked now */
  uint64_t most;          /* of each of them */
  uint32_t step;
  char step_text[12];
  uint32_t counts;
  gm__key_map seen;
  gm__remote_request sizes[GM__REMOTE_BATCH];
} list_state;

static void list_pattern(list_state *list) {
  for (size_t i = 0; i < list->begin.bytes; i++) {
    const char letter = list->begin.text[i];
    if (letter && strchr("*?[]\\^-", letter)) list->pattern[list->pattern_bytes++] = '\\';
    list->pattern[list->pattern_bytes++] = letter;
  }
  list->pattern[list->pattern_bytes++] = '*';
}

/* Is it a key of the tier that was not seen before? Notes it. */
static gm_status list_note(list_state *list, const gm__reply *key, bool *out) {
  const gm_services *services = gm__remote_services(list->tier);
  *out = false;
  if (key->kind != GM__REPLY_STRING || key->bytes < list->begin.bytes || key->bytes <= list->own_bytes ||
      key->bytes - list->own_bytes > GM_TIER_KEY_MOST || memcmp(key->text, list->begin.text, list->begin.bytes) != 0 ||
      gm__key_map_find(&list->seen, key->text, key->bytes)) {
    return GM_OK;
  }
  gm__key_entry *entry = gm__alloc(services, sizeof *entry);
  if (!entry || !gm__key_map_prepare(&list->seen, entry, key->text, key->bytes)) {
    gm__release(services, entry, sizeof *entry);
    return gm__fail(&list->tier->trouble, GM_ERR_OUT_OF_HOST_MEMORY, list->tier->op, "no host memory for a key");
  }
  gm__key_map_link(&list->seen, entry);
  *out = true;
  return GM_OK;
}

/* Asks for the next page. *out is the server's list of keys, inside `request`. REQUIRES: turn. */
static gm_status list_scan(list_state *list, gm__remote_request *request, const gm__reply **out) {
  gm__remote_tier *tier = list->tier;
  request->args[0] = (gm_tier_part){"SCAN", 4};
  request->args[1] = (gm_tier_part){list->cursor, strlen(list->cursor)};
  request->args[2] = (gm_tier_part){"MATCH", 5};
  request->args[3] = (gm_tier_part){list->pattern, list->pattern_bytes};
  request->args[4] = (gm_tier_part){"COUNT", 5};
  request->args[5] = (gm_tier_part){list->step_text, (uint64_t)snprintf(list->step_text, 12, "%u", list->step)};
  request->count = 6;
  gm_status status = gm__remote_run(tier, request, 1);
  if (status) return status;
  status = gm__remote_expect(tier, request, GM__REPLY_ARRAY);
  if (status) return status;
  const gm__reply *cursor = request->reply->first, *keys = cursor ? cursor->next : NULL;
  if (!keys || keys->kind != GM__REPLY_ARRAY || cursor->kind != GM__REPLY_STRING || !cursor->bytes ||
      cursor->bytes >= LIST_CURSOR || strspn(cursor->text, "0123456789") != cursor->bytes) {
    return gm__fail(&tier->trouble, GM_ERR_FORMAT, tier->op, "the server's list of keys makes no sense");
  }
  memcpy(list->cursor, cursor->text, cursor->bytes + 1);
  *out = keys;
  return GM_OK;
}

/* Asks for the heads of the next values of a page, at most a batch. REQUIRES: turn. */
static gm_status list_sizes(list_state *list, const gm__reply **key, uint32_t *out_count) {
  uint32_t count = 0;
  for (; *key && count < GM__REMOTE_BATCH; *key = (*key)->next) {
    bool fresh;
    const gm_status status = list_note(list, *key, &fresh);
    if (status) return status;
    if (!fresh) continue;
    list->values++;
    list->sizes[count] = (gm__remote_request){
        .args = {{"GETRANGE", 8}, {(*key)->text, (*key)->bytes}, {"0", 1}, {"47", 2}}, .count = 4, .key = 1};
    count++;
  }
  const gm_status status = gm__remote_run(list->tier, list->sizes, count);
  *out_count = status ? 0 : count;
  return status;
}

static void list_visit(list_state *list, uint32_t count) {
  for (uint32_t i = 0; i < count && list->more; i++) {
    const gm__reply *head = list->sizes[i].reply;
    const gm_tier_part *key = &list->sizes[i].args[1];
    gm__manifest manifest;
    if (head->kind != GM__REPLY_STRING || !gm__manifest_peek(head->text, head->bytes, &manifest)) continue;
    list->more = list->visit(list->user, (const char *)key->data + list->own_bytes,
                             (size_t)key->bytes - list->own_bytes, manifest.value_bytes);
  }
}

static gm_status list_endless(const gm__remote_tier *tier, gm_error *err) {
  return gm__fail(err, GM_ERR_FORMAT, tier->op, "the server's list of keys does not end");
}

/* Asks for the count of all keys of a server, of whichever prefix. REQUIRES: turn. */
static gm_status list_count(list_state *list, uint32_t node) {
  gm__remote_tier *tier = list->tier;
  gm__remote_request request = {.args = {{"DBSIZE", 6}}, .count = 1, .node = node};
  gm_status status = list->counts++ < LIST_COUNTS_MOST ? GM_OK : list_endless(tier, &tier->trouble);
  if (!status) status = gm__remote_run(tier, &request, 1);
  if (status) return status;
  status = gm__remote_expect(tier, &request, GM__REPLY_INTEGER);
  const uint64_t keys = !status && request.reply->number > 0 ? (uint64_t)request.reply->number : 0;
  gm__remote_run_end(tier, &request, 1);
  list->most = gm__min(keys, UINT64_MAX / 4) * 2 + LIST_SLACK;
  return status;
}

/* A server has at most as many values as keys, and looks at many keys for a page. Others may put meanwhile: so it is
 * asked again before it is taken for one that lies. REQUIRES: turn. */
static gm_status list_bound(list_state *list, uint32_t node) {
  gm__remote_tier *tier = list->tier;
  if (++list->pages > LIST_PAGES_MOST) return list_endless(tier, &tier->trouble);
  const uint64_t there = gm__max(list->pages, list->values);
  if (there <= list->most) return GM_OK;
  const gm_status status = list_count(list, node);
  if (status) return status;
  return there <= list->most ? GM_OK : list_endless(tier, &tier->trouble);
}

static gm_status list_page(list_state *list, uint32_t node, gm_error *err) {
  gm__remote_tier *tier = list->tier;
  gm__remote_request scan = {.node = node};
  const gm__reply *page = NULL;
  gm_status status = gm__remote_enter(tier, "gm_tier_list", err);
  if (status) return status;
  status = list_bound(list, node);
  if (!status) status = list_scan(list, &scan, &page);
  status = gm__remote_leave(tier, status, err);
  const gm__reply *key = page ? page->first : NULL;
  const uint64_t before = list->values;
  while (!status && key && list->more) {
    uint32_t count = 0;
    status = gm__remote_enter(tier, "gm_tier_list", err);
    if (!status) status = gm__remote_leave(tier, list_sizes(list, &key, &count), err);
    list_visit(list, count);
    gm__remote_run_end(tier, list->sizes, count);
  }
  list->step = list->values > before ? LIST_STEP : (uint32_t)gm__min(UINT64_C(2) * list->step, LIST_STEP_MOST);
  gm__remote_run_end(tier, &scan, 1);
  return status;
}

static gm_status list_node(list_state *list, uint32_t node, gm_error *err) {
  gm_status status = GM_OK;
  memcpy(list->cursor, "0", 2);
  list->pages = list->values = list->most = 0;
  list->counts = 0;
  list->step = LIST_STEP;
  do {
    status = list_page(list, node, err);
  } while (!status && list->more && strcmp(list->cursor, "0") != 0);
  return status;
}

static void list_end(list_state *list) {
  const gm_services *services = gm__remote_services(list->tier);
  size_t cursor = 0;
  for (gm__key_entry *entry = gm__key_map_next(&list->seen, &cursor, NULL), *next; entry; entry = next) {
    next = gm__key_map_next(&list->seen, &cursor, entry);
    gm__key_map_remove(&list->seen, entry);
    gm__release(services, entry, sizeof *entry);
  }
  gm__key_map_clear(&list->seen);
  gm__release(services, list, sizeof *list);
}

/* Which servers have values now. */
static gm_status list_masters(gm__remote_tier *tier, bool masters[GM__REMOTE_NODES], gm_error *err) {
  const gm_status status = gm__remote_enter(tier, "gm_tier_list", err);
  if (status) return status;
  for (uint32_t i = 0; i < tier->node_count; i++) masters[i] = tier->slots ? tier->nodes[i]->master : i == 0;
  return gm__remote_leave(tier, GM_OK, err);
}

gm_status gm__remote_list(void *own, const void *prefix, size_t prefix_bytes, gm_tier_visit visit, void *user,
                          gm_error *err) {
  gm__remote_tier *tier = own;
  bool masters[GM__REMOTE_NODES] = {false};
  list_state *list = gm__alloc(gm__remote_services(tier), sizeof *list);
  if (!list) return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, "gm_tier_list", "no host memory for a list");
  list->tier = tier;
  list->visit = visit;
  list->user = user;
  list->more = true;
  gm__key_map_init(&list->seen, gm__remote_services(tier));
  gm__remote_key_make(&list->begin, tier->where.prefix, prefix, prefix_bytes);
  list->own_bytes = list->begin.bytes - prefix_bytes;
  list_pattern(list);
  gm_status status = list_masters(tier, masters, err);
  for (uint32_t i = 0; i < GM__REMOTE_NODES && !status && list->more; i++) {
    if (masters[i]) status = list_node(list, i, err);
  }
  list_end(list);
  return status;
}

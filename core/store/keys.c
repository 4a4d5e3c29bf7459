#include "core/store/keys.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/cancel.h"
#include "core/store/put.h"
#include "core/store/remove.h"

/* Invariant: a visitor sees a list that was made before it was called first, so it may call the store. */

typedef struct key_list {
  const gm_services *services;
  size_t count, bytes;
  char *text; /* one key behind the other, each with its end mark */
  const char **keys;
} key_list;

static bool keys_below(const gm__key_entry *entry, const gm__store_key *prefix) {
  return gm__key_path_is_below((const char *)entry->key, entry->key_bytes, prefix->text, prefix->bytes);
}

static void keys_count(const gm__key_map *map, const gm__store_key *prefix, key_list *out) {
  size_t cursor = 0;
  for (gm__key_entry *entry = NULL; (entry = gm__key_map_next(map, &cursor, entry));) {
    if (!keys_below(entry, prefix)) continue;
    out->count++;
    out->bytes += entry->key_bytes + 1;
  }
}

static void keys_fill(const gm__key_map *map, const gm__store_key *prefix, key_list *out) {
  size_t cursor = 0, count = 0;
  char *at = out->text;
  for (gm__key_entry *entry = NULL; (entry = gm__key_map_next(map, &cursor, entry));) {
    if (!keys_below(entry, prefix)) continue;
    memcpy(at, entry->key, entry->key_bytes);
    out->keys[count++] = at;
    at += entry->key_bytes + 1;
  }
}

static int keys_order(const void *a, const void *b) { return strcmp(*(const char *const *)a, *(const char *const *)b); }

static void keys_end(key_list *list) {
  gm__release(list->services, list->text, list->bytes);
  gm__release(list->services, list->keys, list->count * sizeof(char *));
}

/* The caller ends the list, also after a failure. */
static gm_status keys_take(gm_store *store, const gm__key_map *map, const gm__store_key *prefix, const char *op,
                           key_list *out, gm_error *err) {
  *out = (key_list){.services = gm__context_services(store->ctx)};
  gm__mutex_lock(&store->lock);
  keys_count(map, prefix, out);
  out->text = gm__alloc(out->services, out->bytes);
  out->keys = gm__alloc_array(out->services, out->count, sizeof(char *));
  const bool ready = out->text && out->keys;
  if (ready) keys_fill(map, prefix, out);
  gm__mutex_unlock(&store->lock);
  if (!ready) return gm__put_no_memory(op, err);
  if (out->count) qsort(out->keys, out->count, sizeof(char *), keys_order);
  return GM_OK;
}

static gm_status keys_visit(gm_store *store, const gm__key_map *map, const char *text, gm_store_visit visit, void *user,
                            const char *op, gm_error *err) {
  gm__store_key prefix;
  key_list list;
  gm_status status = gm__store_key_read(text, true, &prefix, op, err);
  if (status) return status;
  if (!visit) return gm__bad_argument(err, op, "`visit` is NULL");
  status = keys_take(store, map, &prefix, op, &list, err);
  for (size_t i = 0; i < list.count && !status; i++) {
    if (!visit(user, list.keys[i])) break;
  }
  keys_end(&list);
  return status;
}

gm_status gm_store_list(gm_store *store, const char *prefix, gm_store_visit visit, void *user, gm_error *err) {
  GM__UNCANCELLED();
  const gm_status status = gm__store_check(store, "gm_store_list", err);
  return status ? status : keys_visit(store, &store->entries, prefix, visit, user, "gm_store_list", err);
}

/* ---- prefixes ---- */

gm_status gm_store_list_prefixes(gm_store *store, const char *prefix, gm_store_visit visit, void *user, gm_error *err) {
  static const char op[] = "gm_store_list_prefixes";
  const gm_status status = gm__store_check(store, op, err);
  return status ? status : keys_visit(store, &store->prefixes, prefix, visit, user, op, err);
}

static bool keys_declare(gm_store *store, const gm__store_key *prefix) {
  if (gm__key_map_find(&store->prefixes, prefix->text, prefix->bytes)) return true;
  const gm_services *services = gm__context_services(store->ctx);
  gm__key_entry *entry = gm__alloc(services, sizeof *entry);
  if (!entry) return false;
  if (!gm__key_map_prepare(&store->prefixes, entry, prefix->text, prefix->bytes)) {
    gm__release(services, entry, sizeof *entry);
    return false;
  }
  gm__key_map_link(&store->prefixes, entry);
  return true;
}

gm_status gm_store_declare_prefix(gm_store *store, const char *text, gm_error *err) {
  static const char op[] = "gm_store_declare_prefix";
  gm__store_key prefix;
  gm_status status = gm__store_check(store, op, err);
  if (!status) status = gm__store_key_read(text, false, &prefix, op, err);
  if (status) return status;
  gm__mutex_lock(&store->lock);
  const bool there = keys_declare(store, &prefix);
  gm__mutex_unlock(&store->lock);
  return there ? GM_OK : gm__put_no_memory(op, err);
}

void gm__prefixes_drop(gm_store *store, const gm__store_key *prefix) {
  size_t cursor = 0;
  for (gm__key_entry *entry = gm__key_map_next(&store->prefixes, &cursor, NULL), *next; entry; entry = next) {
    next = gm__key_map_next(&store->prefixes, &cursor, entry);
    if (!keys_below(entry, prefix)) continue;
    gm__key_map_remove(&store->prefixes, entry);
    gm__release(gm__context_services(store->ctx), entry, sizeof *entry);
  }
}

/* ---- clearing ---- */

static gm_status keys_remove(gm_store *store, const char *text, const char *op, gm_error *err) {
  gm__store_key key = {.bytes = strlen(text)};
  memcpy(key.text, text, key.bytes + 1);
  const gm_status status = gm__remove(store, &key, op, err);
  return status == GM_ERR_NOT_FOUND ? GM_OK : status; /* another thread was first */
}

gm_status gm_store_clear(gm_store *store, const char *text, gm_error *err) {
  GM__UNCANCELLED();
  static const char op[] = "gm_store_clear";
  gm__store_key prefix;
  key_list list;
  gm_status status = gm__store_check(store, op, err);
  if (!status) status = gm__store_key_read(text, true, &prefix, op, err);
  if (status) return status;
  status = keys_take(store, &store->entries, &prefix, op, &list, err);
  const size_t count = status ? 0 : list.count;
  for (size_t i = 0; i < count; i++) {
    const gm_status removed = keys_remove(store, list.keys[i], op, status ? NULL : err);
    if (!status) status = removed;
  }
  keys_end(&list);
  gm__mutex_lock(&store->lock);
  gm__prefixes_drop(store, &prefix);
  gm__mutex_unlock(&store->lock);
  return status;
}

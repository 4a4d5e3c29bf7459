#include "core/store/entry.h"

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

/* The things that a store lists: its keys, or its declared prefixes. */
typedef enum keys_kind { KEYS_OF_VALUES, KEYS_DECLARED } keys_kind;

/* Adds a key to a list that has memory, else to its figures. */
static void keys_add(key_list *list, const gm__key_entry *entry) {
  if (list->text) {
    list->keys[list->count] = memcpy(list->text + list->bytes, entry->key, entry->key_bytes);
  }
  list->count++;
  list->bytes += entry->key_bytes + 1;
}

/* Adds the keys at and below a prefix. REQUIRES: store lock. */
static void keys_walk(gm_store *store, keys_kind kind, const gm__store_name *prefix, key_list *list) {
  gm__folder *top = gm__folder_find(&store->folders, prefix->text, prefix->bytes);
  const gm__store_entry *own = kind == KEYS_OF_VALUES && prefix->bytes ? gm__store_find(store, prefix) : NULL;
  if (own) keys_add(list, &own->head);
  for (gm__folder *at = top; at; at = gm__folder_next(top, at)) {
    if (kind == KEYS_DECLARED && at->declared) keys_add(list, &at->head);
    for (gm__folder_item *item = kind == KEYS_OF_VALUES ? at->items : NULL; item; item = item->after) {
      keys_add(list, &gm__store_entry_of_item(item)->head);
    }
  }
}

static int keys_order(const void *a, const void *b) { return strcmp(*(const char *const *)a, *(const char *const *)b); }

static void keys_end(key_list *list) {
  gm__release(list->services, list->text, list->bytes);
  gm__release(list->services, list->keys, list->count * sizeof(char *));
}

/* The caller ends the list, also after a failure. */
static gm_status keys_take(gm_store *store, keys_kind kind, const gm__store_name *prefix, const char *op, key_list *out,
                           gm_error *err) {
  *out = (key_list){.services = gm__context_services(store->ctx)};
  gm__mutex_lock(&store->watch->lock);
  keys_walk(store, kind, prefix, out);
  out->text = gm__alloc(out->services, out->bytes);
  out->keys = gm__alloc_array(out->services, out->count, sizeof(char *));
  const bool ready = out->text && out->keys;
  if (ready) {
    out->count = out->bytes = 0;
    keys_walk(store, kind, prefix, out);
  }
  gm__mutex_unlock(&store->watch->lock);
  if (!ready) return gm__put_no_memory(op, err);
  if (out->count) qsort(out->keys, out->count, sizeof(char *), keys_order);
  return GM_OK;
}

static gm_status keys_visit(gm_store *store, keys_kind kind, const char *text, gm_store_visit visit, void *user,
                            const char *op, gm_error *err) {
  gm__store_key prefix;
  key_list list;
  gm_status status = gm__store_key_read(text, true, &prefix, op, err);
  if (status) return status;
  if (!visit) return gm__bad_argument(err, op, "`visit` is NULL");
  status = keys_take(store, kind, &prefix.name, op, &list, err);
  for (size_t i = 0; i < list.count && !status; i++) {
    if (!visit(user, list.keys[i])) break;
  }
  keys_end(&list);
  return status;
}

gm_status gm_store_list(gm_store *store, const char *prefix, gm_store_visit visit, void *user, gm_error *err) {
  GM__UNCANCELLED();
  const gm_status status = gm__store_check(store, "gm_store_list", err);
  return status ? status : keys_visit(store, KEYS_OF_VALUES, prefix, visit, user, "gm_store_list", err);
}

/* ---- prefixes ---- */

gm_status gm_store_list_prefixes(gm_store *store, const char *prefix, gm_store_visit visit, void *user, gm_error *err) {
  static const char op[] = "gm_store_list_prefixes";
  const gm_status status = gm__store_check(store, op, err);
  return status ? status : keys_visit(store, KEYS_DECLARED, prefix, visit, user, op, err);
}

gm_status gm_store_declare_prefix(gm_store *store, const char *text, gm_error *err) {
  static const char op[] = "gm_store_declare_prefix";
  gm__store_key prefix;
  gm_status status = gm__store_check(store, op, err);
  if (!status) status = gm__store_key_read(text, false, &prefix, op, err);
  if (status) return status;
  gm__mutex_lock(&store->watch->lock);
  const bool there = gm__folder_declare(&store->folders, prefix.text, prefix.name.bytes);
  gm__mutex_unlock(&store->watch->lock);
  return there ? GM_OK : gm__put_no_memory(op, err);
}

/* ---- clearing ---- */

static gm_status keys_remove(gm_store *store, const char *text, const char *op, gm_error *err) {
  const gm__store_name key = {.bytes = strlen(text), .text = text};
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
  status = keys_take(store, KEYS_OF_VALUES, &prefix.name, op, &list, err);
  const size_t count = status ? 0 : list.count;
  for (size_t i = 0; i < count; i++) {
    const gm_status removed = keys_remove(store, list.keys[i], op, status ? NULL : err);
    if (!status) status = removed;
  }
  keys_end(&list);
  gm__mutex_lock(&store->watch->lock);
  gm__folder *folder = gm__folder_find(&store->folders, prefix.text, prefix.name.bytes);
  if (folder) gm__folder_forget(&store->folders, folder);
  gm__mutex_unlock(&store->watch->lock);
  return status;
}

#include <string.h>

#include "core/base/cancel.h"
#include "core/store/down.h"
#include "core/store/get.h"
#include "core/store/put.h"
#include "core/store/remove.h"
#include "core/store/tier_copy.h"

/* Two keys. Invariants of a move: the value that the source has in the moment of the move goes, and no other one. From
 * then on the source is busy, so what is put to it later finds the key ended. A value that the lowest tier has stays
 * there under one of the keys, so a crash in the middle loses nothing that was flushed. */

typedef struct move_keys {
  gm__store_key from, to;
  bool same;
} move_keys;

static gm_status move_read(const gm_store *store, const char *from, const char *to, move_keys *out, const char *op,
                           gm_error *err) {
  gm_status status = gm__store_check(store, op, err);
  if (!status) status = gm__store_key_read(from, false, &out->from, op, err);
  if (!status) status = gm__store_key_read(to, false, &out->to, op, err);
  const size_t bytes = status ? 0 : out->from.name.bytes;
  out->same = !status && bytes == out->to.name.bytes && memcmp(out->from.text, out->to.text, bytes) == 0;
  return status;
}

gm_status gm_store_copy(gm_store *store, const char *from, const char *to, gm_error *err) {
  GM__UNCANCELLED();
  static const char op[] = "gm_store_copy";
  move_keys keys;
  gm_value *value = NULL;
  gm_status status = move_read(store, from, to, &keys, op, err);
  if (!status) status = gm__get(store, &keys.from.name, 0, op, &value, err);
  if (status) return status;
  if (!keys.same) status = gm__put(store, &keys.to.name, value, GM__PUT_KEEPS_USERS, op, err);
  gm_value_release(value, NULL);
  if (!status) gm__down_to_bounds(store);
  return status;
}

/* ---- moving ---- */

typedef struct move_entries {
  gm__store_entry *from, *to;
} move_entries;

/* Waits until neither entry is busy. *out has NULL for a key without one. REQUIRES: store lock. */
static void move_wait(gm_store *store, const move_keys *keys, move_entries *out) {
  for (;;) {
    out->from = gm__store_find(store, &keys->from.name);
    out->to = gm__store_find(store, &keys->to.name);
    if (!(out->from && out->from->busy) && !(out->to && out->to->busy)) return;
    gm__cond_wait(&store->changed, &store->watch->lock);
  }
}

/* Gives the target the value of the source, if that is on the device. Then both are busy. *again: it went down
 * meanwhile. */
static gm_status move_value(gm_store *store, const move_keys *keys, move_entries *out, bool *again, const char *op,
                            gm_error *err) {
  gm__leftover left = {NULL, NULL};
  gm_status status = GM_OK;
  gm__mutex_lock(&store->watch->lock);
  move_wait(store, keys, out);
  if (!out->from) status = gm__store_missing(&keys->from.name, op, err);
  *again = out->from && !out->from->value;
  const bool now = out->from && !*again;
  if (now && !out->to) out->to = gm__store_entry_of(store, &keys->to.name);
  if (now && !out->to) status = gm__put_no_memory(op, err);
  if (now && out->to) {
    gm_value_retain(out->from->value);
    gm__store_replace(store, out->to, out->from->value, &left);
    out->from->busy = out->to->busy = true;
    store->stats.puts++;
  }
  gm__mutex_unlock(&store->watch->lock);
  gm__leftover_drop(&left);
  return status;
}

/* The lowest tier has under the target, too, what it has under the source, if it has room for both. */
static gm_status move_copy_below(gm_store *store, const move_entries *both, gm_error *err) {
  gm__image *image = NULL;
  if (!store->tier_count || !(both->from->fresh >> (store->tier_count - 1) & 1)) return GM_OK;
  gm_status status = gm__image_write(both->to->value, NULL, &image, err);
  if (!status) status = gm__tier_copy_put_lowest(store, both->to, image, err);
  gm__image_release(image);
  return status == GM_ERR_OVER_LIMIT ? GM_OK : status;
}

gm_status gm_store_move(gm_store *store, const char *from, const char *to, gm_error *err) {
  GM__UNCANCELLED();
  static const char op[] = "gm_store_move";
  move_keys keys;
  move_entries both = {NULL, NULL};
  bool again = true;
  gm_status status = move_read(store, from, to, &keys, op, err);
  while (!status && again) {
    gm_value *value = NULL; /* brought to the device, and held there */
    status = gm__get(store, &keys.from.name, 0, op, &value, err);
    if (!status && keys.same) again = false;
    if (!status && !keys.same) status = move_value(store, &keys, &both, &again, op, err);
    gm_value_release(value, NULL);
  }
  if (status || keys.same) return status;
  status = move_copy_below(store, &both, err);
  gm__store_idle(store, both.to);
  if (status) {
    gm__store_idle(store, both.from);
  } else {
    status = gm__remove_entry(store, both.from, err);
  }
  gm__down_unused(store);
  gm__down_to_bounds(store);
  return status;
}

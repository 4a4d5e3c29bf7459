#include "core/store/put.h"

#include "core/base/alloc.h"
#include "core/base/cancel.h"
#include "core/store/down.h"
#include "core/store/room.h"

/* Invariant: all that can fail is done before the first entry changes. */

gm_status gm__put_no_memory(const char *op, gm_error *err) {
  return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, op, "no host memory for a key");
}

gm_status gm__put(gm_store *store, const gm__store_name *key, gm_value *value, gm__put_count count, const char *op,
                  gm_error *err) {
  gm__leftover left = {NULL, NULL};
  gm__mutex_lock(&store->watch->lock);
  gm__store_entry *entry = gm__store_find_idle(store, key);
  if (!entry) entry = gm__store_entry_of(store, key);
  if (entry) {
    gm_value_retain(value);
    gm__store_replace(store, entry, value, &left);
    if (count == GM__PUT_ONE_USER) entry->uses = 1;
    store->stats.puts++;
  }
  gm__mutex_unlock(&store->watch->lock);
  gm__leftover_drop(&left);
  if (!entry) return gm__put_no_memory(op, err);
  gm__down_unused(store);
  return GM_OK;
}

static gm_status put_value_check(const gm_store *store, const gm_value *value, const char *op, gm_error *err) {
  const gm_status status = gm__value_check(value, op, err);
  if (status || value->ctx == store->ctx) return status;
  return gm__bad_argument(err, op, "`value` is of another context");
}

static gm_status put_value(gm_store *store, const char *text, gm_value *value, gm__put_count count, const char *op,
                           gm_error *err) {
  gm__store_key key;
  gm_value *there = NULL;
  gm_status status = gm__store_check(store, op, err);
  if (!status) status = gm__store_key_read(text, false, &key, op, err);
  if (!status) status = put_value_check(store, value, op, err);
  if (!status) status = gm__room_value(store, value, &there, err);
  if (status) return status;
  status = gm__put(store, &key.name, there, count, op, err);
  gm_value_release(there, NULL);
  if (!status) gm__down_to_bounds(store);
  return status;
}

gm_status gm_store_put(gm_store *store, const char *key, gm_value *value, gm_error *err) {
  GM__UNCANCELLED();
  return put_value(store, key, value, GM__PUT_KEEPS_USERS, "gm_store_put", err);
}

gm_status gm_store_allocate(gm_store *store, const char *key, gm_value *value, gm_error *err) {
  GM__UNCANCELLED();
  return put_value(store, key, value, GM__PUT_ONE_USER, "gm_store_allocate", err);
}

gm_status gm_store_put_tensor(gm_store *store, const char *text, const gm_tensor_desc *desc, const void *data,
                              gm_error *err) {
  GM__UNCANCELLED();
  static const char op[] = "gm_store_put_tensor";
  gm__store_key key;
  gm_tensor_desc asked;
  uint64_t bytes = 0;
  gm_value *value = NULL;
  gm_status status = gm__store_check(store, op, err);
  if (!status) status = gm__store_key_read(text, false, &key, op, err);
  if (!status) status = gm__tensor_read(desc, &asked, &bytes, op, err);
  if (!status && bytes && !data) status = gm__bad_argument(err, op, "`data` is NULL");
  const gm__transfer from = {.kind = GM__TRANSFER_WRITE, .src = data};
  if (!status) status = gm__room_tensor(store, &asked, bytes, &from, &value, err);
  if (status) return status;
  status = gm__put(store, &key.name, value, GM__PUT_KEEPS_USERS, op, err);
  gm_value_release(value, NULL);
  if (!status) gm__down_to_bounds(store);
  return status;
}

/* ---- several at once ---- */

typedef struct put_batch {
  gm_store *store;
  size_t count, ready; /* ready: keys and values that are set */
  gm__store_names keys;
  gm_value **values;
  gm__leftover *left;
} put_batch;

static gm_status put_batch_open(put_batch *batch, gm_error *err) {
  const gm_services *services = gm__context_services(batch->store->ctx);
  batch->values = gm__alloc_array(services, batch->count, sizeof(gm_value *));
  batch->left = gm__alloc_array(services, batch->count, sizeof(gm__leftover));
  return batch->values && batch->left ? GM_OK : gm__put_no_memory("gm_store_put_many", err);
}

static void put_batch_close(put_batch *batch) {
  const gm_services *services = gm__context_services(batch->store->ctx);
  for (size_t i = 0; i < batch->ready; i++) gm_value_release(batch->values[i], NULL);
  for (size_t i = 0; batch->left && i < batch->count; i++) gm__leftover_drop(&batch->left[i]);
  gm__store_names_end(batch->store, &batch->keys);
  gm__release(services, batch->values, batch->count * sizeof(gm_value *));
  gm__release(services, batch->left, batch->count * sizeof(gm__leftover));
}

static gm_status put_batch_prepare(put_batch *batch, const char *const *keys, gm_value *const *values, gm_error *err) {
  static const char op[] = "gm_store_put_many";
  gm_status status = put_batch_open(batch, err);
  if (!status) status = gm__store_names_read(batch->store, keys, batch->count, &batch->keys, op, err);
  for (size_t i = 0; i < batch->count && !status; i++) {
    status = put_value_check(batch->store, values[i], op, err);
  }
  for (; batch->ready < batch->count && !status; batch->ready += !status) {
    status = gm__room_value(batch->store, values[batch->ready], &batch->values[batch->ready], err);
  }
  return status;
}

/* Waits until none of the entries is busy. REQUIRES: store lock. */
static void put_batch_wait(const put_batch *batch) {
  gm_store *store = batch->store;
  for (size_t i = 0; i < batch->count;) {
    const gm__store_entry *entry = gm__store_find(store, &batch->keys.at[i]);
    const bool busy = entry && entry->busy;
    if (busy) gm__cond_wait(&store->changed, &store->watch->lock);
    i = busy ? 0 : i + 1;
  }
}

/* An entry without a value is one that the batch made. REQUIRES: store lock. */
static bool put_batch_entries(const put_batch *batch) {
  gm_store *store = batch->store;
  size_t made = 0;
  while (made < batch->count && gm__store_entry_of(store, &batch->keys.at[made])) made++;
  if (made == batch->count) return true;
  for (size_t i = 0; i < made; i++) {
    gm__store_entry *entry = gm__store_find(store, &batch->keys.at[i]);
    gm__leftover none = {NULL, NULL};
    if (entry && !entry->value && !entry->image && !entry->copies) gm__store_entry_end(store, entry, &none);
  }
  return false;
}

static bool put_batch_commit(put_batch *batch) {
  gm_store *store = batch->store;
  gm__mutex_lock(&store->watch->lock);
  put_batch_wait(batch);
  const bool ready = put_batch_entries(batch);
  for (size_t i = 0; i < batch->count && ready; i++) {
    gm_value_retain(batch->values[i]);
    gm__store_replace(store, gm__store_find(store, &batch->keys.at[i]), batch->values[i], &batch->left[i]);
    store->stats.puts++;
  }
  gm__mutex_unlock(&store->watch->lock);
  return ready;
}

gm_status gm_store_put_many(gm_store *store, const char *const *keys, gm_value *const *values, size_t count,
                            gm_error *err) {
  GM__UNCANCELLED();
  static const char op[] = "gm_store_put_many";
  gm_status status = gm__store_check(store, op, err);
  if (status || !count) return status;
  if (!keys || !values) return gm__bad_argument(err, op, "`%s` is NULL", keys ? "values" : "keys");
  put_batch batch = {.store = store, .count = count};
  status = put_batch_prepare(&batch, keys, values, err);
  if (!status && !put_batch_commit(&batch)) status = gm__put_no_memory(op, err);
  put_batch_close(&batch);
  if (status) return status;
  gm__down_unused(store);
  gm__down_to_bounds(store);
  return GM_OK;
}

#include <inttypes.h>
#include <stdatomic.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/error.h"
#include "core/base/key_map.h"
#include "core/context/context.h"
#include "core/tier/tier_kinds.h"

/* Invariants. An entry points to its newest value, and is one user of it; each open value is one more. The lock guards
 * the map and the figures. Bytes of a value never change. */

typedef struct host_value {
  _Atomic uint32_t users;
  uint64_t bytes;
  unsigned char data[];
} host_value;

typedef struct host_entry {
  gm__key_entry head;
  host_value *value;
} host_entry;

typedef struct host_tier {
  gm_context *ctx;
  uint64_t max_bytes;
  gm__mutex lock;
  gm__key_map entries;
  gm_tier_stats stats;
} host_tier;

static const gm_services *host_services(const host_tier *tier) { return gm__context_services(tier->ctx); }

static void host_value_drop(const host_tier *tier, host_value *value) {
  if (!value || atomic_fetch_sub(&value->users, 1) != 1) return;
  gm__release(host_services(tier), value, sizeof *value + (size_t)value->bytes);
}

static gm_status host_open(gm_context *ctx, const char *where, const gm_tier_params *params, void **out_tier,
                           gm_error *err) {
  (void)where;
  host_tier *tier = gm__alloc(gm__context_services(ctx), sizeof *tier);
  if (!tier) return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, "gm_tier_open", "no host memory for a tier");
  tier->ctx = ctx;
  tier->max_bytes = params->max_bytes ? params->max_bytes : UINT64_MAX;
  gm__mutex_init(&tier->lock, GM__RANK_LEAF);
  gm__key_map_init(&tier->entries, gm__context_services(ctx));
  *out_tier = tier;
  return GM_OK;
}

/* Takes an entry out of the map, and returns its value, of which the caller is a user. */
static host_value *host_entry_end(host_tier *tier, host_entry *entry) {
  host_value *value = entry->value;
  tier->stats.values--;
  tier->stats.value_bytes -= value->bytes;
  gm__key_map_remove(&tier->entries, &entry->head);
  gm__release(host_services(tier), entry, sizeof *entry);
  return value;
}

static void host_close(void *own) {
  host_tier *tier = own;
  size_t cursor = 0;
  for (gm__key_entry *entry = gm__key_map_next(&tier->entries, &cursor, NULL), *next; entry; entry = next) {
    next = gm__key_map_next(&tier->entries, &cursor, entry);
    host_value_drop(tier, host_entry_end(tier, (host_entry *)entry));
  }
  gm__key_map_clear(&tier->entries);
  if (!gm__context_forked(tier->ctx)) gm__mutex_destroy(&tier->lock);
  gm__release(host_services(tier), tier, sizeof *tier);
}

static host_value *host_value_make(const host_tier *tier, const gm_tier_part *parts, size_t count) {
  uint64_t bytes = 0, at = 0;
  for (size_t i = 0; i < count; i++) bytes += parts[i].bytes;
  if (bytes > SIZE_MAX - sizeof(host_value)) return NULL;
  host_value *value = gm__alloc(host_services(tier), sizeof *value + (size_t)bytes);
  if (!value) return NULL;
  value->users = 1;
  value->bytes = bytes;
  for (size_t i = 0; i < count; at += parts[i++].bytes) {
    if (parts[i].bytes) memcpy(value->data + at, parts[i].data, (size_t)parts[i].bytes);
  }
  return value;
}

/* The entry of the key, made without a value where there is none. NULL: no host memory. REQUIRES: tier lock. */
static host_entry *host_entry_of(host_tier *tier, const void *key, size_t key_bytes) {
  host_entry *entry = (host_entry *)gm__key_map_find(&tier->entries, key, key_bytes);
  if (entry) return entry;
  entry = gm__alloc(host_services(tier), sizeof *entry);
  if (!entry) return NULL;
  if (!gm__key_map_prepare(&tier->entries, &entry->head, key, key_bytes)) {
    gm__release(host_services(tier), entry, sizeof *entry);
    return NULL;
  }
  gm__key_map_link(&tier->entries, &entry->head);
  return entry;
}

/* Links a value, and sets *out_old to the one that it replaces. REQUIRES: tier lock. */
static gm_status host_link(host_tier *tier, const void *key, size_t key_bytes, host_value *value, host_value **out_old,
                           gm_error *err) {
  const host_entry *found = (host_entry *)gm__key_map_find(&tier->entries, key, key_bytes);
  const uint64_t kept = tier->stats.value_bytes - (found ? found->value->bytes : 0);
  if (kept > tier->max_bytes || value->bytes > tier->max_bytes - kept) {
    return gm__fail(err, GM_ERR_OVER_LIMIT, "gm_tier_put",
                    "%" PRIu64 " bytes beside %" PRIu64 " are more than the tier's %" PRIu64, value->bytes, kept,
                    tier->max_bytes);
  }
  host_entry *entry = host_entry_of(tier, key, key_bytes);
  if (!entry) return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, "gm_tier_put", "no host memory for a key");
  *out_old = entry->value;
  if (!entry->value) tier->stats.values++;
  tier->stats.value_bytes = kept + value->bytes;
  tier->stats.written_bytes += value->bytes;
  tier->stats.puts++;
  entry->value = value;
  return GM_OK;
}

static gm_status host_put(void *own, const void *key, size_t key_bytes, const gm_tier_part *parts, size_t count,
                          gm_error *err) {
  host_tier *tier = own;
  host_value *old = NULL, *value = host_value_make(tier, parts, count);
  if (!value) return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, "gm_tier_put", "no host memory for the value");
  gm__mutex_lock(&tier->lock);
  const gm_status status = host_link(tier, key, key_bytes, value, &old, err);
  gm__mutex_unlock(&tier->lock);
  host_value_drop(tier, status ? value : old);
  return status;
}

static gm_status host_missing(const char *op, gm_error *err) {
  return gm__fail(err, GM_ERR_NOT_FOUND, op, "the tier has no value of that key");
}

static gm_status host_value_open(void *own, const void *key, size_t key_bytes, void **out_value, uint64_t *out_bytes,
                                 gm_error *err) {
  host_tier *tier = own;
  host_value *value = NULL;
  gm__mutex_lock(&tier->lock);
  const host_entry *entry = (host_entry *)gm__key_map_find(&tier->entries, key, key_bytes);
  if (entry) value = entry->value;
  if (value) atomic_fetch_add(&value->users, 1);
  tier->stats.gets += value != NULL;
  tier->stats.misses += !value;
  gm__mutex_unlock(&tier->lock);
  if (!value) return host_missing("gm_tier_value_open", err);
  *out_value = value;
  *out_bytes = value->bytes;
  return GM_OK;
}

static gm_status host_value_read(void *own, void *value, uint64_t offset, void *dst, uint64_t bytes, gm_error *err) {
  host_tier *tier = own;
  (void)err;
  memcpy(dst, ((host_value *)value)->data + offset, (size_t)bytes);
  gm__mutex_lock(&tier->lock);
  tier->stats.read_bytes += bytes;
  gm__mutex_unlock(&tier->lock);
  return GM_OK;
}

static void host_value_close(void *own, void *value) { host_value_drop(own, value); }

static gm_status host_remove(void *own, const void *key, size_t key_bytes, gm_error *err) {
  host_tier *tier = own;
  gm__mutex_lock(&tier->lock);
  host_entry *entry = (host_entry *)gm__key_map_find(&tier->entries, key, key_bytes);
  host_value *value = entry ? host_entry_end(tier, entry) : NULL;
  tier->stats.removes += value != NULL;
  gm__mutex_unlock(&tier->lock);
  if (!value) return host_missing("gm_tier_remove", err);
  host_value_drop(tier, value);
  return GM_OK;
}

static gm_status host_list(void *own, const void *prefix, size_t prefix_bytes, gm_tier_visit visit, void *user,
                           gm_error *err) {
  host_tier *tier = own;
  size_t cursor = 0;
  gm__key_entry *entry = NULL;
  (void)err;
  gm__mutex_lock(&tier->lock);
  do {
    entry = gm__key_map_next_under(&tier->entries, &cursor, entry, prefix, prefix_bytes);
  } while (entry && visit(user, entry->key, entry->key_bytes, ((host_entry *)entry)->value->bytes));
  gm__mutex_unlock(&tier->lock);
  return GM_OK;
}

static gm_status host_flush(void *own, gm_error *err) {
  (void)own, (void)err;
  return GM_OK;
}

static void host_stats(void *own, gm_tier_stats *out) {
  host_tier *tier = own;
  const uint32_t size = out->struct_size;
  gm__mutex_lock(&tier->lock);
  *out = tier->stats;
  gm__mutex_unlock(&tier->lock);
  out->struct_size = size;
  out->stored_bytes = out->value_bytes;
}

const gm_tier_ops gm__host_tier_ops = {.struct_size = sizeof gm__host_tier_ops,
                                       .abi = GM_TIER_ABI,
                                       .name = "host",
                                       .open = host_open,
                                       .close = host_close,
                                       .put = host_put,
                                       .value_open = host_value_open,
                                       .value_read = host_value_read,
                                       .value_close = host_value_close,
                                       .remove = host_remove,
                                       .list = host_list,
                                       .flush = host_flush,
                                       .stats = host_stats};

#include "core/tier/disk/disk_tier.h"

#include <stdio.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/error.h"
#include "core/tier/disk/disk_codec.h"
#include "core/tier/disk/disk_file.h"
#include "core/tier/disk/disk_flush.h"
#include "core/tier/disk/disk_get.h"
#include "core/tier/disk/disk_put.h"
#include "core/tier/disk/disk_scan.h"
#include "core/tier/tier_kinds.h"

static void disk_forget_all(gm__disk_tier *tier) {
  size_t cursor = 0;
  for (gm__key_entry *entry = gm__key_map_next(&tier->entries, &cursor, NULL), *next; entry; entry = next) {
    next = gm__key_map_next(&tier->entries, &cursor, entry);
    gm__key_map_remove(&tier->entries, entry);
    gm__release(gm__disk_services(tier), entry, sizeof(gm__disk_entry));
  }
  gm__key_map_clear(&tier->entries);
}

static void disk_close(void *own) {
  gm__disk_tier *tier = own;
  const gm_services *services = gm__disk_services(tier);
  disk_forget_all(tier);
  gm__disk_file_drop(tier, tier->file);
  gm__data_place_close(&tier->place);
  gm__release(services, tier->replaced, tier->replaced_capacity * sizeof(uint64_t));
  gm__release(services, tier->chunk, (size_t)(2 * tier->buffer_bytes));
  if (!gm__context_forked(tier->ctx)) {
    gm__mutex_destroy(&tier->lock);
    gm__mutex_destroy(&tier->writer);
  }
  gm__release(services, tier, sizeof *tier);
}

static gm_status disk_check(const char *where, const gm_tier_params *params, gm_error *err) {
  static const char op[] = "gm_tier_open";
  if (!*where || strlen(where) >= GM__FILE_PATH_SIZE) {
    return gm__bad_argument(err, op, "`where` is empty or longer than a path may be");
  }
  if (gm__disk_codec_is_there(params->codec)) return GM_OK;
  return gm__fail(err, GM_ERR_NOT_SUPPORTED, op, "gm has no %s: it was built without it, or its library is missing",
                  gm__disk_codec_name(params->codec));
}

static gm_status disk_open(gm_context *ctx, const char *where, const gm_tier_params *params, void **out_tier,
                           gm_error *err) {
  gm_status status = disk_check(where, params, err);
  if (status) return status;
  gm__disk_tier *tier = gm__alloc(gm__context_services(ctx), sizeof *tier);
  if (!tier) return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, "gm_tier_open", "no host memory for a tier");
  tier->ctx = ctx;
  tier->params = *params;
  snprintf(tier->path, sizeof tier->path, "%s", where);
  tier->place.folder = -1;
  gm__mutex_init(&tier->writer, GM__RANK_TIER);
  gm__mutex_init(&tier->lock, GM__RANK_LEAF);
  gm__key_map_init(&tier->entries, gm__context_services(ctx));
  status = gm__data_place_open(where, &tier->place, err);
  if (!status) status = gm__disk_file_open(tier, &tier->file, err);
  if (!status) status = gm__disk_scan(tier, err);
  if (status) {
    disk_close(tier);
    return status;
  }
  *out_tier = tier;
  return GM_OK;
}

static gm_status disk_list(void *own, const void *prefix, size_t prefix_bytes, gm_tier_visit visit, void *user,
                           gm_error *err) {
  gm__disk_tier *tier = own;
  size_t cursor = 0;
  gm__key_entry *entry = NULL;
  (void)err;
  gm__mutex_lock(&tier->lock);
  do {
    entry = gm__key_map_next_under(&tier->entries, &cursor, entry, prefix, prefix_bytes);
  } while (entry && visit(user, entry->key, entry->key_bytes, ((gm__disk_entry *)entry)->value_bytes));
  gm__mutex_unlock(&tier->lock);
  return GM_OK;
}

static void disk_stats(void *own, gm_tier_stats *out) {
  gm__disk_tier *tier = own;
  const uint32_t size = out->struct_size;
  gm__mutex_lock(&tier->writer);
  gm__mutex_lock(&tier->lock);
  *out = tier->stats;
  out->struct_size = size;
  out->stored_bytes = tier->end;
  gm__mutex_unlock(&tier->lock);
  gm__mutex_unlock(&tier->writer);
}

const gm_tier_ops gm__disk_tier_ops = {.struct_size = sizeof gm__disk_tier_ops,
                                       .abi = GM_TIER_ABI,
                                       .name = "disk",
                                       .open = disk_open,
                                       .close = disk_close,
                                       .put = gm__disk_put,
                                       .value_open = gm__disk_value_open,
                                       .value_read = gm__disk_value_read,
                                       .value_info = gm__disk_value_info,
                                       .value_close = gm__disk_value_close,
                                       .remove = gm__disk_remove,
                                       .list = disk_list,
                                       .flush = gm__disk_flush,
                                       .stats = disk_stats};

#include "core/block/share.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/base/cancel.h"
#include "core/base/descriptor.h"
#include "core/base/error.h"
#include "core/base/sized.h"
#include "core/block/access.h"
#include "core/device/import.h"
#include "core/discovery/registry.h"
#include "core/pool/wrap.h"

static const char *share_kind_name(gm_share_kind kind) {
  static const char *const names[] = {"none", "IPC", "FD", "DMABUF"};
  return (unsigned)kind <= GM_SHARE_DMABUF ? names[kind] : "?";
}

/* Does memory of that kind travel as a descriptor? */
static bool share_has_descriptor(gm_share_kind kind) { return kind == GM_SHARE_FD || kind == GM_SHARE_DMABUF; }

static uint32_t share_kinds(const gm_device *device) {
  uint32_t kinds = 0;
  for (uint32_t i = 0; i < device->type_count; i++) kinds |= device->types[i].share_kinds;
  return kinds;
}

static gm_status share_check_kind(const gm_device *device, gm_share_kind kind, const char *op, gm_error *err) {
  char has[32] = "";
  const uint32_t kinds = share_kinds(device);
  if (kinds >> kind & 1) return GM_OK;
  for (int each = GM_SHARE_IPC, length = 0; each <= GM_SHARE_DMABUF; each++) {
    if (!(kinds >> each & 1)) continue;
    length += snprintf(has + length, sizeof has - (size_t)length, " %s", share_kind_name((gm_share_kind)each));
  }
  return gm__fail(err, GM_ERR_NOT_SUPPORTED, op, "%s (%s) shares no memory by %s; it has:%s", device->info.name,
                  device->info.backend, share_kind_name(kind), has[0] ? has : " none");
}

gm_status gm__share_check_pool(const gm_device *device, const gm_pool_params *params, gm_error *err) {
  static const char op[] = "gm_pool_create";
  if (params->share == GM_SHARE_NONE) return GM_OK;
  if ((unsigned)params->share > GM_SHARE_DMABUF) {
    return gm__bad_argument(err, op, "`params->share` is %u, none of gm_share_kind", (unsigned)params->share);
  }
  if (params->upstream) {
    return gm__bad_argument(err, op, "`params->share`: the memory of an upstream is not gm's to share");
  }
  return share_check_kind(device, params->share, op, err);
}

gm_status gm__share_check_words(const gm_shared *shared, const char *op, gm_error *err) {
  if (shared->kind == GM_SHARE_NONE || (unsigned)shared->kind > GM_SHARE_DMABUF) {
    return gm__bad_argument(err, op, "`shared->kind` is %u, none that memory is shared by", (unsigned)shared->kind);
  }
  const bool inside = shared->offset <= shared->whole_bytes && shared->bytes <= shared->whole_bytes - shared->offset;
  if (shared->bytes == 0 || !inside) {
    return gm__bad_argument(err, op, "`shared`: %" PRIu64 " bytes at %" PRIu64 " of %" PRIu64 " cannot be",
                            shared->bytes, shared->offset, shared->whole_bytes);
  }
  if (share_has_descriptor(shared->kind) ? shared->fd < 0 : shared->fd != -1) {
    return gm__bad_argument(err, op, "`shared->fd` is %d, and the kind is %s", (int)shared->fd,
                            share_kind_name(shared->kind));
  }
  if (memchr(shared->backend, 0, sizeof shared->backend)) return GM_OK;
  return gm__bad_argument(err, op, "`shared->backend` does not end");
}

/* ---- export ---- */

/* Checks the backend's answer, which is input like any other. */
static gm_status share_check_answer(const gm_pool *pool, const gm_memory *memory, gm_shared *given, gm_error *err) {
  gm_error why;
  given->struct_size = sizeof *given;
  if (!share_has_descriptor(given->kind)) given->fd = -1;
  const bool fits = given->kind == pool->heap.provider.share && given->bytes >= memory->bytes;
  if (fits && gm__share_check_words(given, "share_export", &why) == GM_OK) return GM_OK;
  const gm_status status =
      gm__fail(err, GM_ERR_DRIVER, "share_export", "backend %s answered success with %s: %s",
               pool->device->info.backend, share_kind_name(given->kind), fits ? why.message : "not what was asked for");
  gm_shared_close(given);
  return status;
}

/* Writes where the memory comes from. A descriptor for other drivers is for other devices, too, and stays unsigned. */
static void share_sign(const gm_device *device, gm_shared *shared) {
  memset(shared->device_uuid, 0, sizeof shared->device_uuid);
  memset(shared->backend, 0, sizeof shared->backend);
  if (shared->kind == GM_SHARE_DMABUF) return;
  memcpy(shared->device_uuid, device->info.uuid, sizeof shared->device_uuid);
  memcpy(shared->backend, device->info.backend, sizeof shared->backend);
}

static gm_status share_check_block(const gm_pool *pool, const gm_memory *memory, gm_error *err) {
  static const char op[] = "gm_block_export";
  const gm_device *device = pool->device;
  if (pool->heap.provider.share == GM_SHARE_NONE) {
    return gm__bad_argument(err, op, "pool \"%s\" was not made to share (gm_pool_params.share)",
                            pool->heap.provider.name);
  }
  if (memory->wrapped) return gm__bad_argument(err, op, "`block` is wrapped or imported: its owner can export it");
  if (memory->type < device->type_count && device->types[memory->type].share_kinds >> pool->heap.provider.share & 1)
    return GM_OK;
  return gm__fail(err, GM_ERR_NOT_SUPPORTED, op, "`block` is memory beside the device, which is not shared");
}

gm_status gm_block_export(gm_pool *pool, const gm_block *block, gm_shared *out, gm_error *err) {
  GM__UNCANCELLED();
  static const char op[] = "gm_block_export";
  gm__access access;
  gm_status status = gm__access_open(pool, block, 0, block ? block->bytes : 0, op, &access, err);
  if (!status) status = gm__sized_check(out, sizeof *out, op, "out", err);
  if (status) return status;
  status = share_check_block(pool, &access.memory, err);
  if (status) return status;
  gm_shared given = {.struct_size = sizeof given, .fd = -1};
  status =
      access.device->ops->share_export(access.device->handle, &access.memory, pool->heap.provider.share, &given, err);
  if (!status) status = share_check_answer(pool, &access.memory, &given, err);
  if (status) return status;
  given.offset += access.offset;
  given.bytes = access.bytes;
  given.type = access.memory.type;
  share_sign(access.device, &given);
  gm__sized_out(out, &given, sizeof given);
  return GM_OK;
}

/* ---- import ---- */

/* "NVIDIA H100 (cuda 1)", or the UUID of a device that this process does not see. */
static void share_device_name(const gm_device *device, const uint8_t *uuid, char *out, size_t capacity) {
  struct gm__driver *driver = device->driver;
  int length = 0;
  gm__mutex_lock(&driver->lock);
  for (uint32_t i = 0; i < driver->entry_count && length == 0; i++) {
    const gm_device_entry *entry = &driver->entries[i];
    if (memcmp(entry->id.uuid, uuid, GM_UUID_BYTES) != 0) continue;
    length =
        snprintf(out, capacity, "%.80s (%.15s %" PRIu32 ")", entry->info.name, entry->id.backend, entry->info.index);
  }
  gm__mutex_unlock(&driver->lock);
  if (length > 0) return;
  length = snprintf(out, capacity, "a device that is not here, ");
  for (int i = 0; i < GM_UUID_BYTES; i++) {
    length += snprintf(out + length, capacity - (size_t)length, "%02x", (unsigned)uuid[i]);
  }
}

static gm_status share_check_origin(const gm_device *device, const gm_shared *shared, gm_error *err) {
  static const char op[] = "gm_block_import";
  static const uint8_t any[GM_UUID_BYTES];
  char theirs[128], ours[128];
  if (shared->kind == GM_SHARE_DMABUF) return GM_OK;
  if (shared->backend[0] && strcmp(shared->backend, device->info.backend) != 0) {
    return gm__bad_argument(err, op,
                            "`shared` is memory of backend %s, and %s is a device of %s: only DMABUF is for both",
                            shared->backend, device->info.name, device->info.backend);
  }
  const bool same = memcmp(shared->device_uuid, device->info.uuid, GM_UUID_BYTES) == 0;
  if (same || memcmp(shared->device_uuid, any, sizeof any) == 0) return GM_OK;
  share_device_name(device, shared->device_uuid, theirs, sizeof theirs);
  share_device_name(device, device->info.uuid, ours, sizeof ours);
  return gm__bad_argument(err, op, "`shared` is memory of %s, and the pool is of %s: import it there", theirs, ours);
}

gm_status gm_block_import(gm_pool *pool, const gm_shared *shared, gm_block *out, gm_error *err) {
  GM__UNCANCELLED();
  static const char op[] = "gm_block_import";
  gm__import *opened = NULL;
  gm_status status = gm__pool_alive(pool, op, err);
  if (status) return status;
  if (!out) return gm__bad_argument(err, op, "`out` is NULL");
  gm_shared came;
  status = gm__sized_in(&came, sizeof came, shared, op, "shared", err);
  if (!status) status = gm__share_check_words(&came, op, err);
  if (!status) status = share_check_kind(pool->device, came.kind, op, err);
  if (!status) status = share_check_origin(pool->device, &came, err);
  if (!status) status = gm__import_open(pool->device, &came, &opened, err);
  if (status) return status;
  status = gm__pool_adopt(pool, gm__import_memory(opened), came.offset, came.bytes, opened, out, err);
  if (status) gm__import_close(pool->device, opened);
  return status;
}

void gm_shared_close(gm_shared *shared) {
  GM__UNCANCELLED();
  const gm_shared none = {0};
  gm_shared had;
  if (gm__sized_in(&had, sizeof had, shared, "gm_shared_close", "shared", NULL)) return;
  const bool open = share_has_descriptor(had.kind);
  const int fd = had.fd;
  gm__sized_out(shared, &none, sizeof none);
  if (open) gm__descriptor_close(fd);
}

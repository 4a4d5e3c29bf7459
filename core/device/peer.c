#include "core/device/peer.h"

#include "core/base/alloc.h"
#include "core/base/error.h"
#include "core/discovery/answer.h"

/* Invariants. Under the context's lock, its slot for peers is the first of a list of ways: at most one for each
 * ordered pair. A way is in the list while both devices are open; a way to another context's device stays longer. A
 * way is open only if peer_enable succeeded and peer_disable was not called since, so each enabling has its one
 * disabling. Both are called under the way's lock. A driver that is asked twice at once tells one of the two that
 * somebody else was first. The backend does not disable what somebody else has enabled. */

static gm__peer_way *peer_find(const gm_device *device, const gm_device *other) {
  gm__peer_way *way = device->ctx->slots[GM__SLOT_PEERS];
  while (way && (way->device != device || way->other != other || way->other_id != other->id)) way = way->next;
  return way;
}

static gm__peer_way *peer_make(gm_device *device, const gm_device *other) {
  gm__peer_way *way = gm__alloc(gm__context_services(device->ctx), sizeof *way);
  if (!way) return NULL;
  way->device = device;
  way->other = other;
  way->other_id = other->id;
  gm__mutex_init(&way->lock, GM__RANK_WAY);
  way->next = device->ctx->slots[GM__SLOT_PEERS];
  device->ctx->slots[GM__SLOT_PEERS] = way;
  return way;
}

gm__peer_way *gm__peer_way_to(gm_device *device, const gm_device *other) {
  gm__mutex_lock(&device->ctx->lock);
  gm__peer_way *way = peer_find(device, other);
  if (!way) way = peer_make(device, other);
  gm__mutex_unlock(&device->ctx->lock);
  return way;
}

gm_status gm__peer_ask(gm_device *device, gm_device *other, gm_peer_info *out, gm_error *err) {
  if (!gm__peer_is_kin(device, other)) {
    return gm__fail(err, GM_ERR_NOT_SUPPORTED, "peer_info", "the devices are of different %s",
                    device->ctx == other->ctx ? "backends" : "contexts");
  }
  gm_peer_info info = {.struct_size = sizeof info, .rank = -1};
  gm_status status = device->ops->peer_info(device->handle, other->handle, &info, err);
  gm__answer_mend_peer(&info);
  if (status == GM_OK) *out = info;
  return status;
}

/* The far end lets the device in: all that it has mapped so far, and what it maps later finds the way open. */
static gm_status peer_open_mapped(gm__peer_way *way, gm_device *other, gm_error *err) {
  gm_status status = GM_OK;
  size_t cursor = 0;
  uint64_t address, bytes;
  gm__mutex_lock(&other->ctx->lock);
  while (status == GM_OK && gm__map_next(&other->mapped, &cursor, &address, &bytes)) {
    status = other->ops->peer_access(other->handle, way->device->handle, address, bytes, err);
  }
  if (status == GM_OK) atomic_store(&way->open, true);
  gm__mutex_unlock(&other->ctx->lock);
  return status;
}

static gm_status peer_open_locked(gm__peer_way *way, gm_device *other, gm_error *err) {
  if (atomic_load(&way->open)) return GM_OK;
  gm_status status = way->device->ops->peer_enable(way->device->handle, other->handle, err);
  if (status != GM_OK) return status;
  status = peer_open_mapped(way, other, err);
  if (status == GM_OK) return GM_OK;
  way->device->ops->peer_disable(way->device->handle, other->handle, GM_CLOSE_NORMAL, NULL);
  return status;
}

gm_status gm__peer_open(gm__peer_way *way, gm_device *other, gm_error *err) {
  gm__mutex_lock(&way->lock);
  atomic_store(&way->barred, false);
  const gm_status status = peer_open_locked(way, other, err);
  gm__mutex_unlock(&way->lock);
  return status;
}

gm_status gm__peer_open_for_copy(gm__peer_way *way, gm_device *other, bool *out_barred, gm_error *err) {
  *out_barred = false;
  if (atomic_load(&way->open)) return GM_OK;
  gm__mutex_lock(&way->lock);
  *out_barred = atomic_load(&way->barred);
  const gm_status status = *out_barred ? GM_OK : peer_open_locked(way, other, err);
  gm__mutex_unlock(&way->lock);
  return status;
}

gm_status gm__peer_shut(gm__peer_way *way, gm_device *other, gm_error *err) {
  gm_status status = GM_OK;
  gm__mutex_lock(&way->lock);
  atomic_store(&way->barred, true);
  if (atomic_exchange(&way->open, false)) {
    status = way->device->ops->peer_disable(way->device->handle, other->handle, GM_CLOSE_NORMAL, err);
  }
  gm__mutex_unlock(&way->lock);
  return status;
}

/* A device that closes waits for the lock, before its ways are gone. REQUIRES: context lock. */
static gm_status peer_open_range(gm_device *owner, uint64_t address, uint64_t bytes, gm_error *err) {
  gm_status status = GM_OK;
  for (gm__peer_way *way = owner->ctx->slots[GM__SLOT_PEERS]; way && status == GM_OK; way = way->next) {
    if (way->other != owner || !atomic_load(&way->open)) continue;
    status = owner->ops->peer_access(owner->handle, way->device->handle, address, bytes, err);
  }
  return status;
}

gm_status gm__peer_note_range(gm_device *owner, uint64_t address, uint64_t bytes, gm_error *err) {
  if (!(owner->info.capabilities & GM_CAP_PEER)) return GM_OK;
  gm__mutex_lock(&owner->ctx->lock);
  gm_status status = gm__map_insert(&owner->mapped, address, bytes);
  const bool noted = status == GM_OK;
  if (noted) status = peer_open_range(owner, address, bytes, err);
  if (noted && status != GM_OK) gm__map_remove(&owner->mapped, address, NULL);
  gm__mutex_unlock(&owner->ctx->lock);
  return noted ? status : gm__fail(err, status, "peer_access", "no host memory to remember what is mapped");
}

void gm__peer_forget_range(gm_device *owner, uint64_t address) {
  if (!(owner->info.capabilities & GM_CAP_PEER)) return;
  gm__mutex_lock(&owner->ctx->lock);
  gm__map_remove(&owner->mapped, address, NULL);
  gm__mutex_unlock(&owner->ctx->lock);
}

/* The ways from and to the device, out of the list. */
static gm__peer_way *peer_unlink(gm_device *device) {
  gm__peer_way *mine = NULL, *rest = NULL, *next;
  for (gm__peer_way *way = device->ctx->slots[GM__SLOT_PEERS]; way; way = next) {
    next = way->next;
    gm__peer_way **list = way->device == device || way->other == device ? &mine : &rest;
    way->next = *list;
    *list = way;
  }
  device->ctx->slots[GM__SLOT_PEERS] = rest;
  return mine;
}

void gm__peer_end(gm_device *device, bool forked) {
  if (!forked) gm__mutex_lock(&device->ctx->lock);
  gm__peer_way *mine = peer_unlink(device);
  if (!forked) gm__mutex_unlock(&device->ctx->lock);
  for (gm__peer_way *way = mine, *next; way; way = next) {
    next = way->next;
    if (atomic_load(&way->open)) {
      const gm_close_mode mode = forked ? GM_CLOSE_ABANDON : GM_CLOSE_NORMAL;
      way->device->ops->peer_disable(way->device->handle, way->other->handle, mode, NULL);
    }
    if (!forked) gm__mutex_destroy(&way->lock);
    gm__release(gm__context_services(device->ctx), way, sizeof *way);
  }
}

/* Between devices. The entries of the seam, group 17. */
#include <stdio.h>

#include "backends/shared/runtime/runtime_copy.h"
#include "backends/shared/runtime/runtime_entries.h"
#include "backends/shared/runtime/runtime_stream.h"
#include "core/base/error.h"

/* Access is between CUDA's contexts and between HIP's devices. Others use them too, so gm disables only what it
 * enabled: `peers` holds that. Access does not cover mapped memory: gm opens a range for each device by itself. */

static gm_status peer_check(const gm__runtime_device *device, gm_error *err) {
  if (device->info.capabilities & GM_CAP_PEER) return GM_OK;
  return gm__fail(err, GM_ERR_NOT_SUPPORTED, device->api->name, "this %s has no peer access", device->api->component);
}

/* The key of a device in `peers`. */
static uint64_t peer_key(const gm__runtime_device *device) {
  return device->context ? (uintptr_t)device->context : (uint64_t)device->ordinal;
}

static bool peer_path(const gm__runtime_device *device, const gm__runtime_device *other) {
  return device->ordinal == other->ordinal || device->api->peer_reaches(device, other);
}

static const char *peer_why(const gm__runtime_device *device) {
  const char *why = device->api->peer_why ? device->api->peer_why(device) : NULL;
  return why ? why : "";
}

gm_status gm__runtime_peer_info(void *device, void *other, gm_peer_info *out, gm_error *err) {
  gm__runtime_device *from = device;
  const gm__runtime_device *to = other;
  const gm__runtime *api = from->api;
  const bool same = from->ordinal == to->ordinal;
  gm__runtime_scope scope;
  gm_status status = peer_check(from, err);
  if (status == GM_OK) status = gm__runtime_enter(from, &scope, err);
  if (status != GM_OK) return status;
  gm_peer_info info = {.struct_size = sizeof info, .direct = peer_path(from, to), .rank = -1};
  info.atomics = info.direct && (same || api->peer_attribute(from, to, true, 0) > 0);
  if (!info.direct) snprintf(info.why, sizeof info.why, "%s", peer_why(from));
  if (info.direct && !same) info.rank = api->peer_attribute(from, to, false, -1);
  gm__runtime_leave(from, &scope);
  *out = info;
  return GM_OK;
}

static gm_status peer_remember(gm__runtime_device *device, const gm__runtime_device *other, gm_error *err) {
  gm__mutex_lock(&device->lock);
  const gm_status status = gm__map_insert(&device->peers, peer_key(other), 1);
  gm__mutex_unlock(&device->lock);
  if (status == GM_OK) return GM_OK;
  return gm__fail(err, status, device->api->peer_enable.op, "no host memory for the record");
}

static bool peer_forget(gm__runtime_device *device, const gm__runtime_device *other) {
  gm__mutex_lock(&device->lock);
  const bool ours = gm__map_remove(&device->peers, peer_key(other), NULL);
  gm__mutex_unlock(&device->lock);
  return ours;
}

static gm_status peer_open(gm__runtime_device *device, const gm__runtime_device *other, gm_error *err) {
  const gm__runtime *api = device->api;
  if (!peer_path(device, other)) {
    return gm__fail(err, GM_ERR_NOT_SUPPORTED, api->peer_reaches_op,
                    "%s (device %d) has no direct path to device %d: copies go through host memory%s%s",
                    device->info.name, device->ordinal, other->ordinal, peer_why(device)[0] ? "; " : "",
                    peer_why(device));
  }
  const int code = api->peer_enable.call(device, other);
  if (code == GM__RUNTIME_PEER_ENABLED) return GM_OK;
  if (code != GM__RUNTIME_SUCCESS) return gm__runtime_fail(device, code, api->peer_enable.op, err);
  const gm_status status = peer_remember(device, other, err);
  if (status != GM_OK) api->peer_disable.call(device, other);
  return status;
}

gm_status gm__runtime_peer_enable(void *device, void *other, gm_error *err) {
  gm__runtime_device *from = device;
  const gm__runtime_device *to = other;
  gm__runtime_scope scope;
  gm_status status = peer_check(from, err);
  if (status != GM_OK || peer_key(from) == peer_key(to)) return status;
  status = gm__runtime_enter(from, &scope, err);
  if (status != GM_OK) return status;
  status = peer_open(from, to, err);
  gm__runtime_leave(from, &scope);
  return status;
}

gm_status gm__runtime_peer_disable(void *device, void *other, gm_close_mode mode, gm_error *err) {
  gm__runtime_device *from = device;
  const gm__runtime_device *to = other;
  const gm__runtime_pair *disable = &from->api->peer_disable;
  gm__runtime_scope scope;
  bool gone = false;
  if (mode == GM_CLOSE_ABANDON || !peer_forget(from, to)) return GM_OK;
  const gm_status status = gm__runtime_enter_release(from, &scope, &gone, err);
  if (status != GM_OK || gone) return status;
  const int code = disable->call(from, to);
  gm__runtime_leave(from, &scope);
  if (code == GM__RUNTIME_PEER_NOT_ENABLED) return GM_OK; /* somebody else was first */
  return gm__runtime_released(from, code, disable->op, err);
}

gm_status gm__runtime_peer_access(void *device, void *other, uint64_t address, uint64_t bytes, gm_error *err) {
  gm__runtime_device *owner = device;
  const gm__runtime_device *to = other;
  const gm__runtime *api = owner->api;
  gm__runtime_scope scope;
  gm_status status = peer_check(owner, err);
  if (status == GM_OK && !(owner->info.capabilities & GM_CAP_VMM)) {
    status = gm__fail(err, GM_ERR_NOT_SUPPORTED, api->vmm_open_op, "%s has no virtual memory", owner->info.name);
  }
  if (status == GM_OK) status = gm__runtime_enter(owner, &scope, err);
  if (status != GM_OK) return status;
  status = api->vmm_open(owner, to->ordinal, address, bytes, err);
  gm__runtime_leave(owner, &scope);
  return status;
}

static int peer_enqueue(const gm__runtime_device *device, const gm__runtime_device *from, void *stream,
                        const gm_copy_item *item) {
  if (item->bytes == 0) return GM__RUNTIME_SUCCESS;
  if (item->src->host || item->dst->host) return gm__runtime_copy_enqueue(device, stream, item);
  return device->api->peer_copy(device, item->dst->address + item->dst_offset, from,
                                item->src->address + item->src_offset, item->bytes, stream);
}

gm_status gm__runtime_peer_copy(void *device, void *stream, void *src_device, const gm_copy_item *item,
                                gm_backend_point *out, gm_error *err) {
  gm__runtime_device *opened = device;
  gm__runtime_job job;
  gm_status status = peer_check(opened, err);
  if (status == GM_OK) status = gm__runtime_begin(opened, stream, &job, err);
  if (status != GM_OK) return status;
  const int code = peer_enqueue(opened, src_device, job.stream, item);
  return gm__runtime_end(opened, &job, code, opened->api->peer_copy_op, out, err);
}

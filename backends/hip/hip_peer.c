#include "backends/hip/hip_peer.h"

#include "backends/hip/hip_range.h"
#include "backends/hip/hip_status.h"
#include "backends/hip/hip_stream.h"
#include "core/base/error.h"

/* Access is between HIP's devices, which are not ours alone: what somebody else has enabled is not disabled. `peers`
 * holds the ordinals to which this device object opened the way. Mapped memory does not follow it: a range is opened
 * for each device by itself. */

static gm_status hip_peer_check(const gm__hip_device *device, gm_error *err) {
  if (device->info.capabilities & GM_CAP_PEER) return GM_OK;
  return gm__fail(err, GM_ERR_NOT_SUPPORTED, 0, "hip", "this HIP library has no peer access");
}

static bool hip_peer_path(const gm__hip_device *device, const gm__hip_device *other) {
  const int from = (int)device->info.index, to = (int)other->info.index;
  int can = 0;
  return from == to || (device->hip->hipDeviceCanAccessPeer(&can, from, to) == hipSuccess && can > 0);
}

static int hip_peer_attribute(const gm__hip_device *device, const gm__hip_device *other, hipDeviceP2PAttr what,
                              int otherwise) {
  const int from = (int)device->info.index, to = (int)other->info.index;
  int value = otherwise;
  if (!device->hip->hipDeviceGetP2PAttribute || from == to) return otherwise;
  return device->hip->hipDeviceGetP2PAttribute(&value, what, from, to) == hipSuccess ? value : otherwise;
}

gm_status gm__hip_peer_info(void *device, void *other, gm_peer_info *out, gm_error *err) {
  gm__hip_device *from = device;
  const gm__hip_device *to = other;
  gm__hip_scope scope;
  gm_status status = hip_peer_check(from, err);
  if (status == GM_OK) status = gm__hip_enter(from, &scope, err);
  if (status != GM_OK) return status;
  gm_peer_info info = {.struct_size = sizeof info, .direct = hip_peer_path(from, to), .rank = -1};
  const int atomics = hip_peer_attribute(from, to, hipDevP2PAttrNativeAtomicSupported, 0);
  info.atomics = info.direct && (atomics > 0 || from->info.index == to->info.index);
  if (info.direct) info.rank = hip_peer_attribute(from, to, hipDevP2PAttrPerformanceRank, -1);
  gm__hip_leave(&scope);
  *out = info;
  return GM_OK;
}

static gm_status hip_peer_remember(gm__hip_device *device, const gm__hip_device *other, gm_error *err) {
  gm__mutex_lock(&device->lock);
  const gm_status status = gm__map_insert(&device->peers, other->info.index, 1);
  gm__mutex_unlock(&device->lock);
  return status == GM_OK ? GM_OK
                         : gm__fail(err, status, 0, "hipDeviceEnablePeerAccess", "no host memory for the record");
}

static bool hip_peer_forget(gm__hip_device *device, const gm__hip_device *other) {
  gm__mutex_lock(&device->lock);
  const bool ours = gm__map_remove(&device->peers, other->info.index, NULL);
  gm__mutex_unlock(&device->lock);
  return ours;
}

static gm_status hip_peer_open(gm__hip_device *device, const gm__hip_device *other, gm_error *err) {
  const hipError_t code = device->hip->hipDeviceEnablePeerAccess((int)other->info.index, 0);
  if (code == hipErrorPeerAccessAlreadyEnabled) return GM_OK;
  if (code != hipSuccess) return gm__hip_device_fail(device, code, "hipDeviceEnablePeerAccess", err);
  const gm_status status = hip_peer_remember(device, other, err);
  if (status != GM_OK) device->hip->hipDeviceDisablePeerAccess((int)other->info.index);
  return status;
}

gm_status gm__hip_peer_enable(void *device, void *other, gm_error *err) {
  gm__hip_device *from = device;
  const gm__hip_device *to = other;
  gm__hip_scope scope;
  gm_status status = hip_peer_check(from, err);
  if (status != GM_OK || from->info.index == to->info.index) return status;
  status = gm__hip_enter(from, &scope, err);
  if (status != GM_OK) return status;
  if (hip_peer_path(from, to)) {
    status = hip_peer_open(from, to, err);
  } else {
    status = gm__fail(err, GM_ERR_NOT_SUPPORTED, 0, "hipDeviceCanAccessPeer",
                      "%s (device %u) has no direct path to device %u: copies go through host memory", from->info.name,
                      (unsigned)from->info.index, (unsigned)to->info.index);
  }
  gm__hip_leave(&scope);
  return status;
}

gm_status gm__hip_peer_disable(void *device, void *other, gm_close_mode mode, gm_error *err) {
  gm__hip_device *from = device;
  const gm__hip_device *to = other;
  gm__hip_scope scope;
  bool gone = false;
  if (mode == GM_CLOSE_ABANDON || !hip_peer_forget(from, to)) return GM_OK;
  gm_status status = gm__hip_enter_release(from, &scope, &gone, err);
  if (status != GM_OK || gone) return status;
  const hipError_t code = from->hip->hipDeviceDisablePeerAccess((int)to->info.index);
  if (code != hipErrorPeerAccessNotEnabled) { /* else somebody else was first */
    status = gm__hip_device_released(from, code, "hipDeviceDisablePeerAccess", err);
  }
  gm__hip_leave(&scope);
  return status;
}

gm_status gm__hip_peer_access(void *device, void *other, uint64_t address, uint64_t bytes, gm_error *err) {
  gm__hip_device *owner = device;
  const gm__hip_device *to = other;
  gm__hip_scope scope;
  gm_status status = hip_peer_check(owner, err);
  if (status == GM_OK && !(owner->info.capabilities & GM_CAP_VMM)) {
    status = gm__fail(err, GM_ERR_NOT_SUPPORTED, 0, "hipMemSetAccess", "%s has no virtual memory", owner->info.name);
  }
  if (status == GM_OK) status = gm__hip_enter(owner, &scope, err);
  if (status != GM_OK) return status;
  gm__mutex_lock(&owner->ranges_lock);
  status = gm__hip_range_access(owner, to->info.index, address, bytes, err);
  gm__mutex_unlock(&owner->ranges_lock);
  gm__hip_leave(&scope);
  return status;
}

static hipError_t hip_peer_enqueue(const gm__hip_device *device, const gm__hip_device *from, hipStream_t stream,
                                   const gm_copy_item *item) {
  void *to = (void *)(uintptr_t)(item->dst->address + item->dst_offset);
  const void *at = (const void *)(uintptr_t)(item->src->address + item->src_offset);
  const size_t bytes = (size_t)item->bytes;
  if (bytes == 0) return hipSuccess;
  if (item->src->host || item->dst->host) return device->hip->hipMemcpyAsync(to, at, bytes, hipMemcpyDefault, stream);
  return device->hip->hipMemcpyPeerAsync(to, (int)device->info.index, at, (int)from->info.index, bytes, stream);
}

gm_status gm__hip_peer_copy(void *device, void *stream, void *src_device, const gm_copy_item *item,
                            gm_backend_point *out, gm_error *err) {
  gm__hip_job job;
  gm_status status = hip_peer_check(device, err);
  if (status == GM_OK) status = gm__hip_begin(device, stream, &job, err);
  if (status != GM_OK) return status;
  const hipError_t code = hip_peer_enqueue(device, src_device, job.stream, item);
  return gm__hip_end(device, &job, code, "hipMemcpyPeerAsync", out, err);
}

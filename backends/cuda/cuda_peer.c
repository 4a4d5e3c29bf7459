#include "backends/cuda/cuda_peer.h"

#include "backends/cuda/cuda_copy.h"
#include "backends/cuda/cuda_status.h"
#include "core/base/error.h"

/* Access is between contexts, and a primary context is not ours alone: what somebody else has enabled is not disabled.
 * `peers` holds the contexts to which this device object opened the way. Mapped memory (cuMemMap) does not follow it: a
 * range is opened for each device by itself. */

static gm_status cuda_peer_check(const gm__cuda_device *device, gm_error *err) {
  if (device->info.capabilities & GM_CAP_PEER) return GM_OK;
  return gm__fail(err, GM_ERR_NOT_SUPPORTED, 0, "cuda", "this CUDA driver has no peer access");
}

static bool cuda_peer_path(const gm__cuda_device *device, const gm__cuda_device *other) {
  int can = 0;
  if (device->ordinal == other->ordinal) return true;
  return device->cu->cuDeviceCanAccessPeer(&can, device->ordinal, other->ordinal) == CUDA_SUCCESS && can > 0;
}

static int cuda_peer_attribute(const gm__cuda_device *device, const gm__cuda_device *other, CUdevice_P2PAttribute what,
                               int otherwise) {
  int value = otherwise;
  if (!device->cu->cuDeviceGetP2PAttribute || device->ordinal == other->ordinal) return otherwise;
  const CUresult code = device->cu->cuDeviceGetP2PAttribute(&value, what, device->ordinal, other->ordinal);
  return code == CUDA_SUCCESS ? value : otherwise;
}

gm_status gm__cuda_peer_info(void *device, void *other, gm_peer_info *out, gm_error *err) {
  const gm__cuda_device *from = device, *to = other;
  const gm_status status = cuda_peer_check(from, err);
  if (status != GM_OK) return status;
  const bool direct = cuda_peer_path(from, to);
  const int atomics = cuda_peer_attribute(from, to, CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED, 0);
  *out = (gm_peer_info){.struct_size = sizeof *out, .direct = direct, .rank = -1};
  out->atomics = direct && (atomics > 0 || from->ordinal == to->ordinal);
  if (direct) out->rank = cuda_peer_attribute(from, to, CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK, -1);
  return GM_OK;
}

static gm_status cuda_peer_remember(gm__cuda_device *device, const gm__cuda_device *other, gm_error *err) {
  gm__mutex_lock(&device->lock);
  const gm_status status = gm__map_insert(&device->peers, (uintptr_t)other->context, 1);
  gm__mutex_unlock(&device->lock);
  return status == GM_OK ? GM_OK : gm__fail(err, status, 0, "cuCtxEnablePeerAccess", "no host memory for the record");
}

static bool cuda_peer_forget(gm__cuda_device *device, const gm__cuda_device *other) {
  gm__mutex_lock(&device->lock);
  const bool ours = gm__map_remove(&device->peers, (uintptr_t)other->context, NULL);
  gm__mutex_unlock(&device->lock);
  return ours;
}

static gm_status cuda_peer_open(gm__cuda_device *device, const gm__cuda_device *other, gm_error *err) {
  gm__cuda_scope scope;
  gm_status status = gm__cuda_enter(device, &scope, err);
  if (status != GM_OK) return status;
  const CUresult code = device->cu->cuCtxEnablePeerAccess(other->context, 0);
  if (code == CUDA_SUCCESS) {
    status = cuda_peer_remember(device, other, err);
    if (status != GM_OK) device->cu->cuCtxDisablePeerAccess(other->context);
  } else if (code != CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED) {
    status = gm__cuda_device_fail(device, code, "cuCtxEnablePeerAccess", err);
  }
  gm__cuda_leave(&scope);
  return status;
}

gm_status gm__cuda_peer_enable(void *device, void *other, gm_error *err) {
  gm__cuda_device *from = device;
  const gm__cuda_device *to = other;
  const gm_status status = cuda_peer_check(from, err);
  if (status != GM_OK || from->context == to->context) return status;
  if (!cuda_peer_path(from, to)) {
    return gm__fail(err, GM_ERR_NOT_SUPPORTED, 0, "cuDeviceCanAccessPeer",
                    "%s (device %d) has no direct path to device %d: copies go through host memory", from->info.name,
                    (int)from->ordinal, (int)to->ordinal);
  }
  return cuda_peer_open(from, to, err);
}

gm_status gm__cuda_peer_disable(void *device, void *other, gm_close_mode mode, gm_error *err) {
  gm__cuda_device *from = device;
  const gm__cuda_device *to = other;
  gm__cuda_scope scope;
  bool gone = false;
  if (mode == GM_CLOSE_ABANDON || !cuda_peer_forget(from, to)) return GM_OK;
  const gm_status status = gm__cuda_enter_release(from, &scope, &gone, err);
  if (status != GM_OK || gone) return status;
  const CUresult code = from->cu->cuCtxDisablePeerAccess(to->context);
  gm__cuda_leave(&scope);
  if (code == CUDA_ERROR_PEER_ACCESS_NOT_ENABLED) return GM_OK; /* somebody else was first */
  return gm__cuda_device_released(from, code, "cuCtxDisablePeerAccess", err);
}

gm_status gm__cuda_peer_access(void *device, void *other, uint64_t address, uint64_t bytes, gm_error *err) {
  gm__cuda_device *owner = device;
  const gm__cuda_device *to = other;
  gm__cuda_scope scope;
  CUmemAccessDesc access = {.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  gm_status status = cuda_peer_check(owner, err);
  if (status == GM_OK && !(owner->info.capabilities & GM_CAP_VMM)) {
    status = gm__fail(err, GM_ERR_NOT_SUPPORTED, 0, "cuMemSetAccess", "%s has no virtual memory", owner->info.name);
  }
  if (status == GM_OK) status = gm__cuda_enter(owner, &scope, err);
  if (status != GM_OK) return status;
  access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  access.location.id = to->ordinal;
  const CUresult code = owner->cu->cuMemSetAccess(address, (size_t)bytes, &access, 1);
  gm__cuda_leave(&scope);
  return code == CUDA_SUCCESS ? GM_OK : gm__cuda_device_fail(owner, code, "cuMemSetAccess", err);
}

static CUresult cuda_peer_enqueue(const gm__cuda_device *device, const gm__cuda_device *from, CUstream stream,
                                  const gm_copy_item *item) {
  if (item->bytes == 0) return CUDA_SUCCESS;
  if (item->src->host || item->dst->host) return gm__cuda_copy_enqueue(device, stream, item);
  return device->cu->cuMemcpyPeerAsync(item->dst->address + item->dst_offset, device->context,
                                       item->src->address + item->src_offset, from->context, (size_t)item->bytes,
                                       stream);
}

gm_status gm__cuda_peer_copy(void *device, void *stream, void *src_device, const gm_copy_item *item,
                             gm_backend_point *out, gm_error *err) {
  gm__cuda_job job;
  gm_status status = cuda_peer_check(device, err);
  if (status == GM_OK) status = gm__cuda_begin(device, stream, &job, err);
  if (status != GM_OK) return status;
  const CUresult code = cuda_peer_enqueue(device, src_device, job.stream, item);
  return gm__cuda_end(device, &job, code, "cuMemcpyPeerAsync", out, err);
}

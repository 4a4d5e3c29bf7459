/* Copies in one piece, and fills. Copies from pageable memory take the bytes during the call, copies to it end before
 * the call does; with pinned memory both truly happen later. With a link model a copy from pageable memory ends before
 * the call does, too. */
#include <string.h>

#include "tests/simulated/cuda/sim_call.h"
#include "tests/simulated/cuda/sim_capture.h"
#include "tests/simulated/cuda/sim_context.h"
#include "tests/simulated/cuda/sim_copy.h"
#include "tests/simulated/cuda/sim_link.h"
#include "tests/simulated/cuda/sim_range.h"
#include "tests/simulated/cuda/sim_stream.h"

typedef struct copy_op {
  sim_op op;
  uint64_t to, from, bytes;
  unsigned char staged[]; /* taken during the call when `from` is 0 */
} copy_op;

void sim_copy_slowly(uint64_t bytes) {
  pthread_mutex_lock(&sim_lock);
  uint64_t rate = sim_link_is_on() ? 0 : sim_script_now.copy_mbps;
  pthread_mutex_unlock(&sim_lock);
  if (!rate) return;
  struct timespec pause = {.tv_sec = (time_t)(bytes / (rate * 1000000))};
  pause.tv_nsec = (long)(bytes % (rate * 1000000) * 1000 / rate);
  nanosleep(&pause, NULL);
}

static CUresult copy_run(sim_op *op, sim_queue *queue) {
  const copy_op *copy = (copy_op *)op;
  sim_copy_slowly(copy->bytes);
  uint64_t from = copy->from ? copy->from : (uintptr_t)copy->staged;
  return sim_range_copy(queue->device, copy->to, from, copy->bytes);
}

static bool copy_is_pageable(uint64_t at, uint64_t bytes) {
  return !sim_range_is_device(at) && !sim_range_is_pinned(at, bytes);
}

/* The device whose memory this is; other: none, or of many. */
static uint32_t copy_device(uint64_t at, int other) {
  const sim_range *range = sim_range_find(at);
  return (uint32_t)(range && range->device >= 0 ? range->device : other);
}

gm__link_op sim_copy_link(int device, uint64_t to, uint64_t from, uint64_t bytes) {
  if (!sim_link_is_on()) return (gm__link_op){0};
  const bool to_device = sim_range_is_device(to), from_device = sim_range_is_device(from);
  gm__link_entry entry = {.bytes = bytes, .to = to, .from = from, .kind = GM__LINK_HOST};
  entry.device = copy_device(from_device ? from : to, device);
  entry.peer = copy_device(to, device);
  if (to_device && from_device) entry.kind = entry.device == entry.peer ? GM__LINK_D2D : GM__LINK_PEER;
  if (to_device && !from_device) entry.kind = GM__LINK_H2D;
  if (!to_device && from_device) entry.kind = GM__LINK_D2H;
  entry.pageable = copy_is_pageable(to, bytes) || copy_is_pageable(from, bytes);
  return (gm__link_op){.entry = entry};
}

/* The scripted fault of drivers whose peer copies do nothing. */
static bool copy_is_lost(uint64_t to, uint64_t from) {
  const sim_range *target = sim_range_find(to), *source = sim_range_find(from);
  bool both = target && source && sim_range_is_device(to) && sim_range_is_device(from);
  return sim_script_now.peer_silent && both && target->device != source->device;
}

CUresult sim_copy_add(sim_queue *queue, uint64_t to, uint64_t from, uint64_t bytes, sim_wait wait) {
  if (!bytes) return CUDA_SUCCESS;
  if (!sim_range_ok(to, bytes) || !sim_range_ok(from, bytes)) return CUDA_ERROR_INVALID_VALUE;
  bool to_device = sim_range_is_device(to), from_device = sim_range_is_device(from);
  bool staged = wait != SIM_WAIT && !queue->capture && copy_is_pageable(from, bytes);
  copy_op *copy = sim_op_create(sizeof *copy + (staged ? bytes : 0));
  if (!copy) return CUDA_ERROR_OUT_OF_MEMORY;
  copy->op.run = copy_is_lost(to, from) ? NULL : copy_run;
  copy->op.link = sim_copy_link(queue->device, to, from, bytes);
  copy->to = to;
  copy->bytes = bytes;
  if (staged) {
    memcpy(copy->staged, (const void *)(uintptr_t)from, bytes);
    copy->op.link.entry.from = 0;
  } else {
    copy->from = from;
  }
  bool captured = queue->capture != NULL;
  CUresult result = sim_queue_add(queue, &copy->op);
  bool between_devices = to_device && from_device;
  bool ends = (wait == SIM_WAIT && !between_devices) || (!captured && copy_is_pageable(to, bytes)) ||
              (staged && sim_link_is_on());
  return result || !ends ? result : sim_queue_wait(queue);
}

static CUresult copy_on(CUstream stream, uint64_t to, uint64_t from, uint64_t bytes, sim_wait wait) {
  sim_queue *queue = NULL;
  CUresult result = sim_stream_queue(stream, &queue);
  return result ? result : sim_copy_add(queue, to, from, bytes, wait);
}

/* Host addresses only where the call says so. */
static CUresult copy_checked(CUstream stream, uint64_t to, bool to_host, uint64_t from, bool from_host, uint64_t bytes,
                             sim_wait wait) {
  if (bytes && ((!to_host && !sim_range_find(to)) || (!from_host && !sim_range_find(from))))
    return CUDA_ERROR_INVALID_VALUE;
  return copy_on(stream, to, from, bytes, wait);
}

CUresult cuMemcpy(CUdeviceptr dst, CUdeviceptr src, size_t bytes) {
  CUresult result = sim_enter(sim_id_cuMemcpy);
  if (result) return result;
  return sim_leave(copy_on(NULL, dst, src, bytes, SIM_WAIT));
}

CUresult cuMemcpyHtoD_v2(CUdeviceptr dst, const void *src, size_t bytes) {
  CUresult result = sim_enter(sim_id_cuMemcpyHtoD_v2);
  if (result) return result;
  return sim_leave(copy_checked(NULL, dst, false, (uintptr_t)src, true, bytes, SIM_WAIT));
}

CUresult cuMemcpyDtoH_v2(void *dst, CUdeviceptr src, size_t bytes) {
  CUresult result = sim_enter(sim_id_cuMemcpyDtoH_v2);
  if (result) return result;
  return sim_leave(copy_checked(NULL, (uintptr_t)dst, true, src, false, bytes, SIM_WAIT));
}

CUresult cuMemcpyDtoD_v2(CUdeviceptr dst, CUdeviceptr src, size_t bytes) {
  CUresult result = sim_enter(sim_id_cuMemcpyDtoD_v2);
  if (result) return result;
  return sim_leave(copy_checked(NULL, dst, false, src, false, bytes, SIM_WAIT));
}

CUresult cuMemcpyAsync(CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream) {
  CUresult result = sim_enter(sim_id_cuMemcpyAsync);
  if (result) return result;
  return sim_leave(copy_on(stream, dst, src, bytes, SIM_NO_WAIT));
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr dst, const void *src, size_t bytes, CUstream stream) {
  CUresult result = sim_enter(sim_id_cuMemcpyHtoDAsync_v2);
  if (result) return result;
  return sim_leave(copy_checked(stream, dst, false, (uintptr_t)src, true, bytes, SIM_NO_WAIT));
}

CUresult cuMemcpyDtoHAsync_v2(void *dst, CUdeviceptr src, size_t bytes, CUstream stream) {
  CUresult result = sim_enter(sim_id_cuMemcpyDtoHAsync_v2);
  if (result) return result;
  return sim_leave(copy_checked(stream, (uintptr_t)dst, true, src, false, bytes, SIM_NO_WAIT));
}

CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream) {
  CUresult result = sim_enter(sim_id_cuMemcpyDtoDAsync_v2);
  if (result) return result;
  return sim_leave(copy_checked(stream, dst, false, src, false, bytes, SIM_NO_WAIT));
}

static bool copy_peers_ok(CUcontext to, CUcontext from) { return sim_context_is_live(to) && sim_context_is_live(from); }

CUresult cuMemcpyPeer(CUdeviceptr dst, CUcontext dst_context, CUdeviceptr src, CUcontext src_context, size_t bytes) {
  CUresult result = sim_enter(sim_id_cuMemcpyPeer);
  if (result) return result;
  if (!copy_peers_ok(dst_context, src_context)) return sim_leave(CUDA_ERROR_INVALID_CONTEXT);
  return sim_leave(copy_checked(NULL, dst, false, src, false, bytes, SIM_WAIT));
}

CUresult cuMemcpyPeerAsync(CUdeviceptr dst, CUcontext dst_context, CUdeviceptr src, CUcontext src_context, size_t bytes,
                           CUstream stream) {
  CUresult result = sim_enter(sim_id_cuMemcpyPeerAsync);
  if (result) return result;
  if (!copy_peers_ok(dst_context, src_context)) return sim_leave(CUDA_ERROR_INVALID_CONTEXT);
  return sim_leave(copy_checked(stream, dst, false, src, false, bytes, SIM_NO_WAIT));
}

/* The copies of one batch have no order among them: here they go backwards. */
static CUresult copy_batch(CUdeviceptr *dst, CUdeviceptr *src, size_t *sizes, size_t count,
                           CUmemcpyAttributes *attributes, size_t *first, size_t attribute_count, size_t *failed_out,
                           CUstream stream) {
  if (!dst || !src || !sizes || !count || !attributes || !first || !attribute_count || attribute_count > count)
    return CUDA_ERROR_INVALID_VALUE;
  sim_queue *queue = NULL;
  CUresult result = sim_stream_queue(stream, &queue);
  if (result) return result;
  if (queue->legacy) return CUDA_ERROR_INVALID_HANDLE;
  if (failed_out) *failed_out = SIZE_MAX;
  for (size_t i = 0; i < count && !result; i++) {
    if (sizes[i] && sim_range_ok(dst[i], sizes[i]) && sim_range_ok(src[i], sizes[i])) continue;
    if (failed_out) *failed_out = i;
    result = CUDA_ERROR_INVALID_VALUE;
  }
  for (size_t i = count; i-- > 0 && !result;) result = sim_copy_add(queue, dst[i], src[i], sizes[i], SIM_NO_WAIT);
  return result;
}

CUresult cuMemcpyBatchAsync(CUdeviceptr *dst, CUdeviceptr *src, size_t *sizes, size_t count,
                            CUmemcpyAttributes *attributes, size_t *first, size_t attribute_count, size_t *failed_out,
                            CUstream stream) {
  CUresult result = sim_enter(sim_id_cuMemcpyBatchAsync);
  if (result) return result;
  return sim_leave(copy_batch(dst, src, sizes, count, attributes, first, attribute_count, failed_out, stream));
}

CUresult cuMemcpyBatchAsync_v2(CUdeviceptr *dst, CUdeviceptr *src, size_t *sizes, size_t count,
                               CUmemcpyAttributes *attributes, size_t *first, size_t attribute_count, CUstream stream) {
  CUresult result = sim_enter(sim_id_cuMemcpyBatchAsync_v2);
  if (result) return result;
  return sim_leave(copy_batch(dst, src, sizes, count, attributes, first, attribute_count, NULL, stream));
}

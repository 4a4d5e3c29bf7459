#include "tests/simulated/cuda/sim_shared.h"

#include <sys/mman.h>

#include "tests/simulated/cuda/sim_call.h"
#include "tests/simulated/cuda/sim_context.h"
#include "tests/simulated/cuda/sim_device.h"
#include "tests/simulated/cuda/sim_link.h"
#include "tests/simulated/cuda/sim_stream.h"

CUresult sim_shared_destroy(sim_range *range) {
  void *host = (void *)(uintptr_t)range->at;
  uint64_t bytes = range->bytes;
  sim_range_remove(range);
  munmap(host, bytes);
  return CUDA_SUCCESS;
}

static CUresult shared_alloc(CUdeviceptr *out, size_t bytes, unsigned flags) {
  if (!out || !bytes || (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST)) return CUDA_ERROR_INVALID_VALUE;
  void *host = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (host == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
  CUcontext context = sim_context_current();
  sim_range like = {.at = (uintptr_t)host, .bytes = bytes, .kind = SIM_SHARED, .context = context};
  like.device = context->device;
  if (!sim_range_add(&like)) {
    munmap(host, bytes);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  *out = like.at;
  return CUDA_SUCCESS;
}

CUresult cuMemAllocManaged(CUdeviceptr *out, size_t bytes, unsigned flags) {
  CUresult result = sim_enter(sim_id_cuMemAllocManaged);
  if (result) return result;
  return sim_leave(shared_alloc(out, bytes, flags));
}

static bool shared_has(CUdeviceptr at, size_t bytes) {
  const sim_range *range = sim_range_find(at);
  return bytes && range && range->kind == SIM_SHARED && bytes <= range->at + range->bytes - at;
}

static bool shared_place_ok(CUmemLocation place) {
  if (place.type == CU_MEM_LOCATION_TYPE_DEVICE) return sim_device_exists(place.id);
  return place.type >= CU_MEM_LOCATION_TYPE_HOST && place.type <= CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT;
}

static CUmemLocation shared_place_of(CUdevice device) {
  CUmemLocationType type = device == CU_DEVICE_CPU ? CU_MEM_LOCATION_TYPE_HOST : CU_MEM_LOCATION_TYPE_DEVICE;
  return (CUmemLocation){.type = type, .id = device};
}

/* With a link model the bytes cross the link, each time; they are where they are. */
static gm__link_op shared_link(const sim_queue *queue, CUdeviceptr at, size_t bytes, CUmemLocation place) {
  const bool up = place.type == CU_MEM_LOCATION_TYPE_DEVICE;
  const uint32_t device = (uint32_t)(up ? place.id : queue->device);
  gm__link_entry entry = {.kind = up ? GM__LINK_H2D : GM__LINK_D2H, .device = device, .peer = device, .bytes = bytes};
  *(up ? &entry.to : &entry.from) = at;
  return sim_link_is_on() ? (gm__link_op){.entry = entry} : (gm__link_op){0};
}

/* It takes its time, even where nothing is before it. */
static CUresult shared_arrive(sim_op *op, sim_queue *queue) {
  (void)op, (void)queue;
  return CUDA_SUCCESS;
}

/* Nothing moves, yet it takes its place in the stream. */
static CUresult shared_prefetch(CUdeviceptr at, size_t bytes, CUmemLocation place, unsigned flags, CUstream stream) {
  if (!shared_has(at, bytes) || flags) return CUDA_ERROR_INVALID_VALUE;
  if (!shared_place_ok(place)) return CUDA_ERROR_INVALID_DEVICE;
  sim_queue *queue = NULL;
  CUresult result = sim_stream_queue(stream, &queue);
  if (result) return result;
  sim_op *op = sim_op_create(sizeof *op);
  if (!op) return CUDA_ERROR_OUT_OF_MEMORY;
  op->link = shared_link(queue, at, bytes, place);
  if (sim_link_is_on()) op->run = shared_arrive;
  return sim_queue_add(queue, op);
}

CUresult cuMemPrefetchAsync(CUdeviceptr at, size_t bytes, CUdevice device, CUstream stream) {
  CUresult result = sim_enter(sim_id_cuMemPrefetchAsync);
  if (result) return result;
  return sim_leave(shared_prefetch(at, bytes, shared_place_of(device), 0, stream));
}

CUresult cuMemPrefetchAsync_v2(CUdeviceptr at, size_t bytes, CUmemLocation place, unsigned flags, CUstream stream) {
  CUresult result = sim_enter(sim_id_cuMemPrefetchAsync_v2);
  if (result) return result;
  return sim_leave(shared_prefetch(at, bytes, place, flags, stream));
}

static CUresult shared_advise(CUdeviceptr at, size_t bytes, CUmem_advise advice, CUmemLocation place) {
  bool of_place = advice >= CU_MEM_ADVISE_SET_PREFERRED_LOCATION && advice != CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION;
  if (!shared_has(at, bytes) || advice < CU_MEM_ADVISE_SET_READ_MOSTLY || advice > CU_MEM_ADVISE_UNSET_ACCESSED_BY)
    return CUDA_ERROR_INVALID_VALUE;
  return of_place && !shared_place_ok(place) ? CUDA_ERROR_INVALID_DEVICE : CUDA_SUCCESS;
}

CUresult cuMemAdvise(CUdeviceptr at, size_t bytes, CUmem_advise advice, CUdevice device) {
  CUresult result = sim_enter(sim_id_cuMemAdvise);
  if (result) return result;
  return sim_leave(shared_advise(at, bytes, advice, shared_place_of(device)));
}

CUresult cuMemAdvise_v2(CUdeviceptr at, size_t bytes, CUmem_advise advice, CUmemLocation place) {
  CUresult result = sim_enter(sim_id_cuMemAdvise_v2);
  if (result) return result;
  return sim_leave(shared_advise(at, bytes, advice, place));
}

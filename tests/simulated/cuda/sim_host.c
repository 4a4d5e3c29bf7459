/* Pinned host memory: allocated by the driver, or the program's own, registered. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/simulated/cuda/sim_call.h"
#include "tests/simulated/cuda/sim_context.h"
#include "tests/simulated/cuda/sim_queue.h"
#include "tests/simulated/cuda/sim_range.h"

static const uint64_t host_register_most = (uint64_t)512 << 30;

static bool host_has_room(uint64_t bytes) {
  uint64_t used = sim_range_bytes(SIM_HOST) + sim_range_bytes(SIM_REGISTERED);
  return !sim_script_now.pinned || (bytes <= sim_script_now.pinned && used <= sim_script_now.pinned - bytes);
}

static CUresult host_alloc(void **out, size_t bytes, unsigned flags) {
  unsigned known = CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED;
  if (!out || !bytes || (flags & ~known)) return CUDA_ERROR_INVALID_VALUE;
  if (sim_script_now.hostile_null) return *out = NULL, CUDA_SUCCESS;
  if (!host_has_room(bytes)) return CUDA_ERROR_OUT_OF_MEMORY;
  void *host = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (host == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
  CUcontext context = sim_context_current();
  sim_range like = {.at = (uintptr_t)host, .bytes = bytes, .kind = SIM_HOST, .context = context};
  like.device = context->device;
  like.flags = flags | CU_MEMHOSTALLOC_DEVICEMAP;
  if (!sim_range_add(&like)) {
    munmap(host, bytes);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  *out = host;
  return CUDA_SUCCESS;
}

CUresult cuMemHostAlloc(void **out, size_t bytes, unsigned flags) {
  CUresult result = sim_enter(sim_id_cuMemHostAlloc);
  if (result) return result;
  return sim_leave(host_alloc(out, bytes, flags));
}

CUresult cuMemAllocHost_v2(void **out, size_t bytes) {
  CUresult result = sim_enter(sim_id_cuMemAllocHost_v2);
  if (result) return result;
  return sim_leave(host_alloc(out, bytes, 0));
}

/* The range at exactly `address`, after all work that may use it. */
static sim_range *host_idle(const void *address, sim_kind kind) {
  uint64_t at = (uintptr_t)address;
  const sim_range *range = sim_range_find(at);
  if (!range || range->at != at || range->kind != kind) return NULL;
  uint64_t id = range->id;
  for (int device = 0; device < sim_script_now.devices; device++) sim_queue_wait_device(device);
  sim_range *again = sim_range_find(at);
  return again && again->id == id ? again : NULL;
}

static CUresult host_free(void *host) {
  if (!host) return CUDA_ERROR_INVALID_VALUE;
  sim_range *range = host_idle(host, SIM_HOST);
  if (!range) return CUDA_ERROR_INVALID_VALUE;
  uint64_t bytes = range->bytes;
  sim_range_remove(range);
  munmap(host, bytes);
  return CUDA_SUCCESS;
}

CUresult cuMemFreeHost(void *host) {
  CUresult result = sim_enter(sim_id_cuMemFreeHost);
  if (result) return result;
  return sim_leave(host_free(host));
}

/* Is every page there, and may it be written? */
static bool host_pages(uint64_t at, uint64_t bytes, bool *writable_out) {
  FILE *maps = fopen("/proc/self/maps", "re");
  if (!maps) return false;
  uint64_t end = at + bytes;
  char line[512];
  *writable_out = true;
  while (at < end && fgets(line, sizeof line, maps)) {
    uint64_t first = 0, last = 0;
    char rights[8];
    if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s", &first, &last, rights) != 3 || last <= at) continue;
    if (first > at || rights[0] != 'r') break;
    if (rights[1] != 'w') *writable_out = false;
    at = last;
  }
  fclose(maps);
  return at >= end;
}

static CUresult host_register(void *host, size_t bytes, unsigned flags) {
  unsigned known = CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP | CU_MEMHOSTREGISTER_READ_ONLY;
  uint64_t at = (uintptr_t)host;
  if (!host || !bytes || bytes > UINT64_MAX - at) return CUDA_ERROR_INVALID_VALUE;
  if (flags & CU_MEMHOSTREGISTER_IOMEMORY) return CUDA_ERROR_NOT_SUPPORTED;
  if (flags & ~known) return CUDA_ERROR_INVALID_VALUE;
  bool read_only = flags & CU_MEMHOSTREGISTER_READ_ONLY;
  if (read_only && !sim_script_now.read_only_register) return CUDA_ERROR_NOT_SUPPORTED;
  if (bytes > host_register_most || sim_range_is_device(at)) return CUDA_ERROR_INVALID_VALUE;
  if (!sim_range_is_free(at, bytes)) return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
  bool writable = false;
  if (!host_pages(at, bytes, &writable) || (!writable && !read_only)) return CUDA_ERROR_INVALID_VALUE;
  if (!host_has_room(bytes)) return CUDA_ERROR_OUT_OF_MEMORY;
  CUcontext context = sim_context_current();
  sim_range like = {.at = at, .bytes = bytes, .kind = SIM_REGISTERED, .context = context, .flags = flags};
  like.device = context->device;
  return sim_range_add(&like) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuMemHostRegister_v2(void *host, size_t bytes, unsigned flags) {
  CUresult result = sim_enter(sim_id_cuMemHostRegister_v2);
  if (result) return result;
  return sim_leave(host_register(host, bytes, flags));
}

CUresult cuMemHostUnregister(void *host) {
  CUresult result = sim_enter(sim_id_cuMemHostUnregister);
  if (result) return result;
  if (!host) return sim_leave(CUDA_ERROR_INVALID_VALUE);
  sim_range *range = host_idle(host, SIM_REGISTERED);
  if (!range) return sim_leave(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
  sim_range_remove(range);
  return sim_leave(CUDA_SUCCESS);
}

static const sim_range *host_find(const void *host) {
  const sim_range *range = sim_range_find((uintptr_t)host);
  return range && (range->kind == SIM_HOST || range->kind == SIM_REGISTERED) ? range : NULL;
}

CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *out, void *host, unsigned flags) {
  CUresult result = sim_enter(sim_id_cuMemHostGetDevicePointer_v2);
  if (result) return result;
  if (!out || flags || !host_find(host)) return sim_leave(CUDA_ERROR_INVALID_VALUE);
  *out = (uintptr_t)host;
  return sim_leave(CUDA_SUCCESS);
}

CUresult cuMemHostGetFlags(unsigned *out, void *host) {
  CUresult result = sim_enter(sim_id_cuMemHostGetFlags);
  if (result) return result;
  const sim_range *range = host_find(host);
  if (!out || !range) return sim_leave(CUDA_ERROR_INVALID_VALUE);
  *out = range->flags;
  return sim_leave(CUDA_SUCCESS);
}

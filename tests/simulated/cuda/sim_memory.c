/* The bytes themselves: copies and fills by address, as the workers and kernels do them. */
#include <string.h>

#include "tests/simulated/cuda/sim_call.h"
#include "tests/simulated/cuda/sim_context.h"
#include "tests/simulated/cuda/sim_range.h"

static bool memory_may(const sim_range *range, int device) {
  if (range->kind != SIM_MAPPED) return true;
  return range->access[device] || (range->device >= 0 && range->access[range->device]);
}

void *sim_range_pin(int device, uint64_t at, uint64_t *bytes, sim_phys **phys_out) {
  *phys_out = NULL;
  if (!sim_range_is_device(at)) return (void *)(uintptr_t)at;
  pthread_mutex_lock(&sim_lock);
  void *host = NULL;
  sim_range *range = sim_range_find(at);
  if (range && memory_may(range, device)) {
    uint64_t inside = at - range->at;
    uint64_t left = range->bytes - inside;
    if (*bytes > left) *bytes = left;
    host = range->phys->host + range->phys_at + inside;
    *phys_out = range->phys;
    sim_phys_retain(range->phys);
  }
  pthread_mutex_unlock(&sim_lock);
  return host;
}

static void memory_unpin(sim_phys *phys) {
  if (!phys) return;
  pthread_mutex_lock(&sim_lock);
  sim_phys_release(phys);
  pthread_mutex_unlock(&sim_lock);
}

CUresult sim_range_copy(int device, uint64_t to, uint64_t from, uint64_t bytes) {
  while (bytes) {
    uint64_t piece = bytes;
    sim_phys *source = NULL, *target = NULL;
    const void *read_at = sim_range_pin(device, from, &piece, &source);
    void *write_at = sim_range_pin(device, to, &piece, &target);
    if (read_at && write_at) memmove(write_at, read_at, piece);
    memory_unpin(source);
    memory_unpin(target);
    if (!read_at || !write_at) return CUDA_ERROR_ILLEGAL_ADDRESS;
    to += piece;
    from += piece;
    bytes -= piece;
  }
  return CUDA_SUCCESS;
}

static void memory_fill_piece(unsigned char *at, uint32_t value, unsigned width, uint64_t bytes) {
  if (width == 1) {
    memset(at, (int)(value & 0xff), bytes);
    return;
  }
  bytes -= bytes % width;
  for (uint64_t done = 0, more; done < bytes; done += more) { /* what is there, once more */
    const uint64_t left = bytes - done;
    more = !done ? width : done < left ? done : left;
    memcpy(at + done, done ? at : (const unsigned char *)&value, more);
  }
}

CUresult sim_range_fill(int device, uint64_t to, uint32_t value, unsigned width, uint64_t count) {
  for (uint64_t bytes = count * width; bytes;) {
    uint64_t piece = bytes;
    sim_phys *target = NULL;
    unsigned char *at = sim_range_pin(device, to, &piece, &target);
    if (!at) return CUDA_ERROR_ILLEGAL_ADDRESS;
    memory_fill_piece(at, value, width, piece);
    memory_unpin(target);
    to += piece;
    bytes -= piece;
  }
  return CUDA_SUCCESS;
}

int simCudaStore(uint64_t to, const void *from, uint64_t bytes);

/* For the simulated cuFile: bytes of the host into a device's memory, past the link. Not 0: no context is current in
 * this thread, or nothing lies there. */
__attribute__((visibility("default"))) int simCudaStore(uint64_t to, const void *from, uint64_t bytes) {
  pthread_mutex_lock(&sim_lock);
  const CUcontext context = sim_context_current();
  const int device = context ? context->device : -1;
  pthread_mutex_unlock(&sim_lock);
  return device < 0 ? -1 : (int)sim_range_copy(device, to, (uintptr_t)from, bytes);
}

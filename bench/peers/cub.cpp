// CUB's CachingDeviceAllocator over the fake runtime. Config "": as it comes; "pow2": every size in bins of powers of
// two, no bound on what is kept.
#include <cub/util_allocator.cuh>

#include <cstring>

#include "bench/peers/fake/fake_device.h"
#include "bench/peers/peer.h"

static cub::CachingDeviceAllocator *cub_allocator;
static bool cub_pow2;

static cudaStream_t cub_stream(uint64_t stream) {
  return stream ? reinterpret_cast<cudaStream_t>(0x1000 + stream * 16) : nullptr;
}

PEER_API int peer_init(const char *config) {
  cub_pow2 = std::strcmp(config, "pow2") == 0;
  cub_allocator = cub_pow2 ? new cub::CachingDeviceAllocator(2, 9, 36, cub::CachingDeviceAllocator::INVALID_SIZE, true)
                           : new cub::CachingDeviceAllocator();
  return 0;
}

PEER_API void *peer_alloc(size_t bytes, uint64_t stream) {
  void *pointer = nullptr;
  return cub_allocator->DeviceAllocate(&pointer, bytes, cub_stream(stream)) == cudaSuccess ? pointer : nullptr;
}

// It knows the stream of the allocation and takes the free to be in its order: a free elsewhere is not told apart.
PEER_API void peer_free(void *pointer, size_t, uint64_t) { cub_allocator->DeviceFree(pointer); }

PEER_API const char *peer_name(void) { return cub_pow2 ? "CUB pow2" : "CUB"; }

#include "bench/peers/fake_figures.h"

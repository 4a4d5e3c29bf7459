// RMM's memory resources over the fake runtime. Config "" or "pool": a pool over cudaMalloc; "binning": powers of two
// up to 16 MiB in bins, the rest in such a pool; "arena": one arena for each
// stream, cut from all memory that is free at the start (by default RMM takes half).
#include <rmm/cuda_device.hpp>
#include <rmm/cuda_stream_view.hpp>
#include <rmm/logger.hpp>
#include <rmm/mr/device/arena_memory_resource.hpp>
#include <rmm/mr/device/binning_memory_resource.hpp>
#include <rmm/mr/device/cuda_memory_resource.hpp>
#include <rmm/mr/device/pool_memory_resource.hpp>

#include <cstdio>
#include <cstring>

#include "bench/peers/fake_figures.h"

// The questions of librmm to a CUDA runtime of its own, linked into it, are answered here by the fake one: this library
// is searched before librmm.
namespace rmm {
__attribute__((visibility("default"))) int get_num_cuda_devices() { return 1; }

__attribute__((visibility("default"))) cuda_device_id get_current_cuda_device() { return cuda_device_id{0}; }

__attribute__((visibility("default"))) std::pair<std::size_t, std::size_t> available_device_memory() {
  return {fake_device_capacity() - fake_device_used(), fake_device_capacity()};
}
}  // namespace rmm

using rmm_cuda = rmm::mr::cuda_memory_resource;
using rmm_pool = rmm::mr::pool_memory_resource<rmm_cuda>;

static rmm::mr::device_memory_resource *rmm_resource;
static const char *rmm_name = "RMM pool";

static rmm::cuda_stream_view rmm_stream(uint64_t stream) {
  return stream ? rmm::cuda_stream_view(reinterpret_cast<cudaStream_t>(0x1000 + stream * 16)) : rmm::cuda_stream_view();
}

static void rmm_open(const char *config) {
  auto *cuda = new rmm_cuda;
  if (std::strcmp(config, "arena") == 0) {
    rmm_name = "RMM arena";
    rmm_resource = new rmm::mr::arena_memory_resource<rmm_cuda>(cuda, fake_device_capacity() - fake_device_used());
    return;
  }
  auto *pool = new rmm_pool(cuda, 0);
  rmm_resource = pool;
  if (std::strcmp(config, "binning") != 0) return;
  rmm_name = "RMM binning";
  rmm_resource = new rmm::mr::binning_memory_resource<rmm_pool>(pool, 9, 24);
}

PEER_API int peer_init(const char *config) {
  try {
    rmm::default_logger().set_level(rapids_logger::level_enum::off);  // a full device is no error here
    rmm_open(config);
    return 0;
  } catch (const std::exception &problem) {
    std::fprintf(stderr, "rmm: %s\n", problem.what());
    return -1;
  }
}

PEER_API void *peer_alloc(size_t bytes, uint64_t stream) {
  try {
    return rmm_resource->allocate_async(bytes, rmm_stream(stream));
  } catch (const std::exception &) {
    return nullptr;  // out of memory is an exception there
  }
}

PEER_API void peer_free(void *pointer, size_t bytes, uint64_t stream) {
  rmm_resource->deallocate_async(pointer, bytes, rmm_stream(stream));
}

PEER_API const char *peer_name(void) { return rmm_name; }

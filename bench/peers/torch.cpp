// PyTorch's CUDACachingAllocator, the libc10_cuda of its wheel, over the fake runtime. Expandable segments are switched
// on by PYTORCH_CUDA_ALLOC_CONF, as for PyTorch itself.
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/PeerToPeerAccess.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "bench/peers/fake_figures.h"

namespace c10::cuda::_internal {
C10_CUDA_API void setHasPrimaryContext(bool (*)(DeviceIndex));
}

static c10::cuda::CUDACachingAllocator::CUDAAllocator *torch_allocator;

static cudaStream_t torch_stream(uint64_t stream) {
  return stream ? reinterpret_cast<cudaStream_t>(0x1000 + stream * 16) : nullptr;
}

static bool torch_has_context(c10::DeviceIndex) { return true; }

PEER_API int peer_init(const char *) {
  try {
    c10::cuda::_internal::setHasPrimaryContext(torch_has_context);
    c10::cuda::detail::init_p2p_access_cache(1);
    torch_allocator = c10::cuda::CUDACachingAllocator::get();
    torch_allocator->init(1);
    return 0;
  } catch (const std::exception &problem) {
    std::fprintf(stderr, "torch: %s\n", problem.what());
    return -1;
  }
}

PEER_API void *peer_alloc(size_t bytes, uint64_t stream) {
  try {
    return torch_allocator->raw_alloc_with_stream(bytes, torch_stream(stream));
  } catch (const std::exception &) {
    return nullptr;  // out of memory is an exception there
  }
}

PEER_API void peer_free(void *pointer, size_t, uint64_t) { torch_allocator->raw_delete(pointer); }

// Used last on another stream: recordStream, then the free.
PEER_API void peer_free_cross(void *pointer, size_t, uint64_t, uint64_t stream) {
  c10::DataPtr data(pointer, pointer, torch_allocator->raw_deleter(), c10::Device(c10::DeviceType::CUDA, 0));
  torch_allocator->recordStream(data, c10::cuda::getStreamFromExternal(torch_stream(stream), 0));
  data.release_context();
  torch_allocator->raw_delete(pointer);
}

PEER_API const char *peer_name(void) {
  const char *settings = std::getenv("PYTORCH_CUDA_ALLOC_CONF");
  return settings && std::strstr(settings, "expandable_segments:True") ? "PyTorch expandable" : "PyTorch";
}

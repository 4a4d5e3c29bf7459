// torch's tensors on the CPU in gm's pool of host memory. Blocks that are alive keep the allocator they came from.
#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <c10/util/Exception.h>

#include "../shared/engines.h"

namespace {

class HostAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    void *pointer = bytes ? gm_engines_host_alloc(bytes) : nullptr;
    TORCH_CHECK_WITH(OutOfMemoryError, pointer || bytes == 0, "gm: ", gm_engines_why());
    return {pointer, pointer, &gm_engines_host_free, c10::Device(c10::DeviceType::CPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &gm_engines_host_free; }
  void copy_data(void *to, const void *from, std::size_t bytes) const override { default_copy_data(to, from, bytes); }
};

HostAllocator allocator;

}  // namespace

extern "C" __attribute__((visibility("default"))) void gm_torch_cpu_install(void) {
  c10::SetCPUAllocator(&allocator, 1);
}

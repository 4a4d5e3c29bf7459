// The trait GpuMemoryPool: what every pool can say and do, whatever the backend.
#include <cstring>

#include "example.hpp"
#include "gm/manage.hpp"

namespace {

class gpu_memory_pool {
 public:
  explicit gpu_memory_pool(gm::pool pool) : pool_(std::move(pool)) {}
  const char *backend_name() const { return pool_.parent().info().backend; }
  gm_stats stats() const { return example_stats(pool_); }
  std::uint64_t total_memory() const { return memory().total_bytes; }
  std::uint64_t free_memory() const { return memory().free_bytes; }
  gm_pressure_level pressure() const {
    gm_pressure now = {};
    CLAIM(gm::pressure_of(pool_, now) == GM_OK);
    return now.level;
  }
  void clear_pool() const { gm::clear(pool_); }
  std::uint64_t shrink() const { return gm_pool_shrink(pool_.get(), 0); } /* what nobody uses; returns the bytes */

 private:
  gm_memory_info memory() const {
    gm_memory_info out = {};
    CLAIM(pool_.parent().memory_info(out) == GM_OK);
    return out;
  }
  gm::pool pool_;
};

}  // namespace

int main(int argc, char **argv) {
  const char *backend = argc > 1 ? argv[1] : "null";
  const gm::pool memory = example_pool(backend);
  const gpu_memory_pool pool(memory);
  CLAIM(std::strcmp(pool.backend_name(), backend) == 0 && pool.pressure() == GM_PRESSURE_LOW);
  CLAIM(pool.total_memory() > 0 && pool.free_memory() <= pool.total_memory());
  { const gm::block block = memory.alloc(1 << 20); }
  CLAIM(pool.stats().pooled_bytes >= 1 << 20);
  CLAIM(pool.shrink() >= 1 << 20 && pool.stats().pooled_bytes == 0);
  { const gm::block block = memory.alloc(1 << 20); }
  pool.clear_pool();
  CLAIM(pool.stats().reserved_bytes == 0);
  std::puts("one class serves every backend");
  return 0;
}

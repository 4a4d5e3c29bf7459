#include <cstdio>
#include <vector>

#include "gm/gm.hpp"

int main() {
  gm_error err = {};
  const gm::context ctx = gm::context::create(nullptr, &err);
  const gm::device cpu = gm::device::open(ctx, "cpu", 0, &err);
  const gm::pool pool = gm::pool::create(cpu, nullptr, &err);
  if (!pool) return std::fprintf(stderr, "%s\n", err.message), 1;

  gm::block weights = pool.alloc(1 << 20);  // freed at the end of the scope
  gm::pool_resource resource(pool);
  std::pmr::vector<float> numbers(256, 1.0F, &resource);
  std::printf("%llu bytes and %zu numbers\n", static_cast<unsigned long long>(weights.bytes()), numbers.size());
  return 0;
}

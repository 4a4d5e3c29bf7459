// Memory pressure, and check_memory_health: a warning above 0.7, an emergency clean-up above 0.9. A watch calls the
// program instead, when a level changes.
#include "example.hpp"
#include "gm/manage.hpp"

namespace {

constexpr std::uint64_t MIB = 1 << 20;

double check_memory_health(const gm::pool &pool) {
  gm_pressure pressure = {};
  CLAIM(gm::pressure_of(pool, pressure) == GM_OK);
  if (pressure.ratio > 0.7) std::printf("high memory pressure: %.1f%%\n", pressure.ratio * 100);
  if (pressure.ratio > 0.9)
    CLAIM(gm_device_cleanup(pool.parent().get(), nullptr, nullptr) == GM_OK); /* emergency_cleanup */
  return pressure.ratio;
}

}  // namespace

int main(int argc, char **argv) {
  const gm::pool pool = example_pool(argc > 1 ? argv[1] : "null", gm::pool_options().max_bytes(100 * MIB));
  CLAIM(check_memory_health(pool) == 0);
  const gm::block most = pool.alloc(92 * MIB);
  { const gm::block idle = pool.alloc(4 * MIB); }
  CLAIM(example_stats(pool).pooled_bytes >= 4 * MIB);
  CLAIM(check_memory_health(pool) > 0.9);
  CLAIM(example_stats(pool).pooled_bytes < 4 * MIB);
  return 0;
}

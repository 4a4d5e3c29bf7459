// set_max_pool_size, memory_usage, total_memory_usage, and configure_gpu_memory: at most 70 % of a device.
#include "example.hpp"
#include "gm/batch.hpp"

namespace {

constexpr std::uint64_t GIB = std::uint64_t{1} << 30;

}  // namespace

int main(int argc, char **argv) {
  const char *backend = argc > 1 ? argv[1] : "null";
  const gm::context ctx = gm::context::create();
  const gm::device devices[] = {gm::device::open(ctx, backend, 0), gm::device::open(ctx, backend, 0)};
  CLAIM(devices[0] && devices[1]);
  const gm::pool_set pools = gm::pool_set::create(devices, 2);
  CLAIM(pools && gm_pool_set_max_bytes(pools[0], GIB, nullptr) == GM_OK); /* 1 GB */
  const gm_request two = gm::request(2 * GIB), half = gm::request(GIB / 2);
  gm_block block, other;
  CLAIM(gm_alloc(pools[0], &two, &block) == GM_ACQUIRE_OVER_LIMIT);
  CLAIM(gm_acquired(gm_alloc(pools[0], &half, &block)) && gm_acquired(gm_alloc(pools[1], &half, &other)));

  gm_memory_usage total = {}, each[2] = {};
  CLAIM(pools.total(total) == GM_OK && pools.usage(each, 2) == 2);
  CLAIM(total.in_use_bytes == GIB && each[0].in_use_bytes == GIB / 2);
  CLAIM(gm_free(pools[0], &block, nullptr) == GM_OK && gm_free(pools[1], &other, nullptr) == GM_OK);
  CLAIM(pools.usage(each, 2) == 2 && each[0].in_use_bytes == 0 && each[0].peak_in_use_bytes == GIB / 2);

  gm_memory_info info = {}; /* get_memory_stats(0) */
  CLAIM(devices[0].memory_info(info) == GM_OK);
  const std::uint64_t most = info.total_bytes / 100 * 70;
  const gm::pool conservative = gm::pool::create(devices[0], gm::pool_options().max_bytes(most));
  CLAIM(conservative && conservative.alloc(most + (GIB / 16)).acquire() == GM_ACQUIRE_OVER_LIMIT);
  std::puts("the caps held");
  return 0;
}

// gm.hpp and scope.hpp in a program without exceptions and run-time types: failures are empty objects and statuses.
#include "gm/batch.hpp"
#include "gm/cache.hpp"
#include "gm/manage.hpp"
#include "gm/options.hpp"
#include "gm/scope.hpp"

#ifdef GM_HPP_EXCEPTIONS
#error "this program is compiled without exceptions"
#endif

int main() {
  gm_error err = {};
  const gm::context ctx = gm::context::create(nullptr, &err);
  const gm::device none = gm::device::open(ctx, "cpu", 99, &err);
  if (none || err.status == GM_OK) return 1;
  const gm::device device = gm::device::open(ctx, "cpu", 0, &err);
  const gm::pool pool = gm::pool::create(device, nullptr, &err);
  gm::block block = pool.alloc(1000);
  const gm::block much = pool.alloc(UINT64_MAX);
  gm_pressure pressure = {};
  std::uint64_t back = 0;
  if (pool.set_max_bytes(UINT64_C(8) << 20, &err) != GM_OK || pool.alloc(UINT64_C(16) << 20)) return 1;
  if (gm::pressure_of(pool, pressure, &err) != GM_OK || pressure.total_bytes != UINT64_C(8) << 20) return 1;
  {
    const gm::block idle = pool.alloc(UINT64_C(6) << 20);
    if (!idle) return 1;
  }
  if (gm::configure(pool, "cleanup.threshold", "0.5", &err) != GM_OK) return 1;
  if (gm::configured(pool, "cleanup.threshold", &err) != "0.5") return 1;
  if (gm::configure(pool, "cache.global", "1", &err) != GM_ERR_NOT_SUPPORTED) return 1;
  if (!gm::configured(pool, "cache.global", &err).empty() || err.status != GM_ERR_NOT_SUPPORTED) return 1;
  if (gm::coalesce(pool) < UINT64_C(6) << 20) return 1;
  if (gm::cleanup(pool, GM_CLEANUP_THRESHOLD_CONFIG, true, &back, &err) != GM_OK || back < UINT64_C(6) << 20) return 1;
  if (gm::clear(pool) != 0) return 1;
  gm_fragmentation holes = {};
  if (gm::fragmentation_of(pool, holes, &err) != GM_OK || holes.ratio != 0 || holes.reserved_bytes == 0) return 1;
  gm_trace_profile profile = {};
  if (gm::profile_of(pool, profile, &err) != GM_OK || profile.distinct_sizes != 1) return 1;
  gm::managed memory = gm::managed::create(pool, 4096, &err);
  gm::managed moved = std::move(memory);
  if (memory || !moved || !moved.host() || moved.block()->bytes < 4096) return 1;
  memory = std::move(moved);
  if (moved || !memory || memory.destroy() != GM_OK || memory) return 1;
  gm::tracker tracker = gm::tracker::create(ctx, &err), other = std::move(tracker);
  if (tracker || !other || gm_tracker_count(other.get()) != 0) return 1;
  const gm_request sizes[] = {gm::request(10), gm::request(20)};
  const gm::batch batch = gm::batch::create(pool, sizes, 2);
  const gm::cache<int> cache = gm::cache<int>::create(ctx);
  if (batch.size() != 2 || !cache || cache.find("none") || gm::batch::create(pool, sizes, 2, 99)) return 1;
  int released = 0;
  {
    const gm::scope scope = gm::scope::create(pool, &err);
    if (scope.defer([&released] { released++; }) != GM_OK) return 1;
  }
  if (released != 1) return 1;
  return block && !much && !gm_acquired(much.acquire()) && block.free() == GM_OK ? 0 : 1;
}

// gm.hpp and scope.hpp in a program without exceptions and run-time types: failures are empty objects and statuses.
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
  int released = 0;
  {
    const gm::scope scope = gm::scope::create(pool, &err);
    if (scope.defer([&released] { released++; }) != GM_OK) return 1;
  }
  if (released != 1) return 1;
  return block && !much && !gm_acquired(much.acquire()) && block.free() == GM_OK ? 0 : 1;
}

// GpuError, and robust_gpu_operation: a wrong input and a lack of memory are told apart. After the latter the program
// cleans up, and tries once more.
#include "example.hpp"
#include "gm/manage.hpp"

namespace {

constexpr std::uint64_t MIB = 1 << 20;

gm::block robust_operation(const gm::pool &first, std::uint64_t bytes) {
  gm::block block = first.alloc(bytes);
  if (block.acquire() == GM_ACQUIRE_EXHAUSTED || block.acquire() == GM_ACQUIRE_OVER_LIMIT) { /* GpuError::Allocation */
    CLAIM(gm_context_cleanup(first.parent().parent().get(), nullptr, nullptr) == GM_OK);     /* emergency_cleanup_all */
    block = first.alloc(bytes);
  }
  return block;
}

gm_explanation explain(const gm::pool &pool, const gm_request &request) {
  gm_explanation why = {};
  why.struct_size = sizeof why;
  CLAIM(gm_explain(pool.get(), &request, &why, nullptr) == GM_OK);
  return why;
}

}  // namespace

int main(int argc, char **argv) {
  const gm::pool pool = example_pool(argc > 1 ? argv[1] : "null", gm::pool_options().max_bytes(64 * MIB));
  const gm_request wrong = gm::request(MIB).align(3);
  CLAIM(pool.alloc(wrong).acquire() == GM_ACQUIRE_INVALID); /* GpuError::InvalidInput */
  std::printf("invalid: %s\n", explain(pool, wrong).text);

  gm::block cached = pool.alloc(40 * MIB);
  CLAIM(!robust_operation(pool, 40 * MIB));
  const gm_explanation why = explain(pool, gm::request(40 * MIB));
  CLAIM(why.cause == GM_CAUSE_POOL_CAP && why.change == GM_CHANGE_RAISE_CAP);
  std::printf("no memory: %s\n", why.last_failure.message);
  CLAIM(cached.free() == GM_OK);
  CLAIM(robust_operation(pool, 40 * MIB));
  return 0;
}

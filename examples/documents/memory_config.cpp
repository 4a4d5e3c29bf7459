// MemoryConfig: defaults, presets, and a builder with 80 % of the memory, fallback, 1 GB kept free and tracking.
#include <cstring>

#include "example.hpp"
#include "gm/manage.hpp"

namespace {

bool is(const gm::context &ctx, const char *key, const char *value) {
  char text[64] = "";
  return gm_config_get(ctx.get(), key, text, sizeof text, nullptr, nullptr) == GM_OK && std::strcmp(text, value) == 0;
}

}  // namespace

int main(int argc, char **argv) {
  const gm::context plain = gm::context::create(gm::context_options().ignore_environment());
  CLAIM(is(plain, "memory_fraction", "0.9") && is(plain, "cpu_fallback", "true"));
  CLAIM(is(plain, "min_free_bytes", "auto")); /* the smaller of 512 MiB and 5 % */
  CLAIM(is(plain, "max_pooled_per_bucket", "8") && is(plain, "pre_allocate", "false"));
  const gm::context inference = gm::context::create(gm::context_options().ignore_environment().preset("inference"));
  CLAIM(is(inference, "memory_fraction", "0.95") && is(inference, "track_allocations", "false"));
  const gm::context constrained = gm::context::create(gm::context_options().ignore_environment().preset("constrained"));
  CLAIM(is(constrained, "memory_fraction", "0.7"));
  CLAIM(gm::context::create(gm::context_options().preset("training"))); /* for_training */

  const gm::pool pool = gm::pool::create(gm::device::open(plain, argc > 1 ? argv[1] : "null"),
                                         gm::pool_options().memory_fraction(0.8).min_free_bytes(1 << 30).track());
  CLAIM(pool && gm::tracker_of(pool));
  gm_memory_info info = {};
  CLAIM(pool.parent().memory_info(info) == GM_OK);
  CLAIM(pool.alloc(info.total_bytes / 10 * 9).acquire() == GM_ACQUIRE_OVER_LIMIT);
  CLAIM(pool.alloc(info.total_bytes / 10 * 7));
  std::puts("defaults, presets and builder are as they say");
  return 0;
}

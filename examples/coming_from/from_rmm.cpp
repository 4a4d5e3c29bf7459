// The usual calls of programs for RMM, with gm; docs/coming-from.md shows parts of this file.
#include <cstdio>
#include <functional>

#include "gm/gm.hpp"

// RMM: a device_buffer from a pool behind a failure_callback_resource_adaptor.
static gm::block buffer_or_evict(const gm::pool &pool, std::uint64_t bytes, gm_stream *stream,
                                 const std::function<bool(std::uint64_t)> &evict) {
  gm::block block = pool.alloc(bytes, stream);
  while (!block && (block.acquire() == GM_ACQUIRE_EXHAUSTED || block.acquire() == GM_ACQUIRE_OVER_LIMIT) &&
         evict(bytes)) {
    block = pool.alloc(bytes, stream);
  }
  return block;  // freed in the order of `stream` at the end of its scope
}

int main() {
  gm_error err = {};
  gm_pool_params params = {};
  params.struct_size = sizeof params;
  params.max_bytes = 64 << 20;
  const gm::context ctx = gm::context::create(nullptr, &err);
  const gm::device cpu = gm::device::open(ctx, "cpu", 0, &err);
  const gm::stream stream = gm::stream::create(cpu, &err);
  const gm::pool pool = gm::pool::create(cpu, &params, &err);
  if (!pool || !stream) return std::fprintf(stderr, "%s\n", err.message), 1;

  gm::block cache = pool.alloc(48 << 20, stream.get());
  int asked = 0;
  const gm::block block = buffer_or_evict(pool, 32 << 20, stream.get(), [&](std::uint64_t) {
    asked++;
    return cache && cache.free() == GM_OK;
  });
  std::printf("%s after %d callback\n", block ? "a buffer" : "nothing", asked);
  return block ? 0 : 1;
}

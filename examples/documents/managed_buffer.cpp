// get_managed_buffer: a buffer of so many numbers goes back to the pool at the end of its scope.
#include "example.hpp"

static gm::block get_managed_buffer(const gm::pool &pool, std::uint64_t size, gm_dtype precision) {
  std::uint64_t bytes = 0;
  if (gm_dtype_bytes(precision, size, &bytes) != GM_OK) return {};
  return pool.alloc(bytes);  // it goes back to the pool where its scope ends
}

int main(int argc, char **argv) {
  const gm::pool pool = example_pool(argc > 1 ? argv[1] : "cpu");
  {
    const gm::block buffer = get_managed_buffer(pool, 1024, GM_DTYPE_F32);
    CLAIM(buffer && buffer.bytes() >= 4096 && example_stats(pool).active == 1);
  }
  CLAIM(example_stats(pool).active == 0);
  const gm::block again = get_managed_buffer(pool, 1024, GM_DTYPE_F32); /* reused */
  CLAIM(again && example_stats(pool).misses == 1);
  std::puts("the buffer went back by itself, and was reused");
  return 0;
}

// Integration with tensor operations: x = randn, y = matmul(x, x), z = x + y. Each step takes the memory of the last
// one.
#include "example.hpp"

namespace {

constexpr int N = 64;

// A matrix of the engine. On the CPU backend a block's address is a pointer.
struct tensor {
  explicit tensor(const gm::pool &pool) : block(pool.alloc(N * N * sizeof(float))) { CLAIM(block); }
  float &at(int row, int column) const { return reinterpret_cast<float *>(block.address())[row * N + column]; }
  gm::block block;
};

tensor identity(const gm::pool &pool) {
  tensor out(pool);
  for (int i = 0; i < N * N; i++) out.at(i / N, i % N) = i / N == i % N ? 1.0F : 0.0F;
  return out;
}

tensor matmul(const gm::pool &pool, const tensor &a, const tensor &b) {
  tensor out(pool);
  for (int i = 0; i < N * N; i++) {
    float sum = 0;
    for (int k = 0; k < N; k++) sum += a.at(i / N, k) * b.at(k, i % N);
    out.at(i / N, i % N) = sum;
  }
  return out;
}

tensor add(const gm::pool &pool, const tensor &a, const tensor &b) {
  tensor out(pool);
  for (int i = 0; i < N * N; i++) out.at(i / N, i % N) = a.at(i / N, i % N) + b.at(i / N, i % N);
  return out;
}

}  // namespace

int main() {
  const gm::pool pool = example_pool("cpu");
  for (int step = 0; step < 10; step++) {
    const tensor x = identity(pool), y = matmul(pool, x, x), z = add(pool, x, y);
    CLAIM(z.at(3, 3) == 2 && z.at(3, 4) == 0);
  }
  const gm_stats stats = example_stats(pool);
  CLAIM(stats.allocs == 30 && stats.misses <= 3 && stats.active == 0);
  std::printf("%d tensors, %d allocations at the driver\n", static_cast<int>(stats.allocs),
              static_cast<int>(stats.driver_allocs));
  return 0;
}

// l2_distance_gpu: all resources are cleaned up, also where it fails in the middle.
#include <cmath>
#include <optional>
#include <vector>

#include "example.hpp"

namespace {

float *numbers(const gm::block &block) { return reinterpret_cast<float *>(block.address()); } /* on the CPU backend */

// The distances of each query to each vector. Empty: there is no memory for one of the three.
std::optional<std::vector<float>> l2_distance(const gm::pool &pool, const std::vector<float> &queries,
                                              const std::vector<float> &corpus, std::size_t dim) {
  const std::size_t n = queries.size() / dim, m = corpus.size() / dim;
  const gm::block q = pool.alloc(queries.size() * sizeof(float));
  if (!q || q.write(queries.data(), queries.size() * sizeof(float)) != GM_OK) return {};
  const gm::block c = pool.alloc(corpus.size() * sizeof(float));
  if (!c || c.write(corpus.data(), corpus.size() * sizeof(float)) != GM_OK) return {};
  const gm::block out = pool.alloc(n * m * sizeof(float));
  if (!out) return {};
  for (std::size_t i = 0; i < n * m; i++) {
    float sum = 0;
    for (std::size_t k = 0; k < dim; k++)
      sum += std::pow(numbers(q)[i / m * dim + k] - numbers(c)[i % m * dim + k], 2.0F);
    numbers(out)[i] = std::sqrt(sum);
  }
  std::vector<float> distances(n * m);
  if (out.read(distances.data(), n * m * sizeof(float)) != GM_OK) return {};
  return distances;
}

}  // namespace

int main() {
  const gm::pool pool = example_pool("cpu", gm::pool_options().max_bytes(8 << 20));
  const auto distances = l2_distance(pool, {0, 0}, {3, 4, 0, 1}, 2);
  CLAIM(distances && (*distances)[0] == 5 && (*distances)[1] == 1);
  const std::vector<float> too_large(4 << 20);
  CLAIM(!l2_distance(pool, {0, 0}, too_large, 2)); /* the second buffer has no room */
  CLAIM(example_stats(pool).active == 0);
  std::puts("nothing was left behind");
  return 0;
}

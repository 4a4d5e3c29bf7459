// DoubleBuffer, by hand: one buffer is processed while the other one gets the next chunk. Points keep the order. gm has
// no such object yet.
#include <vector>

#include "example.hpp"

namespace {

constexpr std::size_t BYTES = 1 << 16;

struct half {
  gm::block data, result;
  gm::point arrived, processed;
};

class double_buffer {
 public:
  explicit double_buffer(const gm::pool &pool)
      : pool_(pool), copies_(gm::stream::create(pool.parent())), work_(gm::stream::create(pool.parent())) {
    for (half &h : halves_) h = {pool.alloc(BYTES, copies_.get()), pool.alloc(BYTES, work_.get()), {}, {}};
  }
  // Transfers a chunk into the staging half, processes it, and swaps. The host memory stays until finish().
  void feed(const std::vector<unsigned char> &chunk, std::vector<unsigned char> &out) {
    half &h = halves_[current_];
    gm_point arrived = {}, processed = {};
    if (h.processed) CLAIM(copies_.wait(h.processed) == GM_OK); /* the half is free again */
    CLAIM(gm_block_write(pool_.get(), &h.data.get(), 0, chunk.data(), BYTES, copies_.get(), &arrived, nullptr) ==
          GM_OK);
    h.arrived = gm::point(pool_.parent().get(), arrived);
    CLAIM(work_.wait(h.arrived) == GM_OK);
    CLAIM(gm_block_copy(pool_.get(), &h.result.get(), 0, pool_.get(), &h.data.get(), 0, BYTES, work_.get(), nullptr,
                        nullptr) == GM_OK); /* process_gpu_async: here a copy on the device */
    CLAIM(gm_block_read(pool_.get(), &h.result.get(), 0, out.data(), BYTES, work_.get(), &processed, nullptr) == GM_OK);
    h.processed = gm::point(pool_.parent().get(), processed);
    current_ = !current_;
  }
  void finish() const { CLAIM(copies_.sync() == GM_OK && work_.sync() == GM_OK); }

 private:
  gm::pool pool_;
  gm::stream copies_, work_;
  half halves_[2];
  bool current_ = false;
};

}  // namespace

int main(int argc, char **argv) {
  const gm::pool pool = example_pool(argc > 1 ? argv[1] : "cpu");
  std::vector<std::vector<unsigned char>> chunks, results(6, std::vector<unsigned char>(BYTES));
  for (unsigned char i = 0; i < 6; i++) chunks.emplace_back(BYTES, i + 1);
  double_buffer buffers(pool);
  for (std::size_t i = 0; i < chunks.size(); i++) buffers.feed(chunks[i], results[i]);
  buffers.finish();
  CLAIM(results == chunks);
  std::puts("6 chunks went through two buffers");
  return 0;
}

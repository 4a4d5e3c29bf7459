// create_buffer_batch: buffers of related work, with contents, cleaned up together.
#include <vector>

#include "example.hpp"
#include "gm/batch.hpp"

int main(int argc, char **argv) {
  const gm::pool pool = example_pool(argc > 1 ? argv[1] : "cpu");
  {
    const std::vector<unsigned char> first(256, 1), second(128, 2); /* 64 of Fp32, 64 of Fp16 */
    const gm_request requests[] = {gm::request(first.size()), gm::request(second.size())};
    const void *contents[] = {first.data(), second.data()};
    gm_batch_params params = {};
    params.struct_size = sizeof params;
    params.requests = requests;
    params.count = 2;
    params.contents = contents;
    const gm::batch batch = gm::batch::create(pool, params);
    CLAIM(batch && example_stats(pool).active == 2);
    unsigned char back[128] = {};
    CLAIM(gm_block_read(pool.get(), &batch[1].block, batch[1].offset, back, sizeof back, nullptr, nullptr, nullptr) ==
          GM_OK);
    CLAIM(back[0] == 2 && back[127] == 2);
  }
  CLAIM(example_stats(pool).active == 0);
  std::puts("both buffers were cleaned up");
  return 0;
}

// torch's begin_allocate_to_pool, called with torch's own types: the id is a pair, and the filter an object by value.
#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <stdexcept>
#include <thread>
#include <utility>

#include "integrations/shared/cards.h"
#include "integrations/torch/gm_torch.h"
#include "tests/integrations/torch_driver.h"

struct CUstream_st;
using stream_handle = CUstream_st *;
using pool_id = std::pair<unsigned long long, unsigned long long>;
using stream_filter = std::function<bool(stream_handle)>;

extern "C" void gm_torch_begin_allocate_to_pool(int ordinal, pool_id id, stream_filter filter);

namespace {

constexpr ptrdiff_t bytes = 1 << 16;
constexpr pool_id id{7, 0};
constexpr gm_torch_pool_id same_id{7, 0};
const std::function<void(int, pool_id, stream_filter)> begin = gm_torch_begin_allocate_to_pool;  // as torch keeps it
void *stream;

// How many of the card's own blocks an allocation makes: 0 where a private pool served it.
uint64_t allocates() {
  const uint64_t before = gm_cards_figure(0, "allocs");
  void *pointer = gm_torch_alloc(bytes, 0, stream);
  DRIVER_CHECK(pointer != nullptr);
  gm_torch_free(pointer, bytes, 0, stream);
  return gm_cards_figure(0, "allocs") - before;
}

void end() {
  gm_torch_end_allocate_to_pool(0, same_id);
  gm_torch_release_pool(0, same_id);
}

// The arguments that torch._C._cuda_beginAllocateCurrentThreadToPool passes.
void one_thread_is_meant() {
  const auto mine = std::this_thread::get_id();
  begin(0, id, [mine](stream_handle) { return std::this_thread::get_id() == mine; });
  DRIVER_CHECK(allocates() == 0);
  std::thread other([] {
    driver_enter();
    DRIVER_CHECK(allocates() == 1);
  });
  other.join();
  end();
  DRIVER_CHECK(allocates() == 1);
}

void one_stream_is_meant() {
  void *wanted = driver_stream();
  begin(0, id, [wanted](stream_handle asked) { return asked == wanted; });
  DRIVER_CHECK(allocates() == 1);
  std::swap(wanted, stream);
  DRIVER_CHECK(allocates() == 0);
  std::swap(wanted, stream);
  end();
}

void the_filter_lives_while_it_is_asked() {
  const auto kept = std::make_shared<int>(5);
  begin(0, id, [kept](stream_handle) { return *kept == 5; });
  DRIVER_CHECK(kept.use_count() == 2);
  DRIVER_CHECK(allocates() == 0);
  begin(0, id, [kept](stream_handle) { return *kept != 5; });
  DRIVER_CHECK(kept.use_count() == 2);
  DRIVER_CHECK(allocates() == 1);
  gm_torch_release_pool(0, same_id);
  end();
  DRIVER_CHECK(kept.use_count() == 1);
  begin(-1, id, [kept](stream_handle) { return *kept == 5; });  // no such card
  DRIVER_CHECK(kept.use_count() == 1);
}

void a_filter_throws() {
  begin(0, id, [](stream_handle) -> bool { throw std::runtime_error("no such stream"); });
  DRIVER_CHECK(allocates() == 1);
  end();
}

void a_filter_is_empty() {
  begin(0, id, stream_filter());
  DRIVER_CHECK(allocates() == 0);
  end();
}

}  // namespace

int main() {
  driver_open("cuda");
  stream = driver_stream();
  gm_torch_init(1);
  one_thread_is_meant();
  one_stream_is_meant();
  the_filter_lives_while_it_is_asked();
  a_filter_throws();
  a_filter_is_empty();
  std::printf("5 filters\n");
  return 0;
}

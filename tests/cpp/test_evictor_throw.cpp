// An evictor must not throw. One that does leaves nothing behind that later calls trip over.
#include <csetjmp>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <thread>

extern "C" {
#include <cmocka.h>
}

#include "gm/evictor.h"
#include "gm/gm.hpp"

namespace {

constexpr std::uint64_t mib = 1 << 20;

int left_open;  // objects that could not be ended

gm::context telling_context() {
  gm_context_params params = {};
  params.struct_size = sizeof params;
  params.left_open = [](void *, const char *, const gm_error *) { left_open++; };
  return gm::context::create(&params);
}

struct evicting {
  gm::context ctx = telling_context();
  gm::device device = gm::device::open(ctx, "cpu", 0);
  gm::pool pool;
  gm_evictor *evictor = nullptr;
  gm::block kept;
  int asked = 0;
  bool throws = true;

  evicting() {
    gm_pool_params params = {};
    params.struct_size = sizeof params;
    params.max_bytes = 8 * mib;
    pool = gm::pool::create(device, &params);
    gm_evictor_params evict = {};
    evict.struct_size = sizeof evict;
    evict.user = this;
    evict.evict = [](void *user, std::uint64_t) -> std::uint64_t {
      auto *self = static_cast<evicting *>(user);
      self->asked++;
      if (self->throws) throw std::runtime_error("not allowed");
      const std::uint64_t bytes = self->kept.bytes();
      self->kept = gm::block();
      return bytes;
    };
    assert_int_equal(gm_evictor_register(device.get(), &evict, &evictor, nullptr), GM_OK);
    kept = pool.alloc(6 * mib);
    assert_true(bool(kept));
  }

  // True: served. The memory goes back.
  bool ask() {
    gm_request request = {};
    gm_block block = {};
    request.bytes = 6 * mib;
    try {
      return gm_acquired(gm_alloc(pool.get(), &request, &block)) && gm_free(pool.get(), &block, nullptr) == GM_OK;
    } catch (const std::runtime_error &) {
      return false;
    }
  }
};

void asks_evictors_again() {
  evicting scene;
  for (int i = 1; i <= 3; i++) {
    assert_false(scene.ask());
    assert_int_equal(scene.asked, i);
  }
  scene.throws = false;
  assert_true(scene.ask());
  assert_int_equal(scene.asked, 4);
  assert_int_equal(gm_evictor_unregister(scene.evictor, nullptr), GM_OK);
}

void another_thread_unregisters() {
  evicting scene;
  assert_false(scene.ask());
  scene.throws = false;
  assert_true(scene.ask());
  std::thread([&] { assert_int_equal(gm_evictor_unregister(scene.evictor, nullptr), GM_OK); }).join();
  assert_true(scene.ask());
  assert_int_equal(scene.asked, 2);
}

void the_thread_unregisters() {
  evicting scene;
  assert_false(scene.ask());
  assert_int_equal(gm_evictor_unregister(scene.evictor, nullptr), GM_OK);
  assert_int_equal(scene.asked, 1);
}

// Afterwards all can be ended.
template <void (*run)()>
void test_throw(void **) {
  left_open = 0;
  run();
  assert_int_equal(left_open, 0);
}

}  // namespace

int main() {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_throw<asks_evictors_again>),
      cmocka_unit_test(test_throw<another_thread_unregisters>),
      cmocka_unit_test(test_throw<the_thread_unregisters>),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}

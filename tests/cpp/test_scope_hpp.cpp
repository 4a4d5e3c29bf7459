// scope.hpp: locks of buffers, and scopes, end on every path.
#include <csetjmp>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <string>

extern "C" {
#include <cmocka.h>
}

#include "gm/scope.hpp"

namespace {

gm::pool cpu_pool(gm_error *err = nullptr) {
  return gm::pool::create(gm::device::open(gm::context::create(), "cpu", 0, err), nullptr, err);
}

gm_stats stats_of(const gm::pool &pool) {
  gm_stats stats = {};
  assert_int_equal(pool.stats(stats), GM_OK);
  return stats;
}

gm_buffer_params movable(gm_stream *stream = nullptr) {
  gm_buffer_params params = {};
  params.struct_size = sizeof params;
  params.request.bytes = 100;
  params.request.stream = stream;
  params.request.flags = GM_RELOCATABLE;
  return params;
}

void test_a_lock_ends_by_itself(void **) {
  gm_error err = {};
  const gm::pool pool = cpu_pool(&err);
  const gm::stream stream = gm::stream::create(pool.parent(), &err);
  gm::buffer buffer = gm::buffer::create(pool, movable(), &err);
  gm_block block = {};
  {
    gm::buffer_lock lock(buffer, stream.get(), &err);
    assert_true(bool(lock));
    assert_true(lock.address() != 0 && lock.address() == lock.block().address);
    assert_int_equal(gm_buffer_move(buffer.get(), GM_LOCATION_HOST, nullptr, &err), GM_ERR_BUSY);
    gm::buffer_lock moved = std::move(lock);
    assert_false(bool(lock));
    assert_int_equal(lock.unlock(), GM_OK);
    lock = std::move(moved);
    assert_int_equal(gm_buffer_block(buffer.get(), &block, &err), GM_OK);
  }
  assert_int_equal(gm_buffer_move(buffer.get(), GM_LOCATION_HOST, nullptr, &err), GM_OK);
  const gm::buffer_lock on_host(buffer, nullptr, &err);
  assert_false(bool(on_host));
  assert_int_equal(err.status, GM_ERR_NOT_SUPPORTED);
  assert_false(bool(gm::buffer_lock(gm::buffer())));
}

// The host's locks of a buffer that fell, and of a tensor in it: the buffer stays until both have ended.
void test_the_host_computes_under_a_lock(void **) {
  gm_error err = {};
  const gm::pool pool = cpu_pool(&err);
  gm::buffer buffer = gm::buffer::create(pool, movable(), &err);
  gm_tensor_desc desc = {};
  desc.struct_size = sizeof desc;
  desc.dtype = GM_DTYPE_F32;
  desc.rank = 1;
  desc.shape[0] = 24;
  gm_value *value = nullptr;
  assert_int_equal(gm_value_tensor_of(buffer.get(), 4, &desc, &value, &err), GM_OK);
  assert_int_equal(gm_buffer_move(buffer.get(), GM_LOCATION_HOST, nullptr, &err), GM_OK);
  {
    gm::host_lock lock(buffer, &err);
    assert_true(bool(lock));
    assert_int_equal(lock.bytes(), 100);
    for (int i = 0; i < 25; i++) lock.data<float>()[i] = static_cast<float>(i);
    const gm::value_lock tensor(value, &err);
    assert_true(tensor.data<float>() == lock.data<float>() + 1);
    gm::host_lock moved = std::move(lock);
    assert_null(lock.data());
    assert_int_equal(lock.unlock(), GM_OK);
    assert_int_equal(moved.unlock(&err), GM_OK);
    assert_false(bool(moved));
    assert_true(tensor.data<float>()[23] == 24.0f);
    assert_int_equal(gm_buffer_move(buffer.get(), GM_LOCATION_DEVICE, nullptr, &err), GM_ERR_BUSY);
  }
  assert_int_equal(gm_buffer_move(buffer.get(), GM_LOCATION_DEVICE, nullptr, &err), GM_OK);
  assert_false(bool(gm::host_lock(gm::buffer(), &err)));
  assert_false(bool(gm::value_lock(nullptr, &err)));
  gm_value_release(value, nullptr);
}

// A lock keeps the buffer when all others have let it go. unlock() says what refuses, and the lock is still there.
void test_a_lock_owns_its_buffer(void **) {
  const gm::pool pool = cpu_pool(), other = cpu_pool();
  const gm::stream strange = gm::stream::create(other.parent());
  gm::buffer_lock lock(gm::buffer::create(pool, movable()), strange.get());
  assert_true(bool(lock));
  assert_int_equal(stats_of(pool).active, 1);
  gm_error err = {};
  assert_int_equal(lock.unlock(&err), GM_ERR_INVALID_ARGUMENT);
  assert_true(bool(lock));
  lock = gm::buffer_lock(); /* the destructor waits for the stream instead */
  assert_int_equal(stats_of(pool).active, 0);
}

void test_a_scope_ends_all_that_it_owns(void **) {
  gm_error err = {};
  const gm::pool pool = cpu_pool(&err), second = gm::pool::create(pool.parent());
  const gm::stream stream = gm::stream::create(pool.parent());
  std::string order;
  gm::buffer kept;
  {
    gm::scope scope = gm::must(gm::scope::create(pool, &err), err);
    scope.set_stream(stream.get());
    gm_request request = {};
    gm_block block = {};
    request.bytes = 100;
    assert_int_equal(scope.defer([&order] { order += 'a'; }), GM_OK);
    assert_int_equal(scope.alloc(request, block), GM_OK);
    assert_int_equal(scope.alloc(request, block, second), GM_OK);
    assert_int_equal(scope.defer([&order]() -> gm_status { return order += 'b', GM_ERR_IO; }), GM_OK);
    const gm::scope inner = scope.nest(&err);
    kept = inner.buffer(movable(stream.get()), &err);
    assert_true(bool(kept));
    assert_int_equal(inner.defer([&order] {
      order += 'c';
      throw 1;
    }),
                     GM_OK);
    gm::scope moved = std::move(scope);
    assert_false(bool(scope));
    scope = std::move(moved);
    assert_int_equal(stats_of(pool).active, 2);
    assert_int_equal(stats_of(second).active, 1);
  }
  assert_string_equal(order.c_str(), "cba");
  assert_int_equal(stats_of(pool).active, 1);
  assert_int_equal(stats_of(second).active, 0);
  kept = gm::buffer();
  assert_int_equal(stats_of(pool).active, 0);
}

void test_a_scope_ends_all_when_an_exception_passes(void **) {
  const gm::pool pool = cpu_pool();
  bool released = false, caught = false;
  try {
    const gm::scope scope = gm::scope::create(pool);
    gm_request request = {};
    gm_block block = {};
    request.bytes = 100;
    assert_int_equal(scope.alloc(request, block), GM_OK);
    assert_int_equal(scope.defer([&released] { released = true; }), GM_OK);
    throw 1;
  } catch (int) {
    caught = true;
  }
  assert_true(caught && released);
  assert_int_equal(stats_of(pool).active, 0);
}

void test_a_scope_says_what_refuses(void **) {
  gm_error err = {};
  const gm::pool pool = cpu_pool();
  const gm::scope scope = gm::scope::create(pool);
  int calls = 0;
  assert_int_equal(scope.defer([&calls] { return calls++ ? GM_OK : GM_ERR_BUSY; }), GM_OK);
  assert_int_equal(scope.clear(&err), GM_ERR_BUSY);
  assert_int_equal(scope.clear(), GM_OK);
  assert_int_equal(calls, 2);
  assert_int_equal(scope.defer([]() -> gm_status { throw 1; }), GM_OK);
  assert_int_equal(scope.clear(), GM_ERR_CANCELLED);
  const gm::scope none = gm::scope::create(gm::pool(), &err);
  assert_false(bool(none));
  assert_int_equal(none.defer([&calls] { calls++; }, &err), GM_ERR_INVALID_ARGUMENT);
  assert_false(bool(none.nest()) || bool(none.buffer(movable())));
  assert_int_equal(none.clear(), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(calls, 2);
}

}  // namespace

int main() {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_lock_ends_by_itself),
      cmocka_unit_test(test_the_host_computes_under_a_lock),
      cmocka_unit_test(test_a_lock_owns_its_buffer),
      cmocka_unit_test(test_a_scope_ends_all_that_it_owns),
      cmocka_unit_test(test_a_scope_ends_all_when_an_exception_passes),
      cmocka_unit_test(test_a_scope_says_what_refuses),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}

// gm.hpp: what owns what, what moves, what a failure leaves, and containers over a pool.
#include <atomic>
#include <csetjmp>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <vector>

extern "C" {
#include <cmocka.h>
}

#include "gm/gm.hpp"

namespace {

gm::pool cpu_pool(gm_error *err = nullptr) {
  return gm::pool::create(gm::device::open(gm::context::create(), "cpu", 0, err), nullptr, err);
}

gm_stats stats_of(const gm::pool &pool) {
  gm_stats stats = {};
  assert_int_equal(pool.stats(stats), GM_OK);
  return stats;
}

// The pool is all that is left: it keeps its device and context.
void test_a_pool_owns_its_parents(void **) {
  const gm::pool pool = cpu_pool();
  assert_true(bool(pool));
  assert_string_equal(pool.parent().info().backend, "cpu");
  gm_memory_info info = {};
  assert_int_equal(pool.parent().memory_info(info), GM_OK);
  assert_true(info.total_bytes > 0);
  assert_int_not_equal(pool.parent().parent().tag("kv"), 0);
}

// Host memory that a context has taken and not given back: zero once it is closed with all that is in it.
struct counted {
  std::atomic<long> held{0};
  gm_services services = {};
  gm_context_params params = {};

  counted() {
    services.alloc = [](void *user, std::size_t bytes, std::size_t align) -> void * {
      static_cast<counted *>(user)->held += static_cast<long>(bytes);
      void *out = nullptr;
      const std::size_t least = align < sizeof(void *) ? sizeof(void *) : align;
      return posix_memalign(&out, least, bytes) == 0 ? out : nullptr;
    };
    services.release = [](void *user, void *pointer, std::size_t bytes) {
      static_cast<counted *>(user)->held -= static_cast<long>(bytes);
      std::free(pointer);
    };
    services.user = this;
    params.struct_size = sizeof params;
    params.services = &services;
  }
};

// Objects that destructors could not end, as the log and the hook tell of them.
struct left_open : counted {
  std::vector<std::string> told;
  std::string log;

  left_open() {
    services.log = [](void *user, int level, const char *line) {
      if (level == GM_LOG_WARN) static_cast<left_open *>(static_cast<counted *>(user))->log += std::string(line) + "\n";
    };
    params.left_open = [](void *user, const char *what, const gm_error *why) {
      static_cast<left_open *>(user)->told.push_back(std::string(what) + ": " + gm_status_name(why->status));
    };
    params.left_open_user = this;
  }
};

// A mapped block, a pool with blocks out, and its device, stay. Each is told by name, and once.
void test_what_cannot_end_is_told(void **) {
  left_open host;
  gm_pool *left = nullptr;
  gm_device *device = nullptr;
  {
    const gm::context ctx = gm::context::create(&host.params);
    const gm::pool pool = gm::pool::create(gm::device::open(ctx, "cpu", 0));
    left = pool.get();
    device = pool.parent().get();
    const gm::block fine = pool.alloc(100);
    {
      const gm::block mapped = pool.alloc(1000);
      void *data = nullptr;
      assert_int_equal(gm_block_map(left, &mapped.get(), 0, 100, GM_MAP_READ, nullptr, &data, nullptr), GM_OK);
    }
    assert_int_equal(stats_of(pool).active, 2);
    assert_int_equal(host.told.size(), 1);
  }
  const std::vector<std::string> wanted = {"gm::block: GM_ERR_BUSY", "gm::pool: GM_ERR_BUSY", "gm::device: GM_ERR_BUSY",
                                           "gm::context: GM_ERR_BUSY"};
  assert_true(host.told == wanted);
  for (const char *word : {"gm::block", "gm::pool", "gm::device", "gm::context"}) {
    assert_true(host.log.find(word) != std::string::npos);
  }
  gm_context *ctx = gm_device_context(device);
  assert_int_equal(gm_pool_destroy_force(left, nullptr), GM_OK);
  assert_int_equal(gm_device_close(device, nullptr), GM_OK);
  assert_int_equal(gm_context_destroy(ctx, nullptr), GM_OK);
  assert_int_equal(host.held.load(), 0);
}

// A program without a log and without a hook hears nothing, and nothing breaks.
void test_nobody_need_listen(void **) {
  counted host;
  gm_context *made = nullptr;
  assert_int_equal(gm_context_create(&host.params, &made, nullptr), GM_OK);
  gm_tell_left_open(made, nullptr, GM_ERR_BUSY, nullptr);
  gm_tell_left_open(nullptr, "gm::pool", GM_ERR_BUSY, nullptr);
  assert_int_equal(gm_context_destroy(made, nullptr), GM_OK);
}

// An object that is assigned over closes before its parents do. They would else be BUSY, and stay.
void test_an_assignment_closes_in_order(void **) {
  counted host;
  gm::context ctx = gm::context::create(&host.params);
  gm::device device = gm::device::open(ctx, "null");
  gm::stream stream = gm::stream::create(device);
  gm::pool pool = gm::pool::create(device);
  assert_true(bool(pool) && bool(stream));
  ctx = gm::context();
  device = gm::device();
  stream = gm::stream();
  assert_true(host.held > 0);
  pool = cpu_pool();
  assert_int_equal(host.held, 0);
}

void test_a_block_frees_itself_once(void **) {
  const gm::pool pool = cpu_pool();
  {
    gm::block block = pool.alloc(1000);
    assert_true(bool(block));
    assert_true(block.bytes() >= 1000);
    gm::block moved = std::move(block);
    assert_false(bool(block));
    assert_int_equal(block.free(), GM_OK);
    assert_true(bool(moved));
    moved = pool.alloc(2000);
    assert_int_equal(stats_of(pool).active, 1);
  }
  assert_int_equal(stats_of(pool).active, 0);
  assert_int_equal(stats_of(pool).frees, 2);
}

void test_a_released_block_is_the_callers(void **) {
  const gm::pool pool = cpu_pool();
  gm_block raw = {};
  {
    gm::block block = pool.alloc(64);
    raw = block.release();
    assert_false(bool(block));
  }
  assert_int_equal(stats_of(pool).active, 1);
  assert_int_equal(gm_free(pool.get(), &raw, nullptr), GM_OK);
}

void test_a_refused_block_is_empty_and_says_why(void **) {
  const gm::pool pool = cpu_pool();
  gm_request request = {};
  gm::block none = pool.alloc(request);
  assert_false(bool(none));
  assert_int_equal(none.acquire(), GM_ACQUIRE_INVALID);
  assert_int_equal(none.free(), GM_OK);
  assert_false(bool(gm::block()));
}

void test_contents_pass_through_copies_and_mappings(void **) {
  gm_error err = {};
  const gm::pool pool = cpu_pool(&err);
  const gm::stream stream = gm::stream::create(pool.parent(), &err);
  assert_true(bool(stream));
  const gm::block block = pool.alloc(16, stream.get());
  char text[16] = "";
  assert_int_equal(block.write("fifteen letters", 16), GM_OK);
  gm::mapping mapping = block.map(0, 16, GM_MAP_READ, &err);
  assert_true(bool(mapping));
  assert_string_equal(static_cast<const char *>(mapping.data()), "fifteen letters");
  mapping = gm::mapping();
  assert_int_equal(block.read(text, 16), GM_OK);
  assert_string_equal(text, "fifteen letters");
  assert_int_not_equal(block.read(text, 16, UINT64_MAX, &err), GM_OK);
}

void test_points_and_streams(void **) {
  gm_error err = {};
  const gm::pool pool = cpu_pool(&err);
  const gm::stream stream = gm::stream::create(pool.parent(), &err);
  gm::point point = stream.record(&err);
  assert_true(bool(point));
  gm::point moved = std::move(point);
  assert_false(bool(point));
  assert_int_equal(moved.wait(), GM_OK);
  assert_int_equal(stream.wait(moved), GM_OK);
  assert_int_equal(stream.sync(), GM_OK);
}

void test_a_reservation_ends_with_its_scope(void **) {
  const gm::pool pool = cpu_pool();
  gm_memory_info memory = {};
  memory.struct_size = sizeof memory;
  assert_int_equal(gm_config_set(pool.parent().parent().get(), "reserve.share", "off", nullptr), GM_OK);
  {
    const gm::reservation held = gm::reservation::create(pool.parent(), 1 << 20, "scope");
    gm_reservation_info info = {};
    assert_true(bool(held));
    assert_int_equal(held.commit(pool), GM_OK);
    assert_int_equal(held.read(info), GM_OK);
    assert_int_equal(info.left_bytes, 1 << 20);
    assert_false(bool(gm::reservation::create(pool.parent(), UINT64_MAX)));
    gm::reservation other = gm::reservation::create(pool.parent(), 4096);
    other = gm::reservation();
    assert_false(bool(other));
  }
  assert_int_equal(gm_device_memory_info(pool.parent().get(), &memory, nullptr), GM_OK);
  assert_int_equal(memory.promised_bytes, 0);
}

void test_a_copy_of_a_buffer_is_a_reference(void **) {
  const gm::pool pool = cpu_pool();
  gm_buffer_params params = {};
  params.struct_size = sizeof params;
  params.request.bytes = 100;
  gm::buffer copy;
  {
    const gm::buffer buffer = gm::buffer::create(pool, params);
    assert_true(bool(buffer));
    copy = buffer;
  }
  assert_int_equal(stats_of(pool).active, 1);
  assert_int_equal(copy.location(), GM_LOCATION_DEVICE);
  copy = gm::buffer();
  assert_int_equal(stats_of(pool).active, 0);
}

void test_only_must_throws(void **) {
  gm_error err = {};
  const gm::context ctx = gm::must(gm::context::create(nullptr, &err), err);
  bool thrown = false;
  try {
    gm::must(gm::device::open(ctx, "cpu", 99, &err), err);
  } catch (const gm::failure &failure) {
    thrown = true;
    assert_int_equal(failure.status(), GM_ERR_NOT_FOUND);
    assert_string_equal(failure.what(), failure.error().message);
    assert_true(std::strlen(failure.what()) > 0);
  }
  assert_true(thrown);
}

void test_containers_live_in_a_pool(void **) {
  gm::pool_resource resource(cpu_pool());
  {
    std::pmr::vector<double> numbers(&resource);
    for (int i = 0; i < 10000; i++) numbers.push_back(i);
    std::pmr::map<int, std::pmr::string> names(&resource);
    for (int i = 0; i < 1000; i++) names.emplace(i, "a name that is too long to be kept inside of the string");
    assert_true(numbers.back() > 9998.0 && numbers.back() < 10000.0);
    assert_true(stats_of(resource.get_pool()).active > 2000);
  }
  assert_int_equal(stats_of(resource.get_pool()).active, 0);
}

void test_a_resource_keeps_alignment_and_refuses_by_bad_alloc(void **) {
  gm::pool_resource resource(cpu_pool());
  for (std::size_t align = 1; align <= 65536; align *= 2) {
    void *pointer = resource.allocate(10, align);
    assert_int_equal(reinterpret_cast<std::uintptr_t>(pointer) % align, 0);
    resource.deallocate(pointer, 10, align);
  }
  void *nothing = resource.allocate(0);
  assert_non_null(nothing);
  resource.deallocate(nothing, 0);
  volatile std::size_t too_much = SIZE_MAX / 2;
  int refused = 0;
  try {
    resource.deallocate(resource.allocate(too_much), too_much);
  } catch (const std::bad_alloc &) {
    refused++;
  }
  assert_int_equal(refused, 1);
  gm::pool_resource other(cpu_pool());
  assert_true(resource == resource);
  assert_false(resource == other);
}

}  // namespace

int main() {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_pool_owns_its_parents),
      cmocka_unit_test(test_what_cannot_end_is_told),
      cmocka_unit_test(test_nobody_need_listen),
      cmocka_unit_test(test_an_assignment_closes_in_order),
      cmocka_unit_test(test_a_block_frees_itself_once),
      cmocka_unit_test(test_a_released_block_is_the_callers),
      cmocka_unit_test(test_a_refused_block_is_empty_and_says_why),
      cmocka_unit_test(test_contents_pass_through_copies_and_mappings),
      cmocka_unit_test(test_points_and_streams),
      cmocka_unit_test(test_a_reservation_ends_with_its_scope),
      cmocka_unit_test(test_a_copy_of_a_buffer_is_a_reference),
      cmocka_unit_test(test_only_must_throws),
      cmocka_unit_test(test_containers_live_in_a_pool),
      cmocka_unit_test(test_a_resource_keeps_alignment_and_refuses_by_bad_alloc),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}

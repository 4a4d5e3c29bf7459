// manage.hpp, options.hpp, batch.hpp and cache.hpp: what owns what, what a failure leaves, and that every word counts.
#include <algorithm>
#include <csetjmp>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

extern "C" {
#include <cmocka.h>
}

#include "gm/batch.hpp"
#include "gm/cache.hpp"
#include "gm/manage.hpp"
#include "gm/options.hpp"

namespace {

constexpr std::uint64_t mib = std::uint64_t{1} << 20;

gm::device device_of(const char *backend, gm_error *err = nullptr) {
  return gm::device::open(gm::context::create(gm::context_options().ignore_environment()), backend, 0, err);
}

gm::pool pool_of(const gm::pool_options &options = {}) { return gm::pool::create(device_of("cpu"), options); }

std::uint64_t in_use(const gm::pool &pool) {
  gm_stats stats = {};
  assert_int_equal(pool.stats(stats), GM_OK);
  return stats.in_use_bytes;
}

void test_each_word_of_the_options_is_its_member(void **) {
  gm_upstream upstream = {};
  gm::pool_options options;
  options.strategy(GM_STRATEGY_BUCKET).name("kv").max_bytes(8 * mib).memory_fraction(0.5).min_free_bytes(3);
  options.keep_bytes(mib).track().checked().flags(GM_POOL_NO_TRIM).usage(GM_USAGE_STORAGE).usage(GM_USAGE_TRANSFER);
  options.must_be(GM_ANYWHERE).upstream(upstream).raw().priority = 0.25F;
  const gm_pool_params &raw = *static_cast<const gm_pool_params *>(options);
  assert_int_equal(raw.struct_size, sizeof raw);
  assert_true(raw.strategy == GM_STRATEGY_BUCKET && raw.max_bytes == 8 * mib && raw.min_free_bytes == 3);
  assert_string_equal(raw.name, "kv");
  assert_true(raw.memory_fraction == 0.5 && raw.priority == 0.25F && raw.keep_bytes == mib);
  assert_true(raw.track && raw.checked && raw.flags == GM_POOL_NO_TRIM && raw.must_be == GM_ANYWHERE);
  assert_int_equal(raw.usage, GM_USAGE_STORAGE | GM_USAGE_TRANSFER);
  assert_ptr_equal(raw.upstream, &upstream);

  gm::request request(5);
  request.align(64).tag(2).flags(GM_ZERO).flags(GM_COMMIT).usage(GM_USAGE_STORAGE).must_be(GM_ANYWHERE);
  request.require(GM_MEMORY_HOST_VISIBLE).prefer(GM_MEMORY_HOST_CACHED).deadline_ns(9).on(nullptr);
  const gm_request &asked = request;
  assert_true(asked.bytes == 5 && asked.align == 64 && asked.tag == 2 && asked.flags == (GM_ZERO | GM_COMMIT));
  assert_true(asked.usage == GM_USAGE_STORAGE && asked.must_be == GM_ANYWHERE && asked.deadline_ns == 9);
  assert_true(asked.require == GM_MEMORY_HOST_VISIBLE && asked.prefer == GM_MEMORY_HOST_CACHED && !asked.stream);

  gm_services services = {};
  gm::context_options context;
  context.ignore_environment().services(services).preset("training").backends("cpu").backend_options("null:x");
  context.libraries("opencl=x").left_open(nullptr, &services);
  const gm_context_params &made = *static_cast<const gm_context_params *>(context);
  assert_true(made.struct_size == sizeof made && made.ignore_environment && made.services == &services);
  assert_true(made.left_open_user == &services && !made.left_open);
  assert_string_equal(made.preset, "training");
  assert_string_equal(made.backends, "cpu");
  assert_string_equal(made.backend_options, "null:x");
  assert_string_equal(made.libraries, "opencl=x");
}

void test_options_make_a_pool(void **) {
  const gm::pool pool = pool_of(gm::pool_options().max_bytes(4 * mib).track());
  assert_true(bool(pool));
  assert_false(bool(pool.alloc(gm::request(16 * mib))));
  const gm::block block = pool.alloc(gm::request(mib).flags(GM_ZERO).tag(pool.parent().parent().tag("kv")));
  assert_true(bool(block));
  assert_int_equal(gm::tracker_of(pool).count(), 1);
  assert_ptr_equal(gm::tracker_of(pool).get(), gm_pool_tracker(pool.get()));
}

void test_a_batch_is_all_or_nothing(void **) {
  gm_error err = {};
  std::size_t failed = 0;
  const gm::pool pool = pool_of(gm::pool_options().max_bytes(16 * mib));
  gm_request sizes[] = {gm::request(100), gm::request(mib), gm::request(7)};
  {
    gm::batch batch = gm::batch::create(pool, sizes, 3, 0, &err, &failed);
    assert_true(batch && batch.size() == 3 && failed == 3);
    assert_true(batch[1].bytes == mib && in_use(pool) >= mib + 107);
    std::uint64_t sum = 0;
    for (const gm_part &part : batch) sum += part.bytes;
    assert_int_equal(sum, mib + 107);
    gm::batch moved = std::move(batch);
    assert_true(!batch && batch.size() == 0 && moved);
    batch = std::move(moved);
    assert_true(batch && !moved);
  }
  assert_int_equal(in_use(pool), 0);
  sizes[1].bytes = 64 * mib;
  assert_false(bool(gm::batch::create(pool, sizes, 3, 0, &err, &failed)));
  assert_int_equal(failed, 1);
  assert_int_equal(err.status, GM_ERR_OVER_LIMIT);
  assert_int_equal(in_use(pool), 0);
  assert_false(bool(gm::batch::create(pool, nullptr, 0)));
  assert_int_equal(gm::batch().free(), GM_OK);
}

void test_a_group_is_freed_as_one(void **) {
  gm_error err = {};
  const gm::pool pool = pool_of();
  const gm_request sizes[] = {gm::request(100), gm::request(200)};
  gm::batch batch = gm::batch::create(pool, sizes, 2, GM_BATCH_GROUPED, &err);
  assert_true(batch && batch[0].block.memory == batch[1].block.memory && batch[1].offset >= 100);
  assert_int_equal(batch.free(&err), GM_OK);
  assert_true(!batch && in_use(pool) == 0);
}

void test_a_set_owns_its_devices(void **) {
  gm_error err = {};
  gm::pool_set set;
  {
    const gm::context ctx = gm::context::create(gm::context_options().ignore_environment());
    const gm::device devices[] = {gm::device::open(ctx, "cpu"), gm::device::open(ctx, "null")};
    set = gm::pool_set::create(devices, 2, gm::pool_options().name("both"), &err);
    assert_true(bool(set));
    assert_ptr_equal(set.find(devices[1]), set[1]);
    const gm::device twice[] = {devices[0], devices[0]};
    assert_false(bool(gm::pool_set::create(twice, 2, nullptr, &err)));
    assert_int_equal(err.status, GM_ERR_INVALID_ARGUMENT);
  }
  assert_int_equal(set.size(), 2);
  assert_null(set[2]);
  {
    const gm::block block(set[1], gm::request(mib));
    gm_memory_usage total = {}, each[2] = {};
    gm_stats stats = {};
    assert_true(bool(block));
    assert_int_equal(set.total(total, &err), GM_OK);
    assert_int_equal(set.usage(each, 2), 2);
    assert_int_equal(set.stats(stats), GM_OK);
    assert_true(each[0].in_use_bytes == 0 && each[1].in_use_bytes == block.bytes());
    assert_true(total.in_use_bytes == block.bytes() && stats.in_use_bytes == block.bytes());
    assert_int_equal(set.destroy(&err), GM_ERR_BUSY);
  }
  assert_true(set.trim() >= mib);
  assert_int_equal(set.destroy(&err), GM_OK);
  assert_false(bool(set));
}

void test_managed_memory_goes_to_a_place(void **) {
  gm_error err = {};
  const gm::pool pool = pool_of();
  const gm::stream stream = gm::stream::create(pool.parent(), &err);
  gm::managed memory = gm::managed::create(pool, 4096, &err);
  gm_managed_info info = {};
  assert_int_equal(memory.info(info, &err), GM_OK);
  assert_true(info.bytes == 4096 && info.kind == GM_MANAGED_UNIFIED);
  std::memset(memory.host(), 7, 4096);
  assert_int_equal(memory.prefetch(GM_MANAGED_ON_DEVICE, 0, 4096, &err), GM_OK);
  const gm::point there = memory.prefetch(GM_MANAGED_ON_HOST, 0, 4096, stream, &err);
  assert_true(there && there.wait() == GM_OK);
  assert_int_equal(static_cast<unsigned char *>(memory.host())[4095], 7);
  assert_int_equal(memory.advise(GM_ADVICE_READ_MOSTLY, GM_MANAGED_ON_DEVICE, 0, 4096), GM_OK);
  assert_int_equal(memory.prefetch(GM_MANAGED_ON_DEVICE, 0, 4097, &err), GM_ERR_INVALID_ARGUMENT);
  assert_false(bool(memory.prefetch(GM_MANAGED_ON_DEVICE, 0, 4097, stream, &err)));
  memory.set_stream(stream.get());
}

void test_a_tracker_answers(void **) {
  const gm::context ctx = gm::context::create(gm::context_options().ignore_environment());
  gm::tracker tracker = gm::tracker::create(ctx);
  const std::uint32_t kv = ctx.tag("kv");
  const std::uint64_t first = tracker.track(0x1000, 100, kv);
  const std::uint64_t mark = tracker.mark();
  gm_track_entry entry = {};
  entry.bytes = 50;
  assert_true(first != 0 && tracker.track(entry) != 0);
  assert_true(tracker.count() == 2 && tracker.total_bytes() == 150);
  const std::vector<gm_track_entry> born = tracker.find_between(0, mark);
  assert_true(born.size() == 1 && born[0].id == first && born[0].address == 0x1000 && born[0].tag == kv);
  const std::vector<gm_track_entry> old = tracker.find_old(0);
  assert_true(old.size() == 2 && old[0].id == first);
  const std::vector<gm_tag_total> totals = tracker.by_tag();
  assert_true(totals.size() == 2 && totals[0].tag == kv && totals[0].bytes == 100);
  assert_true(tracker.report().find("kv") != std::string::npos && tracker.report().back() == '\n');
  assert_int_equal(tracker.untrack(first), GM_OK);
  assert_int_equal(tracker.untrack(first), GM_ERR_NOT_FOUND);
  assert_true(tracker.count() == 1 && tracker.peak_bytes() == 150);
  gm::tracker other = std::move(tracker);
  assert_true(!tracker && other.count() == 1);
  assert_true(other.find_old(UINT64_MAX).empty());
}

int alive;

struct tree {
  explicit tree(int count) : leaves(count) { alive++; }
  tree(const tree &) = delete;
  tree &operator=(const tree &) = delete;
  ~tree() { alive--; }
  int leaves;
  gm::block memory;
};

std::unique_ptr<tree> grown(int leaves) { return std::make_unique<tree>(leaves); }

void test_a_cache_owns_its_objects(void **) {
  gm_error err = {};
  gm_cache_params params = {};
  params.max_bytes = 20;
  alive = 0;
  {
    const gm::cache<tree> cache =
        gm::cache<tree>::create(gm::context::create(gm::context_options().ignore_environment()), &params, &err);
    gm::lease<tree> one, two;
    assert_int_equal(cache.put("one", grown(1), 10, &one), GM_OK);
    assert_int_equal(cache.put("two", grown(2), 10), GM_OK);
    assert_true(one && one->leaves == 1 && (*one).leaves == 1);
    assert_int_equal(cache.put("three", grown(3), 10), GM_OK);  // in place of the second, which nobody uses
    assert_false(bool(cache.find("two", &err)));
    assert_int_equal(err.status, GM_ERR_NOT_FOUND);
    two = cache.find("three");
    std::unique_ptr<tree> much = grown(4);
    assert_int_equal(cache.put("four", std::move(much), 10, nullptr, &err), GM_ERR_OVER_LIMIT);
    assert_true(much && much->leaves == 4);  // it stays the caller's
    gm_cache_stats stats = {};
    assert_int_equal(cache.stats(stats), GM_OK);
    assert_true(stats.entries == 2 && stats.leases == 2 && stats.evictions == 1);
    assert_int_equal(cache.keep("one"), GM_OK);
    assert_int_equal(cache.remove("one"), GM_OK);
    assert_int_equal(cache.remove("one"), GM_ERR_NOT_FOUND);
    assert_int_equal(one->leaves, 1);  // removed, and still in use
    one = gm::lease<tree>();
    assert_int_equal(cache.clear(), GM_OK);
    assert_int_equal(alive, 2);  // the one in use, and the caller's
  }
  assert_int_equal(alive, 0);
}

void test_a_lease_keeps_its_cache(void **) {
  alive = 0;
  {
    gm::lease<tree> last;
    {
      const gm::cache<tree> cache =
          gm::cache<tree>::create(gm::context::create(gm::context_options().ignore_environment()));
      assert_int_equal(cache.put("one", grown(1), 10, &last), GM_OK);
    }
    assert_int_equal(last->leaves, 1);
  }
  assert_int_equal(alive, 0);
}

void test_a_cache_gives_way_to_its_pool(void **) {
  alive = 0;
  {
    const gm::pool pool = pool_of(gm::pool_options().max_bytes(8 * mib).strategy(GM_STRATEGY_BUCKET));
    const gm::cache<tree> cache = gm::cache<tree>::create(pool);
    std::unique_ptr<tree> big = grown(1);
    big->memory = pool.alloc(gm::request(6 * mib));
    const std::uint64_t bytes = big->memory.bytes();
    assert_true(bytes >= 6 * mib);
    assert_int_equal(cache.put("big", std::move(big), bytes), GM_OK);
    assert_true(bool(pool.alloc(gm::request(5 * mib))));
    assert_int_equal(alive, 0);
  }
}

gm::perf_scope begun(const gm::pool &pool) { return gm::perf_scope::begin(pool, "moved"); }

void test_a_performance_scope_ends_by_itself(void **) {
  gm_error err = {};
  gm::perf_scope scope;
  assert_true(!scope);
  {
    const gm::pool pool = pool_of(gm::pool_options());
    scope = begun(pool);  // it owns the pool from here on
    assert_true(bool(scope) && bool(pool.alloc(gm::request(mib))));
    gm_perf_report report = {};
    {
      const gm::context ctx = gm::context::create(gm::context_options().ignore_environment());
      gm::perf_scope all = gm::perf_scope::begin(ctx);
      const gm::perf_scope left = gm::perf_scope::begin(ctx, "left open");
      assert_int_equal(all.end(report), GM_OK);
      assert_true(!all && left && report.allocs == 0);
    }
    assert_true(!gm::perf_scope::begin(pool, "", &err) && err.status == GM_ERR_INVALID_ARGUMENT);
    gm_idle_params idle = {};
    assert_int_equal(gm::idle_on_poll(pool, idle), GM_ERR_INVALID_ARGUMENT);
    idle.trim_ns = 1;
    assert_int_equal(gm::idle_on_poll(pool, idle), GM_OK);
  }
  gm_perf_report report = {};
  assert_int_equal(scope.end(report), GM_OK);
  assert_true(report.allocs == 1 && report.frees == 1 && report.held_bytes == 0);
  assert_int_equal(scope.end(report), GM_ERR_INVALID_ARGUMENT);
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {cmocka_unit_test(test_each_word_of_the_options_is_its_member),
                              cmocka_unit_test(test_options_make_a_pool),
                              cmocka_unit_test(test_a_batch_is_all_or_nothing),
                              cmocka_unit_test(test_a_group_is_freed_as_one),
                              cmocka_unit_test(test_a_set_owns_its_devices),
                              cmocka_unit_test(test_managed_memory_goes_to_a_place),
                              cmocka_unit_test(test_a_tracker_answers),
                              cmocka_unit_test(test_a_performance_scope_ends_by_itself),
                              cmocka_unit_test(test_a_cache_owns_its_objects),
                              cmocka_unit_test(test_a_lease_keeps_its_cache),
                              cmocka_unit_test(test_a_cache_gives_way_to_its_pool)};
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}

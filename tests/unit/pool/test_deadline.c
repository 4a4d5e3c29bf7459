/* Requests that wait for memory: served when others free some, first come first, or refused when their time is up. No
 * test depends on how long anything takes: a deadline that is not to pass is longer than any test may run. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "backends/null/null_backend.h"
#include "core/base/clock.h"
#include "core/base/poll.h"
#include "core/device/device.h"
#include "core/pool/alloc_one.h"
#include "gm/copy.h"
#include "gm/quota.h"
#include "support/causes.h"
#include "support/evicting_cache.h"

static const uint64_t long_ns = UINT64_C(600000000000), short_ns = 2000000;

/* Where a test counts looks, nobody sleeps between them, and the time is up after so many. */
static struct { uint32_t most, looks, tries; } counted;

bool __real_gm__poll_again(gm__poll *poll);
bool __wrap_gm__poll_again(gm__poll *poll);
gm_acquire __real_gm__alloc_one(gm_pool *pool, gm__want *want, gm_block *out, gm__refusal *why);
gm_acquire __wrap_gm__alloc_one(gm_pool *pool, gm__want *want, gm_block *out, gm__refusal *why);

bool __wrap_gm__poll_again(gm__poll *poll) {
  return counted.most ? ++counted.looks < counted.most : __real_gm__poll_again(poll);
}

gm_acquire __wrap_gm__alloc_one(gm_pool *pool, gm__want *want, gm_block *out, gm__refusal *why) {
  if (counted.most) counted.tries++;
  return __real_gm__alloc_one(pool, want, out, why);
}

/* A thread that asks and waits. */
typedef struct waiter {
  pthread_t thread;
  gm_pool *pool;
  gm_request request;
  gm_block block;
  gm_acquire answer;
  uint32_t place; /* which of all waiters was served, from 1 */
  _Atomic uint32_t *served;
} waiter;

static void *waiter_run(void *user) {
  waiter *self = user;
  self->answer = gm_alloc(self->pool, &self->request, &self->block);
  if (gm_acquired(self->answer)) self->place = atomic_fetch_add(self->served, 1) + 1;
  return NULL;
}

/* Returns when as many wait as did before, and this one. */
static void waiter_start(waiter *self, gm_pool *pool, uint64_t bytes, _Atomic uint32_t *served) {
  gm_device *device = gm_pool_device(pool);
  const uint32_t before = atomic_load(&device->turn_count);
  *self = (waiter){.pool = pool, .request = {.bytes = bytes, .deadline_ns = long_ns}, .served = served};
  assert_int_equal(pthread_create(&self->thread, NULL, waiter_run, self), 0);
  while (atomic_load(&device->turn_count) == before) gm__sleep_ns(100000);
}

static void waiter_end(waiter *self) {
  pthread_join(self->thread, NULL);
  if (!gm_acquired(self->answer)) fail_msg("%s", gm_acquire_name(self->answer));
}

static void give_back(gm_pool *pool, const gm_block *block) { assert_int_equal(gm_free(pool, block, NULL), GM_OK); }

static const gm_pool_params capped = {.struct_size = sizeof capped, .max_bytes = 8 * MIB, .no_vmm = true};

static void test_memory_that_is_there_is_served(void **state) {
  (void)state;
  for (size_t k = 0; k < KINDS; k++) {
    pool_bench bench;
    const gm_request request = {.bytes = MIB, .deadline_ns = long_ns};
    pool_bench_open(&bench, "null", "null:capacity=64M", &kinds[k]);
    for (int turn = 0; turn < 3; turn++) {
      const gm_block block = served(bench.pool, &request);
      give_back(bench.pool, &block);
    }
    void *pointer = gm_malloc_request(bench.pool, &request);
    assert_non_null(pointer);
    assert_int_equal(gm_free_ptr(bench.pool, pointer, 0, NULL), GM_OK);
    assert_int_equal(explained(bench.pool, &request).last_failure.status, GM_OK);
    pool_bench_close(&bench);
  }
}

/* By the pool's cap, and by a full device. The pool that frees is this one, or another one. */
static void test_a_free_ends_the_wait(void **state) {
  (void)state;
  for (size_t k = 0; k < KINDS * 3; k++) {
    gm_pool_params params = kinds[k / 3];
    pool_bench bench;
    gm_pool *other;
    waiter one;
    _Atomic uint32_t places = 0;
    if (k % 3 == 0) params.max_bytes = 8 * MIB;
    pool_bench_open(&bench, "null", "null:capacity=8M", &params);
    pool_bench_ok(gm_pool_create(bench.device, &params, &other, err));
    gm_pool *holder = k % 3 == 2 ? other : bench.pool;
    const gm_block all = served(holder, &(gm_request){.bytes = 8 * MIB});
    waiter_start(&one, bench.pool, 6 * MIB, &places);
    give_back(holder, &all);
    waiter_end(&one);
    assert_int_equal(atomic_load(&bench.device->turn_count), 0);
    give_back(bench.pool, &one.block);
    pool_bench_ok(gm_pool_destroy(other, err));
    pool_bench_close(&bench);
  }
}

static void test_time_is_up(void **state) {
  (void)state;
  pool_bench bench;
  const gm_request request = {.bytes = 4 * MIB, .deadline_ns = short_ns};
  pool_bench_open(&bench, "null", "null:capacity=64M", &capped);
  const gm_block all = served(bench.pool, &(gm_request){.bytes = 6 * MIB});
  gm_block block;
  assert_int_equal(gm_alloc(bench.pool, &request, &block), GM_ACQUIRE_EXHAUSTED);
  const gm_explanation why = explained(bench.pool, &request);
  assert_int_equal(why.cause, GM_CAUSE_DEADLINE);
  assert_int_equal(why.waited_for, GM_CAUSE_POOL_CAP);
  assert_int_equal(why.change, GM_CHANGE_RAISE_CAP);
  assert_true(why.change_bytes == 2 * MIB && why.ever_fits);
  assert_int_equal(why.last_failure.status, GM_ERR_TIMEOUT);
  assert_int_equal(why.rungs[GM_RUNG_WAIT].count, 1);
  assert_true(why.waited_ns > 0 && why.waited_ns <= why.rungs[GM_RUNG_WAIT].ns + 60 * UINT64_C(1000000000));
  assert_int_equal(pool_bench_stats(&bench).failures, 1);
  assert_int_equal(pool_bench_stats(&bench).over_limit, 0);
  give_back(bench.pool, &all);
  pool_bench_close(&bench);
}

/* A large request is first, a small one comes later. Small blocks are freed one by one: the large one gets them. */
static void test_the_first_is_served_first(void **state) {
  (void)state;
  pool_bench bench;
  gm_block blocks[8];
  waiter large, small;
  _Atomic uint32_t places = 0;
  pool_bench_open(&bench, "null", "null:capacity=64M", &capped);
  for (int i = 0; i < 8; i++) blocks[i] = served(bench.pool, &(gm_request){.bytes = MIB});
  waiter_start(&large, bench.pool, 8 * MIB, &places);
  waiter_start(&small, bench.pool, MIB, &places);
  for (int i = 0; i < 8; i++) {
    assert_int_equal(atomic_load(&places), 0);
    give_back(bench.pool, &blocks[i]);
    if (i < 7) gm__sleep_ns(3000000); /* time in which a small request could overtake */
  }
  pthread_join(large.thread, NULL);
  assert_true(gm_acquired(large.answer));
  give_back(bench.pool, &large.block);
  waiter_end(&small);
  assert_int_equal(large.place, 1);
  assert_int_equal(small.place, 2);
  give_back(bench.pool, &small.block);
  pool_bench_close(&bench);
}

/* A request whose time is up while another one is before it. */
static void test_a_turn_that_never_comes(void **state) {
  (void)state;
  pool_bench bench;
  gm_block block;
  waiter large;
  _Atomic uint32_t places = 0;
  const gm_request request = {.bytes = MIB, .deadline_ns = short_ns};
  pool_bench_open(&bench, "null", "null:capacity=64M", &capped);
  const gm_block most = served(bench.pool, &(gm_request){.bytes = 6 * MIB});
  waiter_start(&large, bench.pool, 8 * MIB, &places);
  assert_int_equal(gm_alloc(bench.pool, &request, &block), GM_ACQUIRE_EXHAUSTED);
  const gm_explanation why = explained(bench.pool, &request);
  assert_int_equal(why.cause, GM_CAUSE_DEADLINE);
  assert_int_equal(why.waited_for, GM_CAUSE_NONE);
  const gm_request at_once = {.bytes = MIB}; /* without a deadline it does not join them */
  block = served(bench.pool, &at_once);
  give_back(bench.pool, &block);
  give_back(bench.pool, &most);
  waiter_end(&large);
  give_back(bench.pool, &large.block);
  pool_bench_close(&bench);
}

/* A request that waits for its own pool's cap, or for a quota, does not keep other pools waiting. */
static void test_other_pools_pass(void **state) {
  (void)state;
  for (int by_quota = 0; by_quota < 2; by_quota++) {
    pool_bench bench;
    gm_pool *other;
    waiter stuck;
    _Atomic uint32_t places = 0;
    pool_bench_open(&bench, "null", "null:capacity=64M", &capped);
    pool_bench_ok(gm_pool_create(bench.device, NULL, &other, err));
    if (by_quota) {
      pool_bench_ok(gm_pool_set_max_bytes(bench.pool, 16 * MIB, err));
      pool_bench_ok(gm_pool_set_quota(bench.pool, 0, 8 * MIB, 0, 0, err));
    }
    const gm_block most = served(bench.pool, &(gm_request){.bytes = 6 * MIB});
    waiter_start(&stuck, bench.pool, 4 * MIB, &places);
    const gm_request request = {.bytes = 8 * MIB, .deadline_ns = long_ns};
    const gm_block block = served(other, &request);
    give_back(other, &block);
    give_back(bench.pool, &most);
    waiter_end(&stuck);
    give_back(bench.pool, &stuck.block);
    pool_bench_ok(gm_pool_destroy(other, err));
    pool_bench_close(&bench);
  }
}

/* A pool without blocks is in use while a request to it waits for memory of another pool. */
static void test_a_pool_that_is_waited_at_stays(void **state) {
  (void)state;
  const gm_pool_params no_vmm = {.struct_size = sizeof no_vmm, .no_vmm = true};
  pool_bench bench;
  gm_pool *holder;
  waiter one;
  _Atomic uint32_t places = 0;
  pool_bench_open(&bench, "null", "null:capacity=8M", &no_vmm);
  pool_bench_ok(gm_pool_create(bench.device, &no_vmm, &holder, err));
  const gm_block all = served(holder, &(gm_request){.bytes = 8 * MIB});
  waiter_start(&one, bench.pool, 6 * MIB, &places);
  gm_error refusal;
  assert_int_equal(gm_pool_destroy(bench.pool, &refusal), GM_ERR_BUSY);
  assert_non_null(strstr(refusal.message, "waits for memory"));
  give_back(holder, &all);
  waiter_end(&one);
  give_back(bench.pool, &one.block);
  pool_bench_ok(gm_pool_destroy(holder, err));
  pool_bench_close(&bench);
}

/* A request that no free could serve is refused at once, whatever the deadline. */
static void test_no_use_in_waiting(void **state) {
  (void)state;
  const gm_pool_params no_vmm = {.struct_size = sizeof no_vmm, .no_vmm = true};
  pool_bench bench;
  gm_pool *large;
  gm_block block;
  gm_request request = {.bytes = 9 * MIB, .deadline_ns = UINT64_MAX};
  pool_bench_open(&bench, "null", "null:capacity=64M,max_alloc=32M", &capped);
  pool_bench_ok(gm_pool_create(bench.device, &no_vmm, &large, err));
  refused_as(bench.pool, &request, GM_CAUSE_POOL_CAP, GM_CHANGE_RAISE_CAP);
  request.bytes = 65 * MIB;
  refused_as(large, &request, GM_CAUSE_TOO_LARGE, GM_CHANGE_ASK_LESS);
  request.bytes = 33 * MIB;
  refused_as(large, &request, GM_CAUSE_SINGLE_ALLOCATION, GM_CHANGE_SPLIT);
  pool_bench_ok(gm_pool_set_quota(large, 1, MIB, 0, 0, err));
  request = (gm_request){.bytes = 2 * MIB, .tag = 1, .deadline_ns = UINT64_MAX};
  refused_as(large, &request, GM_CAUSE_QUOTA, GM_CHANGE_RAISE_QUOTA);
  request.bytes = 0;
  assert_int_equal(gm_alloc(large, &request, &block), GM_ACQUIRE_INVALID);
  pool_bench_ok(gm_pool_destroy(large, err));
  pool_bench_close(&bench);
}

/* Several memories, the guard, and pooled memory alone. */
static void test_other_ways_to_be_served_wait(void **state) {
  (void)state;
  static const uint32_t flags[] = {GM_ALLOW_SPANS, GM_POOLED_ONLY, GM_INSERT_WAIT | GM_DEDICATED};
  for (size_t f = 0; f < sizeof flags / sizeof *flags; f++) {
    pool_bench bench;
    waiter one;
    _Atomic uint32_t places = 0;
    pool_bench_open(&bench, "null", "null:capacity=64M", &capped);
    gm_request request = {.bytes = 6 * MIB, .flags = flags[f] & GM_DEDICATED};
    const gm_block most = served(bench.pool, &request);
    one = (waiter){.pool = bench.pool, .served = &places, .request = request};
    one.request.flags = flags[f];
    one.request.deadline_ns = long_ns;
    assert_int_equal(pthread_create(&one.thread, NULL, waiter_run, &one), 0);
    while (!atomic_load(&bench.device->turn_count)) gm__sleep_ns(100000);
    give_back(bench.pool, &most);
    waiter_end(&one);
    give_back(bench.pool, &one.block);
    pool_bench_close(&bench);
  }
}

/* Memory that a busy stream holds serves when the stream has passed, without any free. */
static void test_a_stream_that_passes_ends_the_wait(void **state) {
  (void)state;
  pool_bench bench;
  gm_stream *stream;
  gm_point point;
  gm_pool *other;
  waiter one;
  _Atomic uint32_t places = 0;
  pool_bench_open(&bench, "null", "null:capacity=8M,latency=1000000000", &capped);
  pool_bench_ok(gm_pool_create(bench.device, NULL, &other, err));
  pool_bench_ok(gm_stream_create(bench.device, &stream, err));
  const gm_block all = served(other, &(gm_request){.bytes = 8 * MIB});
  pool_bench_ok(gm_block_fill(other, &all, 0, 1, "", 1, stream, &point, err));
  gm_point_release(bench.device, &point);
  assert_int_equal(gm_free(other, &all, stream), GM_OK);
  waiter_start(&one, bench.pool, 8 * MIB, &places);
  gm__null_advance(bench.device->handle, UINT64_C(10000000000));
  waiter_end(&one);
  give_back(bench.pool, &one.block);
  pool_bench_ok(gm_stream_close(stream, err));
  pool_bench_ok(gm_pool_destroy(other, err));
  pool_bench_close(&bench);
}

/* A request asks each evictor three times at most, however long it waits. */
static void test_evictors_are_asked_in_the_first_try(void **state) {
  (void)state;
  pool_bench bench;
  gm_evictor *evictor;
  gm_block block;
  uint32_t calls = 0;
  const gm_evictor_params params = {.struct_size = sizeof params, .evict = never, .user = &calls};
  const gm_request request = {.bytes = 4 * MIB, .deadline_ns = 10 * short_ns};
  pool_bench_open(&bench, "null", "null:capacity=8M", NULL);
  pool_bench_ok(gm_evictor_register(bench.device, &params, &evictor, err));
  const gm_block most = served(bench.pool, &(gm_request){.bytes = 6 * MIB});
  assert_int_equal(gm_alloc(bench.pool, &request, &block), GM_ACQUIRE_EXHAUSTED);
  assert_in_range(calls, 1, 3);
  const gm_explanation why = explained(bench.pool, &request);
  assert_int_equal(why.rungs[GM_RUNG_EVICTORS].count, calls);
  assert_int_equal(why.waited_for, GM_CAUSE_DEVICE_FULL);
  give_back(bench.pool, &most);
  pool_bench_ok(gm_evictor_unregister(evictor, err));
  pool_bench_close(&bench);
}

/* A request that waits tries again in a sixteenth of its looks, where nothing has moved. */
static void test_most_looks_bring_no_try(void **state) {
  (void)state;
  enum { LOOKS = 160 };
  pool_bench bench;
  gm_block block;
  const gm_request request = {.bytes = 4 * MIB, .deadline_ns = long_ns};
  pool_bench_open(&bench, "null", "null:capacity=64M", &capped);
  const gm_block all = served(bench.pool, &(gm_request){.bytes = 6 * MIB});
  counted.most = LOOKS;
  counted.looks = counted.tries = 0;
  assert_int_equal(gm_alloc(bench.pool, &request, &block), GM_ACQUIRE_EXHAUSTED);
  counted.most = 0;
  assert_int_equal(counted.looks, LOOKS);
  assert_in_range(counted.tries, LOOKS / 16, LOOKS / 16 + 2);
  give_back(bench.pool, &all);
  pool_bench_close(&bench);
}

/* ---- many ---- */

enum { THREADS = 8, TURNS = 60 };

typedef struct crowd {
  gm_pool *pools[2];
  _Atomic uint32_t failed, number;
} crowd;

/* Each thread asks for up to half of what there is, so that most of them wait at any time. */
static void *crowd_run(void *user) {
  crowd *self = user;
  const uint32_t number = atomic_fetch_add(&self->number, 1);
  gm_pool *pool = self->pools[number % 2];
  for (uint32_t i = 0; i < TURNS; i++) {
    const gm_request request = {.bytes = MIB * (1 + (i + number) % 4), .deadline_ns = long_ns};
    gm_block block;
    if (gm_acquired(gm_alloc(pool, &request, &block))) {
      atomic_fetch_add(&self->failed, gm_free(pool, &block, NULL) != GM_OK);
    } else {
      atomic_fetch_add(&self->failed, 1);
    }
  }
  return NULL;
}

static void test_many_threads_are_all_served(void **state) {
  (void)state;
  for (size_t k = 0; k < KINDS; k++) {
    pool_bench bench;
    gm_pool *other;
    pthread_t threads[THREADS];
    pool_bench_open(&bench, "null", "null:capacity=16M", &kinds[k]);
    pool_bench_ok(gm_pool_create(bench.device, &kinds[k], &other, err));
    crowd all = {.pools = {bench.pool, other}};
    for (int i = 0; i < THREADS; i++) assert_int_equal(pthread_create(&threads[i], NULL, crowd_run, &all), 0);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    assert_int_equal(atomic_load(&all.failed), 0);
    assert_int_equal(atomic_load(&bench.device->turn_count), 0);
    assert_null(bench.device->turns);
    pool_bench_ok(gm_pool_destroy(other, err));
    pool_bench_close(&bench);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_memory_that_is_there_is_served),
                                     cmocka_unit_test(test_a_free_ends_the_wait),
                                     cmocka_unit_test(test_time_is_up),
                                     cmocka_unit_test(test_the_first_is_served_first),
                                     cmocka_unit_test(test_a_turn_that_never_comes),
                                     cmocka_unit_test(test_other_pools_pass),
                                     cmocka_unit_test(test_a_pool_that_is_waited_at_stays),
                                     cmocka_unit_test(test_no_use_in_waiting),
                                     cmocka_unit_test(test_other_ways_to_be_served_wait),
                                     cmocka_unit_test(test_a_stream_that_passes_ends_the_wait),
                                     cmocka_unit_test(test_evictors_are_asked_in_the_first_try),
                                     cmocka_unit_test(test_most_looks_bring_no_try),
                                     cmocka_unit_test(test_many_threads_are_all_served)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

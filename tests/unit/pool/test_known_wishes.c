/* A request that asks for certain memory, made again by the same thread: it takes the fast path. "The long way is shut"
 * means that the context says it is a forked child's. Only the fast path serves then. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/arena/arena.h"
#include "core/base/thread.h"
#include "core/pool/pool.h"
#include "gm/copy.h"
#include "gm/quota.h"
#include "gm/tracker.h"
#include "support/pool_blocks.h"
#include "support/wish_card.h"

static void shut_long_way(pool_bench *bench, bool shut) { bench->ctx->generation += shut ? 1 : (uint64_t)-1; }

static gm_acquire take_fast(pool_bench *bench, const gm_request *request, gm_block *out) {
  shut_long_way(bench, true);
  const gm_acquire answer = gm_alloc(bench->pool, request, out);
  shut_long_way(bench, false);
  return answer;
}

static gm_status give_fast(pool_bench *bench, const gm_block *block, gm_stream *stream) {
  shut_long_way(bench, true);
  const gm_status status = gm_free(bench->pool, block, stream);
  shut_long_way(bench, false);
  return status;
}

/* Takes and frees a block, in any way. */
static void take_and_give(pool_bench *bench, const gm_request *request) {
  gm_block block;
  assert_true(gm_acquired(gm_alloc(bench->pool, request, &block)));
  give(bench, &block, request->stream);
}

/* The figures that the arenas have counted. gm_pool_stats would empty their quick lists. */
static gm_stats arena_stats(const pool_bench *bench) {
  gm_stats stats = {.struct_size = sizeof stats};
  gm__arenas_add(&bench->pool->heap.arenas, &stats);
  return stats;
}

/* The quick list of the stream has the block, and the fast path finds it: the figures say so, too. */
static void check_fast(pool_bench *bench, const gm_request *request, uint32_t type) {
  gm_block block;
  uint64_t offset;
  take_and_give(bench, request);
  const gm_stats before = arena_stats(bench);
  assert_int_equal(take_fast(bench, request, &block), GM_ACQUIRE_OK);
  const gm_stats after = arena_stats(bench);
  assert_int_equal(after.stream_hits + after.global_hits, before.stream_hits + before.global_hits + 1);
  assert_int_equal(after.global_cache_hits, before.global_cache_hits); /* no free chunk was cut */
  assert_int_equal(after.misses, before.misses);
  assert_int_equal(type_of(bench->pool, &block, &offset), type);
  assert_int_equal(give_fast(bench, &block, request->stream), GM_OK);
  assert_int_equal(arena_stats(bench).in_use_bytes, before.in_use_bytes);
  assert_int_equal(gm_free(bench->pool, &block, request->stream), GM_ERR_INVALID_ARGUMENT);
}

static void test_wishes_that_are_fast(void **state) {
  (void)state;
  static const struct {
    gm_request request;
    uint32_t type;
  } wishes[] = {{{ANY}, OWN},
                {{ANY, .memory_types = 1 << OWN}, OWN},
                {{.memory_types = 1 << WINDOW}, WINDOW},
                {{ANY, .require = GM_MEMORY_SYSTEM}, CACHED},
                {{ANY, .prefer = GM_MEMORY_SYSTEM | GM_MEMORY_HOST_COHERENT}, COMBINED},
                {{.flags = GM_HOST_VISIBLE}, WINDOW},
                {{ANY, .flags = GM_MAPPED, .usage = GM_USAGE_READBACK}, CACHED},
                {{.flags = GM_COMMIT | GM_INSERT_WAIT}, OWN},
                {{.usage = GM_USAGE_UNIFORM}, OWN},
                {{.flags = GM_ALLOW_SPANS, .align = ATOM, .tag = 3}, OWN}};
  pool_bench bench;
  gm_stream *streams[2] = {NULL};
  open_card(&bench, &card_pool);
  pool_bench_ok(gm_stream_create(bench.device, &streams[1], err));
  for (int round = 0; round < 2; round++) { /* more wishes than a thread remembers */
    for (size_t i = 0; i < sizeof wishes / sizeof wishes[0]; i++) {
      gm_request request = wishes[i].request;
      request.bytes = BYTES;
      for (int stream = 0; stream < 2; stream++) {
        request.stream = streams[stream];
        check_fast(&bench, &request, wishes[i].type);
      }
    }
  }
  pool_bench_ok(gm_stream_close(streams[1], err));
  pool_bench_close(&bench);
}

/* A free chunk is cut where no quick list has the size. */
static void test_a_known_wish_is_cut_from_a_free_chunk(void **state) {
  (void)state;
  pool_bench bench;
  gm_block block, other;
  uint64_t offset;
  open_card(&bench, &card_pool);
  const gm_request request = {.bytes = BYTES, .memory_types = 1 << WINDOW};
  take_and_give(&bench, &request);
  const gm_request larger = {.bytes = 3 * BYTES, .memory_types = 1 << WINDOW};
  assert_int_equal(take_fast(&bench, &larger, &block), GM_ACQUIRE_OK);
  assert_int_equal(type_of(bench.pool, &block, &offset), WINDOW);
  const gm_request huge = {.bytes = UINT64_C(1) << 30, .memory_types = 1 << WINDOW};
  assert_int_equal(take_fast(&bench, &huge, &other), GM_ACQUIRE_FAILED); /* new memory is the long way's */
  assert_int_equal(give_fast(&bench, &block, NULL), GM_OK);
  pool_bench_close(&bench);
}

/* POOLED_ONLY serves what is there; the fast path does not fetch more. */
static void test_pooled_only(void **state) {
  (void)state;
  pool_bench bench;
  gm_block blocks[2];
  open_card(&bench, &card_pool);
  const gm_request plain = {.bytes = BYTES}, pooled = {.bytes = BYTES, .flags = GM_POOLED_ONLY};
  take_and_give(&bench, &plain);
  take_and_give(&bench, &pooled);
  assert_int_equal(take_fast(&bench, &pooled, &blocks[0]), GM_ACQUIRE_OK);
  const gm_request huge = {.bytes = UINT64_C(1) << 30, .flags = GM_POOLED_ONLY};
  assert_int_equal(gm_alloc(bench.pool, &huge, &blocks[1]), GM_ACQUIRE_EXHAUSTED);
  give(&bench, &blocks[0], NULL);
  pool_bench_close(&bench);
}

/* The wish is known, and there is memory in the quick list; something else about the request needs the long way. */
static void test_requests_that_are_not_fast(void **state) {
  (void)state;
  static const gm_request needs[] = {
      {.flags = GM_ZERO}, {.flags = GM_DEDICATED}, {.align = 1 << 16},       {.align = 3},
      {.deadline_ns = 1}, {.reserved = {1}},       {.flags = GM_RELOCATABLE}};
  pool_bench bench;
  gm_block block;
  open_card(&bench, &card_pool);
  for (size_t i = 0; i < sizeof needs / sizeof needs[0]; i++) {
    gm_request request = {.bytes = BYTES, .memory_types = 1 << WINDOW};
    check_fast(&bench, &request, WINDOW);
    request.flags = needs[i].flags;
    request.align = needs[i].align;
    request.deadline_ns = needs[i].deadline_ns;
    request.reserved[0] = needs[i].reserved[0];
    for (int turn = 0; turn < 2; turn++) {
      if (gm_acquired(gm_alloc(bench.pool, &request, &block))) give(&bench, &block, NULL);
    }
    assert_int_equal(take_fast(&bench, &request, &block), GM_ACQUIRE_FAILED);
  }
  pool_bench_close(&bench);
}

/* A plain request whose block waits in a quick list is refused, too, where it says what this gm does not know. */
static void test_a_reserve_that_is_set_is_never_served(void **state) {
  (void)state;
  pool_bench bench;
  gm_block block;
  gm_request request = {.bytes = BYTES};
  open_card(&bench, &card_pool);
  take_and_give(&bench, &request);
  request.reserved[0] = 1;
  assert_int_equal(gm_alloc(bench.pool, &request, &block), GM_ACQUIRE_INVALID);
  gm_explanation why = {.struct_size = sizeof why};
  pool_bench_ok(gm_explain(bench.pool, &request, &why, err));
  assert_int_equal(why.status, GM_ERR_NOT_SUPPORTED);
  assert_non_null(strstr(why.text, "`reserved`"));
  pool_bench_close(&bench);
}

/* GM_MAPPED: what the host has an address of already. Memory that nobody mapped yet is mapped on the long way, once. */
static void test_mapped_memory_is_mapped_once(void **state) {
  (void)state;
  pool_bench bench;
  gm_block block;
  void *host;
  open_card(&bench, &card_pool);
  const gm_request mapped = {.bytes = BYTES, .flags = GM_MAPPED},
                   seen_only = {.bytes = BYTES, .flags = GM_HOST_VISIBLE};
  check_fast(&bench, &mapped, WINDOW);
  assert_int_equal(card.maps, 1);
  assert_true(gm_pool_trim(bench.pool, 0) > 0);
  take_and_give(&bench, &seen_only); /* in new memory */
  assert_int_equal(take_fast(&bench, &mapped, &block), GM_ACQUIRE_FAILED);
  assert_int_equal(card.maps, 1);
  check_fast(&bench, &mapped, WINDOW);
  check_fast(&bench, &seen_only, WINDOW);
  assert_int_equal(card.maps, 2);
  assert_int_equal(take_fast(&bench, &mapped, &block), GM_ACQUIRE_OK);
  pool_bench_ok(gm_block_host(bench.pool, &block, &host, err));
  assert_ptr_equal(host, (void *)(uintptr_t)block.address);
  give(&bench, &block, NULL);
  pool_bench_close(&bench);
}

/* A block that is mapped by gm_block_map stays BUSY, and one of another pool is refused. */
static void test_wrong_frees(void **state) {
  (void)state;
  pool_bench bench;
  gm_block block;
  gm_pool *other;
  void *host;
  open_card(&bench, &card_pool);
  pool_bench_ok(gm_pool_create(bench.device, &card_pool, &other, err));
  const gm_request request = {.bytes = BYTES, .flags = GM_HOST_VISIBLE};
  check_fast(&bench, &request, WINDOW);
  assert_int_equal(take_fast(&bench, &request, &block), GM_ACQUIRE_OK);
  assert_int_equal(gm_free(other, &block, NULL), GM_ERR_INVALID_ARGUMENT);
  gm_block wrong = block;
  wrong.address++;
  assert_int_equal(gm_free(bench.pool, &wrong, NULL), GM_ERR_INVALID_ARGUMENT);
  wrong = block;
  wrong.number |= (GM__CHUNKS_MAX - 1);
  assert_int_equal(gm_free(bench.pool, &wrong, NULL), GM_ERR_INVALID_ARGUMENT);
  pool_bench_ok(gm_block_map(bench.pool, &block, 0, 8, GM_MAP_WRITE, NULL, &host, err));
  assert_int_equal(gm_free(bench.pool, &block, NULL), GM_ERR_BUSY);
  pool_bench_ok(gm_block_unmap(bench.pool, &block, host, NULL, err));
  give(&bench, &block, NULL);
  pool_bench_ok(gm_pool_destroy(other, err));
  pool_bench_close(&bench);
}

/* ---- pools that watch or bound their blocks ---- */

static void test_a_quota_holds(void **state) {
  (void)state;
  pool_bench bench;
  gm_block block;
  open_card(&bench, &card_pool);
  const gm_request request = {.bytes = BYTES, .memory_types = 1 << WINDOW, .tag = 1};
  check_fast(&bench, &request, WINDOW);
  pool_bench_ok(gm_pool_set_quota(bench.pool, 1, BYTES, 0, 0, err));
  assert_int_equal(take_fast(&bench, &request, &block), GM_ACQUIRE_FAILED);
  assert_int_equal(gm_alloc(bench.pool, &request, &block), GM_ACQUIRE_OK);
  gm_block second;
  assert_int_equal(gm_alloc(bench.pool, &request, &second), GM_ACQUIRE_OVER_LIMIT);
  give(&bench, &block, NULL);
  assert_int_equal(gm_alloc(bench.pool, &request, &block), GM_ACQUIRE_OK);
  give(&bench, &block, NULL);
  pool_bench_close(&bench);
}

static void test_a_tracker_knows_the_blocks(void **state) {
  (void)state;
  pool_bench bench;
  gm_block block;
  gm_pool_params params = card_pool;
  params.track = true;
  open_card(&bench, &params);
  const gm_request request = {.bytes = BYTES, .memory_types = 1 << WINDOW, .tag = 1};
  check_fast(&bench, &request, WINDOW);
  assert_int_equal(take_fast(&bench, &request, &block), GM_ACQUIRE_OK);
  assert_int_equal(gm_tracker_count(gm_pool_tracker(bench.pool)), 1);
  assert_int_equal(gm_tracker_total_bytes(gm_pool_tracker(bench.pool)), BYTES);
  assert_int_equal(give_fast(&bench, &block, NULL), GM_OK);
  assert_int_equal(gm_tracker_count(gm_pool_tracker(bench.pool)), 0);
  pool_bench_close(&bench);
}

/* Guards, a strict bound on what is kept, private pools, buckets: no request of theirs is fast. */
static void test_pools_without_a_fast_path(void **state) {
  (void)state;
  static const gm_pool_params pools[] = {{.red_zone_bytes = 64},
                                         {.debug = GM_DEBUG_POISON},
                                         {.keep_bytes = GM_NO_BYTES},
                                         {.flags = GM_POOL_CAPTURES},
                                         {.strategy = GM_STRATEGY_BUCKET}};
  for (size_t i = 0; i < sizeof pools / sizeof pools[0]; i++) {
    pool_bench bench;
    gm_block block;
    gm_pool_params params = pools[i];
    params.struct_size = sizeof params;
    params.no_vmm = true;
    open_card(&bench, &params);
    const gm_request request = {.bytes = BYTES, .memory_types = 1 << WINDOW};
    for (int turn = 0; turn < 2; turn++) take_and_give(&bench, &request);
    assert_int_equal(take_fast(&bench, &request, &block), GM_ACQUIRE_FAILED);
    assert_true(gm_acquired(gm_alloc(bench.pool, &request, &block)));
    assert_int_equal(give_fast(&bench, &block, NULL), GM_ERR_FORKED);
    give(&bench, &block, NULL);
    if (params.strategy == GM_STRATEGY_BUCKET) assert_int_equal(atomic_load(&bench.pool->heap.arenas.count), 0);
    pool_bench_close(&bench);
  }
}

/* ---- threads and processes ---- */

typedef struct guest {
  pool_bench *bench;
  const gm_request *request;
  gm_block block;
} guest;

static void take_as_guest(void *argument) {
  guest *self = argument;
  take_and_give(self->bench, self->request);
  assert_int_equal(gm_alloc(self->bench->pool, self->request, &self->block), GM_ACQUIRE_OK);
}

static void take_in_a_thread(guest *self) {
  gm__thread thread;
  pool_bench_ok(gm__thread_create(&thread, "guest", take_as_guest, self, err));
  gm__thread_join(&thread);
}

static const gm__arena *arena_of(const pool_bench *bench, const gm_block *block) {
  return gm__arena_of_block(&bench->pool->heap.arenas, block);
}

/* All threads share the arena of a rare kind. One is at home there; when it has ended, the next that asks is. */
static void test_the_home_of_a_rare_kind(void **state) {
  (void)state;
  pool_bench bench;
  gm_block block;
  open_card(&bench, &card_pool);
  const gm_request request = {.bytes = BYTES, .memory_types = 1 << WINDOW};
  guest first = {&bench, &request, {0}};
  take_in_a_thread(&first);
  const gm__arena *arena = arena_of(&bench, &first.block);
  assert_non_null(arena->lock.home);
  assert_ptr_not_equal(arena->lock.home, gm__thread_self());
  check_fast(&bench, &request, WINDOW); /* the thread has ended */
  assert_ptr_equal(arena->lock.home, gm__thread_self());
  assert_ptr_equal(arena, arena_of(&bench, &first.block));
  guest second = {&bench, &request, {0}};
  take_in_a_thread(&second); /* the home thread lives */
  assert_ptr_equal(arena->lock.home, gm__thread_self());
  assert_ptr_equal(arena, arena_of(&bench, &second.block));
  assert_int_equal(take_fast(&bench, &request, &block), GM_ACQUIRE_OK);
  assert_int_equal(give_fast(&bench, &first.block, NULL), GM_OK);
  assert_int_equal(give_fast(&bench, &second.block, NULL), GM_OK);
  assert_int_equal(give_fast(&bench, &block, NULL), GM_OK);
  pool_bench_close(&bench);
}

enum { GENERATIONS = 60, GUESTS = 3, TURNS = 400 };

static void take_and_give_often(void *argument) {
  guest *self = argument;
  for (int i = 0; i < TURNS; i++) take_and_give(self->bench, self->request);
}

/* Home threads end while others are in their arena's lock. Two threads inside would lose counts. */
static void test_threads_come_and_go_in_a_rare_kind(void **state) {
  (void)state;
  pool_bench bench;
  gm__thread threads[GUESTS];
  open_card(&bench, &card_pool);
  const gm_request request = {.bytes = BYTES, .memory_types = 1 << WINDOW};
  guest self = {&bench, &request, {0}};
  for (int generation = 0; generation < GENERATIONS; generation++) {
    for (int i = 0; i < GUESTS; i++) {
      pool_bench_ok(gm__thread_create(&threads[i], "guest", take_and_give_often, &self, err));
    }
    take_and_give(&bench, &request);
    for (int i = 0; i < GUESTS; i++) gm__thread_join(&threads[i]);
  }
  const gm_stats stats = pool_bench_stats(&bench);
  assert_int_equal(stats.allocs, GENERATIONS * (GUESTS * TURNS + 1));
  assert_int_equal(stats.frees, stats.allocs);
  assert_int_equal(stats.in_use_bytes, 0);
  check_trim_to_nothing(&bench);
  pool_bench_close(&bench);
}

/* 0: the child got no memory, and gave all of its host memory back. */
static int in_the_child(pool_bench *bench, const gm_request *request, const gm_block *mine) {
  gm_block block;
  const bool refused = gm_alloc(bench->pool, request, &block) == GM_ACQUIRE_FAILED;
  const bool kept = gm_free(bench->pool, mine, NULL) == GM_ERR_FORKED;
  const bool closed = !gm_pool_destroy(bench->pool, NULL) && !gm_device_close(bench->device, NULL) &&
                      !gm_context_destroy(bench->ctx, NULL);
  return refused && kept && closed && atomic_load(&bench->host.live_bytes) == 0 ? 0 : 1;
}

static void test_a_forked_child_gets_nothing(void **state) {
  (void)state;
  pool_bench bench;
  gm_block mine;
  open_card(&bench, &card_pool);
  const gm_request request = {.bytes = BYTES, .memory_types = 1 << WINDOW};
  check_fast(&bench, &request, WINDOW);
  assert_int_equal(gm_alloc(bench.pool, &request, &mine), GM_ACQUIRE_OK);
  fflush(NULL);
  const pid_t child = fork();
  if (child == 0) _exit(in_the_child(&bench, &request, &mine));
  int status = 1;
  assert_true(child > 0);
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
  give(&bench, &mine, NULL);
  pool_bench_close(&bench);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_wishes_that_are_fast),
                                     cmocka_unit_test(test_a_known_wish_is_cut_from_a_free_chunk),
                                     cmocka_unit_test(test_pooled_only),
                                     cmocka_unit_test(test_requests_that_are_not_fast),
                                     cmocka_unit_test(test_a_reserve_that_is_set_is_never_served),
                                     cmocka_unit_test(test_mapped_memory_is_mapped_once),
                                     cmocka_unit_test(test_wrong_frees),
                                     cmocka_unit_test(test_a_quota_holds),
                                     cmocka_unit_test(test_a_tracker_knows_the_blocks),
                                     cmocka_unit_test(test_pools_without_a_fast_path),
                                     cmocka_unit_test(test_the_home_of_a_rare_kind),
                                     cmocka_unit_test(test_threads_come_and_go_in_a_rare_kind),
                                     cmocka_unit_test(test_a_forked_child_gets_nothing)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

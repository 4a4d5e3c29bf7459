/* Mapped pages of a pool: what of them is idle, and how idle ones serve elsewhere before more are taken. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "core/arena/arena.h"
#include "core/pool/pool.h"
#include "gm/cleanup.h"
#include "support/pool_blocks.h"
#include "support/random.h"

#define MIB (UINT64_C(1) << 20)

/* ---- a full walk: every chunk of every arena, by the table of handles ---- */

/* Bytes of handles that lie within the idle hole. */
static uint64_t walk_free_chunk(const gm__provider *provider, const gm__va_range *range, uint64_t begin, uint64_t end) {
  const uint64_t page = provider->pages.page_bytes;
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < range->page_count; i++) {
    const gm__handle *handle = &provider->pages.handles[range->handle_of[i]];
    if (!range->handle_of[i] || handle->first != i) continue;
    const uint64_t first = range->address + i * page;
    if (first >= begin && first + handle->pages * page <= end) bytes += handle->pages * page;
  }
  return bytes;
}

static uint64_t walk_segment(const gm__arena *arena, const gm__segment *segment) {
  uint64_t bytes = 0;
  for (uint32_t at = gm__arena_chunk(arena, segment->edge)->right; at; at = gm__arena_chunk(arena, at)->right) {
    const gm__chunk *chunk = gm__arena_chunk(arena, at);
    if (chunk->state != GM__CHUNK_FREE || chunk->cache != GM__STREAM_CACHE_IDLE) continue;
    bytes += walk_free_chunk(arena->set->provider, segment->range, chunk->address,
                             chunk->address + gm__arena_bytes(arena, chunk));
  }
  return bytes;
}

static uint64_t walk(const gm_pool *pool) {
  uint64_t bytes = 0;
  const gm__arena *arena;
  for (uint32_t i = 0; (arena = gm__arena_at(&pool->heap.arenas, i)); i++) {
    for (const gm__segment *segment = arena->segments; segment; segment = segment->next) {
      if (segment->range) bytes += walk_segment(arena, segment);
    }
  }
  for (uint32_t bin = 0; bin < GM__HANDLE_CACHE_BINS; bin++) {
    for (uint32_t i = pool->heap.provider.pages.handle_cache.heads[bin]; i;
         i = pool->heap.provider.pages.handles[i].next) {
      bytes += pool->heap.provider.pages.handles[i].pages * pool->heap.provider.pages.page_bytes;
    }
  }
  return bytes;
}

static void check_figure(pool_bench *bench) {
  const uint64_t said = gm_pool_collect(bench->pool);
  assert_int_equal(said, walk(bench->pool));
  assert_int_equal(pool_bench_stats(bench).reclaimable_bytes, walk(bench->pool));
}

/* ---- tests ---- */

static void test_the_figure_is_that_of_a_full_walk(void **state) {
  (void)state;
  enum { COUNT = 200 };
  pool_bench bench;
  gm_block blocks[COUNT] = {{0}};
  gm_stream *streams[3] = {NULL};
  uint64_t random = 5;
  pool_bench_open(&bench, "null", "null:capacity=2G", NULL);
  for (int i = 1; i < 3; i++) pool_bench_ok(gm_stream_create(bench.device, &streams[i], err));
  for (int turn = 0; turn < 6000; turn++) {
    gm_block *block = &blocks[test_random(&random) % COUNT];
    gm_stream *stream = streams[test_random(&random) % 3];
    if (block->bytes) {
      give(&bench, block, stream);
      block->bytes = 0;
    } else {
      const gm_request request = {.bytes = test_log_uniform(&random, 64 * MIB), .stream = stream};
      if (gm_alloc(bench.pool, &request, block) > GM_ACQUIRE_FRESH) block->bytes = 0;
    }
    if (turn % 40 == 0) check_figure(&bench);
    if (turn % 1500 == 1499) {
      const uint64_t bytes = gm_pool_collect(bench.pool);
      assert_true(bytes > 0);
      assert_int_equal(gm_pool_trim(bench.pool, 0), bytes);
      check_figure(&bench);
    }
  }
  for (int i = 0; i < COUNT; i++) {
    if (blocks[i].bytes) give(&bench, &blocks[i], NULL);
  }
  check_figure(&bench);
  for (int i = 1; i < 3; i++) pool_bench_ok(gm_stream_close(streams[i], err));
  check_trim_to_nothing(&bench);
  pool_bench_close(&bench);
}

enum { PIECES = 16 };
#define PIECE (24 * MIB)

/* Every other of neighbouring blocks is free; each is a handle of its own. */
static void open_in_pieces(pool_bench *bench, gm_block blocks[PIECES]) {
  pool_bench_open(bench, "null", "null:capacity=80G", NULL);
  for (int i = 0; i < PIECES; i++) blocks[i] = take(bench, PIECE, NULL, GM_ACQUIRE_FRESH);
  assert_int_equal(pool_bench_stats(bench).driver_allocs, PIECES);
  for (int i = 0; i < PIECES; i += 2) give(bench, &blocks[i], NULL);
}

static void close_pieces(pool_bench *bench, gm_block blocks[PIECES], const gm_block *large) {
  for (int i = 1; i < PIECES; i += 2) give(bench, &blocks[i], NULL);
  give(bench, large, NULL);
  check_figure(bench);
  check_trim_to_nothing(bench);
  pool_bench_close(bench);
}

static void test_idle_pages_serve_elsewhere_before_more_are_taken(void **state) {
  (void)state;
  pool_bench bench;
  gm_block blocks[PIECES];
  open_in_pieces(&bench, blocks);
  const gm_block large = take(&bench, 4 * PIECE, NULL, GM_ACQUIRE_FRESH);
  const gm_stats stats = pool_bench_stats(&bench);
  assert_int_equal(stats.driver_allocs, PIECES);
  assert_int_equal(stats.reserved_bytes, PIECES * PIECE);
  close_pieces(&bench, blocks, &large);
}

static void test_only_what_is_missing_is_taken(void **state) {
  (void)state;
  pool_bench bench;
  gm_block blocks[PIECES];
  open_in_pieces(&bench, blocks);
  const gm_block large = take(&bench, (PIECES / 2 + 2) * PIECE, NULL, GM_ACQUIRE_FRESH);
  assert_int_equal(pool_bench_stats(&bench).reserved_bytes, (PIECES + 2) * PIECE);
  close_pieces(&bench, blocks, &large);
}

/* A handle that does not fit stays spare: it counts as what can be given back, and serves the next request. */
static void test_a_spare_handle_is_no_loss(void **state) {
  (void)state;
  pool_bench bench;
  gm_block blocks[PIECES];
  open_in_pieces(&bench, blocks);
  const gm_block large = take(&bench, 4 * PIECE + 4 * MIB, NULL, GM_ACQUIRE_FRESH);
  assert_int_equal(pool_bench_stats(&bench).reserved_bytes, PIECES * PIECE + 4 * MIB);
  assert_int_not_equal(gm__pages_idle_bytes(&bench.pool->heap.provider), 0);
  check_figure(&bench);
  const gm_block more = take(&bench, 2 * PIECE, NULL, GM_ACQUIRE_FRESH);
  assert_int_equal(gm__pages_idle_bytes(&bench.pool->heap.provider), 0);
  assert_int_equal(pool_bench_stats(&bench).reserved_bytes, PIECES * PIECE + 4 * MIB);
  give(&bench, &more, NULL);
  close_pieces(&bench, blocks, &large);
}

/* Little that is idle is left where it is. */
static void test_a_pool_that_is_nearly_full_takes_more(void **state) {
  (void)state;
  pool_bench bench;
  gm_block blocks[2];
  pool_bench_open(&bench, "null", "null:capacity=80G", NULL);
  for (int i = 0; i < 2; i++) blocks[i] = take(&bench, PIECE, NULL, GM_ACQUIRE_FRESH);
  const gm_block much = take(&bench, 4096 * MIB, NULL, GM_ACQUIRE_FRESH);
  give(&bench, &blocks[0], NULL);
  assert_int_equal(gm_pool_collect(bench.pool), PIECE);
  const uint64_t before = pool_bench_stats(&bench).driver_allocs;
  const gm_block large = take(&bench, 2 * PIECE, NULL, GM_ACQUIRE_FRESH);
  assert_true(pool_bench_stats(&bench).driver_allocs > before);
  give(&bench, &blocks[1], NULL);
  give(&bench, &large, NULL);
  give(&bench, &much, NULL);
  check_trim_to_nothing(&bench);
  pool_bench_close(&bench);
}

/* A handle takes 24 MiB at most. It takes less where there is little room: on the device, up to a cap, or up to a
 * limit. */
static void test_handles_follow_the_room(void **state) {
  (void)state;
  static const struct {
    const char *spec;
    uint64_t max_bytes;
    double fraction;
    uint64_t handles; /* of a block of 64 MiB */
  } cases[] = {{"null:capacity=80G", 0, 1, 3},
               {"null:capacity=256M", 0, 1, 32},
               {"null:capacity=80G", 256 * MIB, 1, 32},
               {"null:capacity=1G", 0, 0.25, 32}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const gm_pool_params params = {.struct_size = sizeof params,
                                   .max_bytes = cases[i].max_bytes,
                                   .memory_fraction = cases[i].fraction,
                                   .min_free_bytes = GM_NO_BYTES};
    pool_bench bench;
    pool_bench_open(&bench, "null", cases[i].spec, &params);
    const gm_block block = take(&bench, 64 * MIB, NULL, GM_ACQUIRE_FRESH);
    assert_int_equal(pool_bench_stats(&bench).driver_allocs, cases[i].handles);
    give(&bench, &block, NULL);
    check_trim_to_nothing(&bench);
    pool_bench_close(&bench);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_the_figure_is_that_of_a_full_walk),
      cmocka_unit_test(test_idle_pages_serve_elsewhere_before_more_are_taken),
      cmocka_unit_test(test_only_what_is_missing_is_taken),
      cmocka_unit_test(test_a_spare_handle_is_no_loss),
      cmocka_unit_test(test_a_pool_that_is_nearly_full_takes_more),
      cmocka_unit_test(test_handles_follow_the_room),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

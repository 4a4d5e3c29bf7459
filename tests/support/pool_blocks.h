/* Blocks of a test's pool_bench: taken with the answer that is expected, and given back. Needs cmocka.h included
 * before. */
#ifndef GM_TESTS_SUPPORT_POOL_BLOCKS_H
#define GM_TESTS_SUPPORT_POOL_BLOCKS_H

#include "support/pool_bench.h"

static inline gm_block take(pool_bench *bench, uint64_t bytes, gm_stream *stream, gm_acquire expected) {
  gm_request request = {.bytes = bytes, .stream = stream};
  gm_block block = {0};
  assert_int_equal(gm_alloc(bench->pool, &request, &block), expected);
  return block;
}

static inline void give(pool_bench *bench, const gm_block *block, gm_stream *stream) {
  assert_int_equal(gm_free(bench->pool, block, stream), GM_OK);
}

/* Nothing is out: a trim gives every byte back. */
static inline void check_trim_to_nothing(pool_bench *bench) {
  gm_stats stats = pool_bench_stats(bench);
  assert_int_equal(stats.active, 0);
  assert_int_equal(stats.in_use_bytes, 0);
  const uint64_t reserved = stats.reserved_bytes;
  assert_int_equal(gm_pool_trim(bench->pool, 0), reserved);
  stats = pool_bench_stats(bench);
  assert_int_equal(stats.reserved_bytes, 0);
  assert_int_equal(stats.reclaimable_bytes, 0);
}

#endif

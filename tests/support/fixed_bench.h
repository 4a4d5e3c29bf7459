/* A small pool of fixed sizes on the null backend. Needs cmocka.h. */
#ifndef GM_TESTS_SUPPORT_FIXED_BENCH_H
#define GM_TESTS_SUPPORT_FIXED_BENCH_H

#include "gm/warm_up.h"
#include "support/pool_bench.h"

#ifndef MIB
#define MIB (UINT64_C(1) << 20)
#endif

static const gm_warm_up two_sizes[] = {{MIB, 2}, {4 * MIB, 1}};

/* `max_bytes` and `flags` are the policy. */
static inline void open_fixed(pool_bench *bench, uint64_t max_bytes, uint64_t flags) {
  const gm_pool_params params = {.struct_size = sizeof params,
                                 .strategy = GM_STRATEGY_FIXED,
                                 .max_bytes = max_bytes,
                                 .flags = flags,
                                 .sizes = two_sizes,
                                 .size_count = 2};
  pool_bench_open(bench, "null", "null:capacity=64M", &params);
}

static inline gm_block take(gm_pool *pool, uint64_t bytes, gm_stream *stream, gm_acquire expected) {
  const gm_request request = {.bytes = bytes, .stream = stream, .flags = stream ? GM_INSERT_WAIT : 0};
  gm_block block = {0};
  assert_int_equal(gm_alloc(pool, &request, &block), expected);
  return block;
}

static inline void give(gm_pool *pool, const gm_block *block, gm_stream *stream) {
  assert_int_equal(gm_free(pool, block, stream), GM_OK);
}

#endif

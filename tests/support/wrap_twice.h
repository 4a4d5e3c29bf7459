/* Memory that the pool has already, lent to it once more: refused whatever address gm made up for it. Needs cmocka.h.
 */
#ifndef GM_TESTS_SUPPORT_WRAP_TWICE_H
#define GM_TESTS_SUPPORT_WRAP_TWICE_H

#include "support/pool_bench.h"

enum { WRAP_PART = 64 << 10 };

static inline gm_status wrap_again(gm_pool *pool, const gm_native_memory *native) {
  gm_block block;
  const gm_status status = gm_block_wrap(pool, native, &block, NULL);
  if (status == GM_OK) assert_int_equal(gm_free(pool, &block, NULL), GM_OK);
  return status;
}

/* `native`: room for the API's struct, its head filled, and its fields: where in the memory it begins, how long it is,
 * and the address, which is kept back (NULL: it has none). */
static inline void wrap_twice(pool_bench *bench, gm_native_memory *native, uint64_t *at, uint64_t *bytes,
                              uint64_t *address) {
  gm_pool *lender;
  gm_block lent, mine, wrapped;
  const gm_request request = {.bytes = 4 * WRAP_PART};
  pool_bench_ok(gm_pool_create(bench->device, NULL, &bench->pool, err));
  pool_bench_ok(gm_pool_create(bench->device, NULL, &lender, err));
  assert_int_equal(gm_alloc(lender, &request, &lent), GM_ACQUIRE_FRESH);
  assert_int_equal(gm_alloc(bench->pool, &request, &mine), GM_ACQUIRE_FRESH);
  pool_bench_ok(gm_block_native(bench->pool, &mine, native, err));
  if (address) *address = 0;
  assert_int_equal(wrap_again(bench->pool, native), GM_ERR_INVALID_ARGUMENT);
  pool_bench_ok(gm_block_native(lender, &lent, native, err));
  if (address) *address = 0;
  const uint64_t begin = *at;
  *at = begin + WRAP_PART, *bytes = WRAP_PART;
  pool_bench_ok(gm_block_wrap(bench->pool, native, &wrapped, err));
  assert_int_equal(wrap_again(bench->pool, native), GM_ERR_INVALID_ARGUMENT);
  *at = begin, *bytes = WRAP_PART + 1;
  assert_int_equal(wrap_again(bench->pool, native), GM_ERR_INVALID_ARGUMENT);
  *at = begin + 2 * WRAP_PART - 1;
  assert_int_equal(wrap_again(bench->pool, native), GM_ERR_INVALID_ARGUMENT);
  *at = begin + 2 * WRAP_PART;
  assert_int_equal(wrap_again(bench->pool, native), GM_OK);
  *at = begin, *bytes = WRAP_PART;
  assert_int_equal(wrap_again(bench->pool, native), GM_OK);
  assert_int_equal(gm_free(bench->pool, &wrapped, NULL), GM_OK);
  *bytes = 4 * WRAP_PART;
  assert_int_equal(wrap_again(bench->pool, native), GM_OK); /* nobody has it any more */
  assert_int_equal(gm_free(bench->pool, &mine, NULL), GM_OK);
  assert_int_equal(gm_free(lender, &lent, NULL), GM_OK);
  pool_bench_ok(gm_pool_destroy(lender, err));
  pool_bench_close(bench);
}

#endif

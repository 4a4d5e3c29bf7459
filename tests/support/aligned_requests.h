/* Requests with alignments, in a pool that is too full of rare kinds of memory to have an arena for each. Needs
 * cmocka.h included before. */
#ifndef GM_TESTS_SUPPORT_ALIGNED_REQUESTS_H
#define GM_TESTS_SUPPORT_ALIGNED_REQUESTS_H

#include "gm/device.h"
#include "gm/pool.h"
#include "support/random.h"

enum { ALIGNED_BLOCKS = 160, ALIGNED_RARE = 16, ALIGNED_FREES = 1600 };

/* Fails the test unless the block, and its offset in the driver's own object, are at multiples of `align`. */
typedef void (*aligned_check)(gm_pool *pool, const gm_block *block, uint64_t align);

static inline void aligned_take(gm_pool *pool, const gm_request *request, gm_block *out, aligned_check check) {
  assert_true(gm_acquired(gm_alloc(pool, request, out)));
  assert_int_equal(out->address % (request->align ? request->align : 1), 0);
  check(pool, out, request->align ? request->align : 1);
}

static inline void aligned_take_any(gm_pool *pool, uint64_t *seed, gm_block *out, aligned_check check) {
  static const uint32_t flags[] = {0, GM_DEDICATED, GM_COMMIT}, usages[] = {0, GM_USAGE_READBACK};
  const gm_request request = {.bytes = 1 + test_random(seed) % 100000,
                              .align = (uint32_t)512 << test_random(seed) % 8,
                              .usage = usages[test_random(seed) % 2],
                              .flags = flags[test_random(seed) % 3]};
  aligned_take(pool, &request, out, check);
}

/* Kinds with an arena each, aligned to 8 and 16 KiB. Blocks of odd sizes lie between their memories. */
static inline void aligned_take_rare(gm_pool *pool, int i, gm_block *out, aligned_check check) {
  const gm_request odd = {.bytes = 777, .flags = GM_DEDICATED};
  const gm_request rare = {.bytes = 777,
                           .align = (uint32_t)8192 << i / 8,
                           .usage = i & 2 ? GM_USAGE_READBACK : 0,
                           .flags = i & 4 ? GM_COMMIT : 0};
  aligned_take(pool, i & 1 ? &rare : &odd, out, check);
}

static inline void aligned_requests(gm_device *device, gm_strategy strategy, aligned_check check) {
  static gm_block blocks[ALIGNED_BLOCKS];
  const gm_pool_params params = {.struct_size = sizeof params, .strategy = strategy, .no_vmm = true};
  gm_pool *pool = NULL;
  uint64_t seed = 7;
  assert_int_equal(gm_pool_create(device, &params, &pool, NULL), GM_OK);
  for (int i = 0; i < ALIGNED_BLOCKS; i++) {
    if (i < ALIGNED_RARE) aligned_take_rare(pool, i, &blocks[i], check);
    if (i >= ALIGNED_RARE) aligned_take_any(pool, &seed, &blocks[i], check);
  }
  for (int i = 0; i < ALIGNED_FREES; i++) {
    gm_block *block = &blocks[test_random(&seed) % ALIGNED_BLOCKS];
    assert_int_equal(gm_free(pool, block, NULL), GM_OK);
    aligned_take_any(pool, &seed, block, check);
  }
  for (int i = 0; i < ALIGNED_BLOCKS; i++) assert_int_equal(gm_free(pool, &blocks[i], NULL), GM_OK);
  assert_int_equal(gm_pool_destroy(pool, NULL), GM_OK);
}

#endif

/* The wishes of a pool for all its requests: the memory types, flags and usages of gm_pool_params. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/explained.h"
#include "support/host_upstream.h"
#include "support/wish_card.h"

/* Which type serves the request. */
static uint32_t served_by(pool_bench *bench, gm_request request) {
  gm_block block;
  uint64_t offset;
  request.bytes = BYTES;
  if (!gm_acquired(explained_alloc(bench->pool, &request, &block))) {
    fail_msg("%s", explained(bench->pool, &request).text);
  }
  const uint32_t type = type_of(bench->pool, &block, &offset);
  assert_int_equal(gm_free(bench->pool, &block, NULL), GM_OK);
  return type;
}

static void refused(pool_bench *bench, gm_request request, gm_status status, const char *words) {
  gm_block block;
  request.bytes = BYTES;
  assert_int_equal(explained_alloc(bench->pool, &request, &block), GM_ACQUIRE_INVALID);
  const gm_explanation why = explained(bench->pool, &request);
  if (why.status != status || !strstr(why.text, words)) fail_msg("\"%s\" is not in: %s", words, why.text);
}

/* The type that a request for bytes alone gets in such a pool, by gm_alloc and by gm_malloc, new and used again. */
static uint32_t plain_type(const gm_pool_params *pool) {
  pool_bench bench;
  const gm_request plain = {.bytes = BYTES};
  gm_block block;
  uint64_t offset;
  uint32_t type = TYPES;
  open_card(&bench, pool);
  for (int round = 0; round < 4; round++) {
    if (round % 2) {
      assert_int_equal(gm_block_of(bench.pool, gm_malloc(bench.pool, BYTES, NULL), &block), GM_OK);
    } else {
      assert_true(gm_acquired(explained_alloc(bench.pool, &plain, &block)));
    }
    const uint32_t found = type_of(bench.pool, &block, &offset);
    assert_true(round == 0 || found == type);
    type = found;
    assert_int_equal(gm_free(bench.pool, &block, NULL), GM_OK);
  }
  assert_int_equal(card.allocs, 1); /* what serves is kept, and serves again */
  pool_bench_close(&bench);
  return type;
}

#define POOL(...) \
  &(gm_pool_params) { .struct_size = sizeof(gm_pool_params), .strategy = strategies[i], .no_vmm = true, __VA_ARGS__ }

static const gm_strategy strategies[] = {GM_STRATEGY_BEST_FIT, GM_STRATEGY_BUCKET};

static void test_plain_requests_get_what_the_pool_wishes(void **state) {
  (void)state;
  for (int i = 0; i < 2; i++) {
    assert_int_equal(plain_type(POOL(.name = NULL)), OWN);
    assert_int_equal(plain_type(POOL(.memory_types = 1 << WINDOW)), WINDOW);
    assert_int_equal(plain_type(POOL(ANY, .memory_types = 1 << COMBINED)), COMBINED);
    assert_int_equal(plain_type(POOL(ANY, .require = GM_MEMORY_SYSTEM)), CACHED);
    assert_int_equal(plain_type(POOL(ANY, .require = GM_MEMORY_SYSTEM, .prefer = GM_MEMORY_WRITE_COMBINED)), COMBINED);
    assert_int_equal(plain_type(POOL(.prefer = GM_MEMORY_HOST_VISIBLE)), WINDOW);
    assert_int_equal(plain_type(POOL(ANY)), OWN);
    assert_int_equal(plain_type(POOL(.memory_types = 1 << OWN)), OWN);
  }
}

/* A request adds to the wishes of its pool, and takes none of them away. */
static void test_requests_add_their_own_wishes(void **state) {
  (void)state;
  for (int i = 0; i < 2; i++) {
    pool_bench bench;
    open_card(&bench, POOL(ANY, .memory_types = 1 << CACHED | 1 << COMBINED));
    for (int round = 0; round < 3; round++) {
      assert_int_equal(served_by(&bench, (gm_request){.tag = 0}), CACHED);
      assert_int_equal(served_by(&bench, (gm_request){ANY}), CACHED);
      assert_int_equal(served_by(&bench, (gm_request){.memory_types = 1 << COMBINED | 1 << OWN}), COMBINED);
      assert_int_equal(served_by(&bench, (gm_request){.prefer = GM_MEMORY_HOST_COHERENT}), COMBINED);
      assert_int_equal(served_by(&bench, (gm_request){.require = GM_MEMORY_WRITE_COMBINED}), COMBINED);
    }
    refused(&bench, (gm_request){.memory_types = 1 << OWN}, GM_ERR_INVALID_ARGUMENT,
            "`memory_types` is 0x1: pool \"pool\" has memory of 0xc only");
    refused(&bench, (gm_request){.require = GM_MEMORY_DEVICE_LOCAL}, GM_ERR_NOT_SUPPORTED, "GM_MEMORY_DEVICE_LOCAL");
    const gm_explanation why = explained(bench.pool, &(gm_request){.bytes = 1, .prefer = GM_MEMORY_DEVICE_LOCAL});
    assert_non_null(strstr(why.text, "No memory that may serve is GM_MEMORY_DEVICE_LOCAL"));
    pool_bench_close(&bench);
  }
}

/* Usages are added up, so a request that names fewer is served from the same memory. */
static void test_usages_are_added(void **state) {
  (void)state;
  for (int i = 0; i < 2; i++) {
    pool_bench bench;
    open_card(&bench, POOL(ANY, .usage = GM_USAGE_READBACK, .memory_types = 1 << OWN | 1 << CACHED));
    assert_int_equal(served_by(&bench, (gm_request){.tag = 0}), CACHED); /* which the host reads fast */
    assert_int_equal(served_by(&bench, (gm_request){.usage = GM_USAGE_STORAGE}), CACHED);
    assert_int_equal(card.allocs, 1);
    pool_bench_close(&bench);
  }
}

/* gm_pool_create tells a wish that nothing can meet, not the first request. */
static void test_wishes_that_nothing_meets(void **state) {
  (void)state;
  static const struct {
    gm_pool_params pool;
    gm_status status;
    const char *words;
  } cases[] = {
      {{.require = GM_MEMORY_SYSTEM}, GM_ERR_NOT_SUPPORTED, "no memory that is GM_DEVICE_LOCAL and GM_MEMORY_SYSTEM"},
      {{ANY, .require = GM_MEMORY_PINNED}, GM_ERR_NOT_SUPPORTED, "GM_MEMORY_PINNED"},
      {{.memory_types = 1 << TYPES}, GM_ERR_INVALID_ARGUMENT, "`memory_types` is 0x10"},
      {{.require = UINT32_C(1) << 31}, GM_ERR_INVALID_ARGUMENT, "`require` has unknown bits"},
      {{.prefer = UINT32_C(1) << 31}, GM_ERR_INVALID_ARGUMENT, "`prefer` has unknown bits"},
      {{.usage = UINT32_C(1) << 31}, GM_ERR_INVALID_ARGUMENT, "`params->usage` has unknown bits"},
      {{.must_be = (gm_must_be)7}, GM_ERR_INVALID_ARGUMENT, "`params->must_be` is 7"},
      {{.priority = 1.5f}, GM_ERR_INVALID_ARGUMENT, "`params->priority`"},
      {{.priority = -1.0f}, GM_ERR_INVALID_ARGUMENT, "`params->priority`"},
      {{.upstream = &host_upstream, .memory_types = 1}, GM_ERR_NOT_SUPPORTED, "upstream"},
  };
  pool_bench bench;
  open_card(&bench, &card_pool);
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    gm_pool_params params = cases[i].pool;
    gm_pool *pool = NULL;
    gm_error err = {.status = GM_OK};
    params.struct_size = sizeof params;
    assert_int_equal(gm_pool_create(bench.device, &params, &pool, &err), cases[i].status);
    if (!strstr(err.message, cases[i].words)) fail_msg("\"%s\" is not in: %s", cases[i].words, err.message);
    assert_string_equal(err.op, "gm_pool_create");
    assert_null(pool);
  }
  pool_bench_close(&bench);
}

/* Pages are mapped of the device's first type alone: a pool that wishes for others has none. */
static void test_a_pool_that_maps_pages(void **state) {
  (void)state;
  for (int wishes = 0; wishes < 2; wishes++) {
    const gm_pool_params params = {.struct_size = sizeof params, .memory_types = wishes ? 1 : 0};
    pool_bench bench;
    pool_bench_open(&bench, "cpu", "", &params);
    void *pointer = gm_malloc(bench.pool, BYTES, NULL);
    assert_non_null(pointer);
    memset(pointer, 1, BYTES);
    assert_int_equal(gm_free_ptr(bench.pool, pointer, 0, NULL), GM_OK);
    pool_bench_close(&bench);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_plain_requests_get_what_the_pool_wishes),
      cmocka_unit_test(test_requests_add_their_own_wishes), cmocka_unit_test(test_usages_are_added),
      cmocka_unit_test(test_wishes_that_nothing_meets), cmocka_unit_test(test_a_pool_that_maps_pages)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Floats of 16 bits as floats of 32 bits where the backend has no kernel: the host does it. The refusals. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants those above before it */
#include <cmocka.h>

#include "support/expand_scene.h"

static void the_host_expands_every_number(void **state) {
  (void)state;
  pool_bench bench;
  pool_bench_open(&bench, "cpu", NULL, NULL);
  expand_check(&bench, true);
  pool_bench_close(&bench);
}

static void no_contents_are_told(void **state) {
  (void)state;
  pool_bench bench;
  pool_bench_open(&bench, "null", "null:capacity=64M", NULL);
  gm_block from = expand_take(&bench, 64), to = expand_take(&bench, 64);
  assert_int_equal(
      gm_block_expand(bench.pool, &to, 0, bench.pool, &from, 0, 16, gm_codec_find("bf16"), NULL, NULL, NULL, NULL),
      GM_ERR_NOT_SUPPORTED);
  assert_int_equal(gm_free(bench.pool, &from, NULL), GM_OK);
  assert_int_equal(gm_free(bench.pool, &to, NULL), GM_OK);
  pool_bench_close(&bench);
}

static void what_is_wrong_is_refused(void **state) {
  (void)state;
  pool_bench bench;
  pool_bench_open(&bench, "cpu", NULL, NULL);
  const gm_codec *bf16 = gm_codec_find("bf16"), own = *bf16;
  gm_block from = expand_take(&bench, 1024), to = expand_take(&bench, 1024);
  const struct {
    const gm_block *to, *from;
    uint64_t to_at, from_at, count;
    const gm_codec *codec;
  } wrong[] = {{&to, &from, 0, 0, 16, NULL},
               {&to, &from, 0, 0, 16, &own},
               {&to, &from, 0, 0, 16, gm_codec_find("planes")},
               {&to, &from, 2, 0, 16, bf16},
               {&to, &from, 0, 1, 16, bf16},
               {&to, &from, 0, 0, 257, bf16},
               {&to, &from, 1020, 0, 2, bf16},
               {&to, &from, 0, 1022, 2, bf16},
               {&to, &from, 0, 0, UINT64_MAX / 4 + 2, bf16},
               {&to, &from, 0, 0, UINT64_MAX, bf16},
               {&to, NULL, 0, 0, 16, bf16},
               {NULL, &from, 0, 0, 16, bf16},
               {&to, &to, 0, 62, 16, bf16},
               {&to, &to, 32, 0, 17, bf16}};
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
    gm_error err = {.status = GM_OK};
    bool host = false;
    gm_point point = {.stream = 7};
    const gm_status status =
        gm_block_expand(bench.pool, wrong[i].to, wrong[i].to_at, bench.pool, wrong[i].from, wrong[i].from_at,
                        wrong[i].count, wrong[i].codec, NULL, &point, &host, &err);
    assert_int_equal(status, GM_ERR_INVALID_ARGUMENT);
    assert_int_equal(err.status, status);
    assert_false(host);
    assert_int_equal(point.stream, 7);
  }
  pool_bench_ok(gm_block_expand(bench.pool, &to, 32, bench.pool, &to, 0, 16, bf16, NULL, NULL, NULL, err));
  pool_bench_ok(gm_block_expand(bench.pool, &to, 0, bench.pool, &from, 0, 0, bf16, NULL, NULL, NULL, err));
  assert_int_equal(gm_free(bench.pool, &from, NULL), GM_OK);
  assert_int_equal(gm_free(bench.pool, &to, NULL), GM_OK);
  pool_bench_close(&bench);
}

static void no_host_memory_is_told(void **state) {
  (void)state;
  pool_bench bench;
  pool_bench_open(&bench, "cpu", NULL, NULL);
  gm_block from = expand_take(&bench, 1024), to = expand_take(&bench, 1024);
  bench.host.fail_at = atomic_load(&bench.host.calls) + 1;
  assert_int_equal(
      gm_block_expand(bench.pool, &to, 0, bench.pool, &from, 0, 16, gm_codec_find("fp16"), NULL, NULL, NULL, NULL),
      GM_ERR_OUT_OF_HOST_MEMORY);
  bench.host.fail_at = 0;
  assert_int_equal(gm_free(bench.pool, &from, NULL), GM_OK);
  assert_int_equal(gm_free(bench.pool, &to, NULL), GM_OK);
  pool_bench_close(&bench);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_host_expands_every_number),
      cmocka_unit_test(no_contents_are_told),
      cmocka_unit_test(what_is_wrong_is_refused),
      cmocka_unit_test(no_host_memory_is_told),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

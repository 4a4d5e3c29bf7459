/* A disk tier where libzstd and liblz4 cannot be opened. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* cmocka wants those above before it */
#include <cmocka.h>

#include "support/disk_bench.h"

static gm_status open_tier(gm_tier_codec codec, gm_error *err) {
  disk_bench bench;
  gm_tier *tier = NULL;
  counted_services host;
  counted_services_init(&host);
  disk_bench_open(&bench, &host.services);
  const gm_tier_params params = {.struct_size = sizeof params, .codec = codec};
  const gm_status status = gm_tier_open(bench.ctx, "disk", bench.path, &params, &tier, err);
  if (status == GM_OK) disk_bench_end(tier);
  disk_bench_close(&bench);
  counted_services_check(&host);
  return status;
}

static void a_missing_libzstd_is_told(void **state) {
  gm_error err = {.status = GM_OK};
  (void)state;
  setenv("GM_ZSTD_LIBRARY", "/nowhere/libzstd.so.1", 1);
  assert_int_equal(open_tier(GM_TIER_CODEC_ZSTD, &err), GM_ERR_NOT_SUPPORTED);
  assert_non_null(strstr(err.message, "gm has no zstd"));
}

static void a_missing_liblz4_is_told(void **state) {
  gm_error err = {.status = GM_OK};
  (void)state;
  setenv("GM_LZ4_LIBRARY", "/nowhere/liblz4.so.1", 1);
  assert_int_equal(open_tier(GM_TIER_CODEC_LZ4, &err), GM_ERR_NOT_SUPPORTED);
  assert_non_null(strstr(err.message, "gm has no lz4"));
}

/* Nobody needs them who did not ask for it by name. */
static void other_codecs_do_without(void **state) {
  (void)state;
  assert_int_equal(open_tier(GM_TIER_CODEC_AUTO, NULL), GM_OK);
  assert_int_equal(open_tier(GM_TIER_CODEC_NONE, NULL), GM_OK);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(a_missing_libzstd_is_told),
                                     cmocka_unit_test(a_missing_liblz4_is_told),
                                     cmocka_unit_test(other_codecs_do_without)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Reading values of the disk tier: which memory a read takes, and every kind of range. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/disk_bench.h"
#include "support/no_sync.h"
#include "support/random.h"

enum { MB = 1 << 20, VALUE = 3 * MB + 5000 };

/* The second megabyte is random; the others can be packed. */
static unsigned char *value_make(void) {
  unsigned char *bytes = malloc(VALUE);
  uint64_t seed = 5;
  assert_non_null(bytes);
  for (size_t i = 0; i < VALUE; i++) bytes[i] = (unsigned char)(i / MB == 1 ? test_random(&seed) : i / 1000);
  return bytes;
}

static void put_value(gm_tier *tier, const unsigned char *bytes, uint64_t count) {
  const gm_tier_part part = {bytes, count};
  assert_int_equal(gm_tier_put(tier, "k", 1, &part, 1, NULL), GM_OK);
}

static void test_a_read_of_whole_chunks_takes_no_memory(void **state) {
  (void)state;
  disk_bench bench;
  counted_services host;
  gm_tier_value *value = NULL;
  uint64_t has = 0;
  unsigned char *bytes = value_make(), *read = malloc(VALUE);
  assert_non_null(read);
  counted_services_init(&host);
  disk_bench_open(&bench, &host.services);
  gm_tier *tier = disk_bench_tier(&bench, GM_TIER_DURABLE_AT_FLUSH, GM_TIER_CODEC_NONE);
  put_value(tier, bytes, VALUE);
  assert_int_equal(gm_tier_value_open(tier, "k", 1, &value, &has, NULL), GM_OK);
  const size_t calls = host.calls;
  assert_int_equal(gm_tier_value_read(value, 0, read, VALUE, NULL), GM_OK);
  assert_int_equal(host.calls, calls);
  assert_memory_equal(read, bytes, VALUE);
  gm_tier_value_close(value);
  put_value(tier, bytes, 4096); /* a part of a small value takes no more than the value */
  assert_int_equal(gm_tier_value_open(tier, "k", 1, &value, &has, NULL), GM_OK);
  host.peak_bytes = (size_t)host.live_bytes;
  assert_int_equal(gm_tier_value_read(value, 1, read, 100, NULL), GM_OK);
  assert_true(host.peak_bytes <= host.live_bytes + 4096);
  assert_memory_equal(read, bytes + 1, 100);
  gm_tier_value_close(value);
  disk_bench_end(tier);
  disk_bench_close(&bench);
  counted_services_check(&host);
  free(bytes);
  free(read);
}

static void test_every_kind_of_range_is_right(void **state) {
  (void)state;
  static const uint64_t edges[] = {0, 1, MB - 1, MB, MB + 1, 2 * MB, 3 * MB, VALUE - 1, VALUE};
  enum { EDGES = sizeof edges / sizeof *edges };
  static const gm_tier_codec codecs[] = {GM_TIER_CODEC_NONE, GM_TIER_CODEC_AUTO};
  unsigned char *bytes = value_make(), *read = malloc(VALUE);
  assert_non_null(read);
  for (size_t c = 0; c < sizeof codecs / sizeof *codecs; c++) {
    disk_bench bench;
    gm_tier_value *value = NULL;
    uint64_t has = 0;
    disk_bench_open(&bench, NULL);
    gm_tier *tier = disk_bench_tier(&bench, GM_TIER_DURABLE_AT_FLUSH, codecs[c]);
    put_value(tier, bytes, VALUE);
    assert_int_equal(gm_tier_value_open(tier, "k", 1, &value, &has, NULL), GM_OK);
    for (size_t i = 0; i < EDGES; i++) {
      for (size_t j = i; j < EDGES; j++) {
        const uint64_t count = edges[j] - edges[i];
        memset(read, 0xee, VALUE);
        assert_int_equal(gm_tier_value_read(value, edges[i], read, count, NULL), GM_OK);
        assert_memory_equal(read, bytes + edges[i], count);
        assert_true(count == VALUE || read[count] == 0xee);
      }
    }
    gm_tier_value_close(value);
    disk_bench_end(tier);
    disk_bench_close(&bench);
  }
  free(bytes);
  free(read);
}

/* ---- how a value is kept ---- */

static gm_tier_value_info info_of(gm_tier *tier) {
  gm_tier_value *value = NULL;
  gm_tier_value_info info = {.struct_size = sizeof info};
  assert_int_equal(gm_tier_value_open(tier, "k", 1, &value, NULL, NULL), GM_OK);
  assert_int_equal(gm_tier_value_describe(value, &info, NULL), GM_OK);
  gm_tier_value_close(value);
  return info;
}

static void test_a_value_says_how_it_is_kept(void **state) {
  (void)state;
  unsigned char *bytes = value_make();
  for (gm_tier_codec codec = GM_TIER_CODEC_NONE; codec <= GM_TIER_CODEC_ZSTD; codec++) {
    disk_bench bench;
    gm_tier *tier = NULL;
    const gm_tier_params params = {.struct_size = sizeof params, .codec = codec};
    disk_bench_open(&bench, NULL);
    const gm_status status = gm_tier_open(bench.ctx, "disk", bench.path, &params, &tier, NULL);
    if (status) {
      assert_int_equal(status, GM_ERR_NOT_SUPPORTED); /* gm was built without it */
      disk_bench_close(&bench);
      continue;
    }
    memset(bytes, 7, VALUE);
    put_value(tier, bytes, VALUE);
    const gm_tier_value_info same = info_of(tier);
    assert_int_equal(same.codec, codec);
    assert_int_equal(same.bytes, VALUE);
    assert_int_equal(same.stored_bytes < VALUE / 10, codec != GM_TIER_CODEC_NONE);
    if (codec == GM_TIER_CODEC_NONE) assert_int_equal(same.stored_bytes, VALUE);
    put_value(tier, bytes, 0);
    assert_int_equal(info_of(tier).stored_bytes, 0);
    assert_int_equal(info_of(tier).codec, GM_TIER_CODEC_NONE);
    disk_bench_end(tier);
    disk_bench_close(&bench);
  }
  free(bytes);
}

static void test_who_asks_wrongly_gets_no_answer(void **state) {
  (void)state;
  disk_bench bench;
  gm_tier_value *value = NULL;
  gm_tier_value_info info = {.struct_size = sizeof info}, small = {.struct_size = 2};
  disk_bench_open(&bench, NULL);
  gm_tier *tier = disk_bench_tier(&bench, GM_TIER_DURABLE_AT_FLUSH, GM_TIER_CODEC_NONE);
  put_value(tier, (const unsigned char *)"four", 4);
  assert_int_equal(gm_tier_value_open(tier, "k", 1, &value, NULL, NULL), GM_OK);
  assert_int_equal(gm_tier_value_describe(NULL, &info, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_tier_value_describe(value, NULL, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_tier_value_describe(value, &small, NULL), GM_ERR_INVALID_ARGUMENT);
  gm_tier_value_close(value);
  disk_bench_end(tier);
  disk_bench_close(&bench);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_read_of_whole_chunks_takes_no_memory),
      cmocka_unit_test(test_every_kind_of_range_is_right),
      cmocka_unit_test(test_a_value_says_how_it_is_kept),
      cmocka_unit_test(test_who_asks_wrongly_gets_no_answer),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

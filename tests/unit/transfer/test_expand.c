/* Floats of 16 bits as floats of 32 bits where the backend has no kernel: the host does it. The refusals. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
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

/* Floats of 16 bits as a source has them: the step gets them whole, and half a number is refused. */
static gm_status give_piece(void *user, void *host, uint64_t most, uint64_t *out_bytes) {
  int *given = user;
  assert_int_equal(most, 2000);
  memset(host, 0x41, 2000);
  *out_bytes = *given ? 3 : 2000;
  (*given)++;
  return GM_OK;
}

static gm_status see_whole_floats(void *user, gm_pipeline_item *item, gm_error *err) {
  const uint32_t *in = (const uint32_t *)(uintptr_t)item->in.address;
  (void)user, (void)err;
  assert_int_equal(item->bytes, 4000);
  for (int i = 0; i < 1000; i++) assert_int_equal(in[i], 0x41410000);
  return GM_OK;
}

static void the_steps_of_a_pipeline_get_whole_floats(void **state) {
  (void)state;
  pool_bench bench;
  int given = 0;
  gm_error err;
  gm_pipeline *pipeline;
  gm_pipeline_stats stats = {.struct_size = sizeof stats};
  pool_bench_open(&bench, "cpu", NULL, NULL);
  const gm_pipeline_params params = {.struct_size = sizeof params,
                                     .item_bytes = 4000,
                                     .in_pool = bench.pool,
                                     .source = give_piece,
                                     .step = see_whole_floats,
                                     .user = &given,
                                     .in_codec = gm_codec_find("bf16"),
                                     .in_way = GM_CODEC_DECODE,
                                     .read_bytes = 2000,
                                     .expand = true};
  assert_int_equal(gm_pipeline_create(bench.device, &params, &pipeline, &err), GM_OK);
  assert_int_equal(gm_pipeline_run(pipeline, &stats, &err), GM_ERR_FORMAT);
  assert_non_null(strstr(err.message, "stage in_codec: `bf16`, from byte 2000 of the source on: 3 bytes"));
  assert_int_equal(stats.host_expanded, 4000);
  assert_int_equal(gm_pipeline_destroy(pipeline, &err), GM_OK);
  pool_bench_close(&bench);
}

static void wrong_pipelines_are_refused(void **state) {
  (void)state;
  pool_bench bench;
  gm_error err;
  gm_pipeline *pipeline;
  pool_bench_open(&bench, "cpu", NULL, NULL);
  const gm_codec *bf16 = gm_codec_find("bf16"), *planes = gm_codec_find("planes");
  const struct {
    const gm_codec *codec;
    gm_codec_way way;
    uint64_t item, read;
    const char *word;
  } wrong[] = {{NULL, GM_CODEC_ENCODE, 4000, 0, "`expand` needs an `in_codec`"},
               {planes, GM_CODEC_DECODE, 4000, 2000, "\"bf16\" or \"fp16\""},
               {bf16, GM_CODEC_DECODE, 4002, 2000, "multiple of 4"},
               {bf16, GM_CODEC_DECODE, 4000, 2002, "of which `item_bytes` holds 2000"},
               {bf16, GM_CODEC_ENCODE, 4000, 4004, "of which `item_bytes` holds 4000"},
               {bf16, GM_CODEC_ENCODE, 4000, 6, "multiples of 4"}};
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
    const gm_pipeline_params params = {.struct_size = sizeof params,
                                       .item_bytes = wrong[i].item,
                                       .in_pool = bench.pool,
                                       .step = see_whole_floats,
                                       .in_codec = wrong[i].codec,
                                       .in_way = wrong[i].way,
                                       .read_bytes = wrong[i].read,
                                       .expand = true};
    assert_int_equal(gm_pipeline_create(bench.device, &params, &pipeline, &err), GM_ERR_INVALID_ARGUMENT);
    if (!strstr(err.message, wrong[i].word)) fail_msg("`%s` is not in: %s", wrong[i].word, err.message);
  }
  pool_bench_close(&bench);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_host_expands_every_number),
      cmocka_unit_test(no_contents_are_told),
      cmocka_unit_test(what_is_wrong_is_refused),
      cmocka_unit_test(no_host_memory_is_told),
      cmocka_unit_test(the_steps_of_a_pipeline_get_whole_floats),
      cmocka_unit_test(wrong_pipelines_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Mapped pages serve on an adopted card as on an opened one. Memory that is free in pieces serves a large request,
 * with every kind of limit, and without any. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "gm/pool.h"
#include "support/cuda_engine.h"
#include "support/cuda_fixture.h"

#define MIB (UINT64_C(1) << 20)

/* There are blocks of 200 MiB on a card of 256 MiB, every other freed. A request fits into what is free, in pieces and
 * at the driver. */
enum { BLOCKS = 50, PIECE_MIB = 4, ASKED_MIB = 100 };

typedef struct limit_case {
  const char *name;
  gm_pool_params params;
  bool full; /* the limit itself leaves room for the request */
} limit_case;

#define PARAMS .struct_size = sizeof(gm_pool_params)

static const limit_case cases[] = {
    {"none", {PARAMS}, true},
    {"memory_fraction 1", {PARAMS, .memory_fraction = 1}, true},
    {"min_free_bytes none", {PARAMS, .min_free_bytes = GM_NO_LIMIT}, true},
    {"both, and so none", {PARAMS, .memory_fraction = 1, .min_free_bytes = GM_NO_LIMIT}, true},
    {"min_free_bytes 0", {PARAMS, .memory_fraction = 1, .min_free_bytes = GM_NO_BYTES}, true},
    {"memory_fraction 0.9", {PARAMS, .memory_fraction = 0.9}, true},
    {"min_free_bytes 16 MiB", {PARAMS, .min_free_bytes = 16 * MIB}, true},
    {"max_bytes of the card", {PARAMS, .max_bytes = 256 * MIB}, true},
    {"max_bytes of 208 MiB", {PARAMS, .max_bytes = 208 * MIB}, true},
    {"memory_fraction 0.5", {PARAMS, .memory_fraction = 0.5}, false},
    {"min_free_bytes 75 MiB", {PARAMS, .min_free_bytes = 75 * MIB}, false},
    {"max_bytes of 175 MiB", {PARAMS, .max_bytes = 175 * MIB}, false},
};

typedef struct outcome {
  int got;
  gm_acquire answer;
  uint64_t reclaimable, in_use;
} outcome;

static gm_device *open_card(gm_context *ctx, bool adopt) {
  gm_device *device = NULL;
  gm_error err;
  const gm_cuda_device card = {.head = {sizeof card, GM_API_CUDA}, .ordinal = 0};
  adopt_scene_ok(
      adopt ? gm_device_adopt(ctx, &card.head, &device, &err) : gm_device_open_index(ctx, "cuda", 0, &device, &err),
      &err);
  return device;
}

static outcome try_limit(const limit_case *limit, gm_device *device) {
  gm_pool *pool = NULL;
  gm_error err;
  gm_block blocks[BLOCKS], large;
  outcome out = {.got = 0};
  gm_stats stats = {.struct_size = sizeof stats};
  adopt_scene_ok(gm_pool_create(device, &limit->params, &pool, &err), &err);
  const gm_request piece = {.bytes = PIECE_MIB * MIB}, whole = {.bytes = ASKED_MIB * MIB};
  while (out.got < BLOCKS && gm_acquired(gm_alloc(pool, &piece, &blocks[out.got]))) out.got++;
  for (int i = 0; i < out.got; i += 2) assert_int_equal(gm_free(pool, &blocks[i], NULL), GM_OK);
  assert_int_equal(gm_pool_stats(pool, &stats), GM_OK);
  out.reclaimable = stats.reclaimable_bytes;
  out.in_use = stats.in_use_bytes;
  out.answer = gm_alloc(pool, &whole, &large);
  if (gm_acquired(out.answer)) assert_int_equal(gm_free(pool, &large, NULL), GM_OK);
  for (int i = 1; i < out.got; i += 2) assert_int_equal(gm_free(pool, &blocks[i], NULL), GM_OK);
  adopt_scene_ok(gm_pool_destroy(pool, &err), &err);
  return out;
}

static void test_each_limit(void **state) {
  (void)state;
  cuda_say("set TOTAL 256m");
  gm_context *ctx = adopt_scene_context("cuda", getenv("GM_CUDA_LIBRARY"));
  gm_device *own = open_card(ctx, false), *engines = open_card(ctx, true);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const outcome opened = try_limit(&cases[i], own), adopted = try_limit(&cases[i], engines);
    if (adopted.answer != opened.answer || (cases[i].full && opened.answer != GM_ACQUIRE_FRESH)) {
      fail_msg("%s: opened %s, adopted %s", cases[i].name, gm_acquire_name(opened.answer),
               gm_acquire_name(adopted.answer));
    }
    if (!cases[i].full) continue;
    assert_int_equal(opened.got, BLOCKS);
    assert_int_equal(adopted.got, BLOCKS);
    /* Idle memory can be used elsewhere, but for a page or two at the ends of each piece. */
    const uint64_t freed = BLOCKS / 2 * PIECE_MIB * MIB, least = freed / 2;
    if (opened.reclaimable < least || adopted.reclaimable < least) {
      fail_msg("%s: opened %llu MiB, adopted %llu MiB idle of %llu", cases[i].name,
               (unsigned long long)(opened.reclaimable / MIB), (unsigned long long)(adopted.reclaimable / MIB),
               (unsigned long long)(freed / MIB));
    }
  }
  assert_int_equal(gm_device_close(own, NULL), GM_OK);
  adopt_scene_end(ctx, engines);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_each_limit),
  };
  return cmocka_run_group_tests(tests, cuda_engine_open, cuda_engine_close);
}

/* Plans against naive oracles: every pair of tensors compared, every order of placing tried. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "core/base/clock.h"
#include "gm/plan.h"
#include "gm/trace.h"
#include "support/counted_services.h"
#include "support/great_many.h"
#include "support/plan_tensors.h"

enum { SETS = 500, MOST = 60, SMALL = 7, SMALL_SETS = 400 };

static uint64_t padded(uint64_t bytes, uint64_t align) { return (bytes + align - 1) / align * align; }

/* The engine's rules, op by op: take, then give back, and places that are taken over. */
static uint64_t walk(const gm_plan_tensor *tensors, uint64_t count, uint64_t ops, uint64_t *offsets) {
  gm_plan_replay *replay;
  bool taken[MOST] = {false};
  uint64_t align = 1;
  for (uint64_t i = 0; i < count; i++) align = tensors[i].align > align ? tensors[i].align : align;
  /* Whose place goes on is settled in the order of the tensors, not of the operations. */
  uint64_t from[MOST];
  for (uint64_t i = 0; i < count; i++) {
    uint64_t other = tensors[i].take_over - 1;
    from[i] = UINT64_MAX;
    if (!tensors[i].take_over || !tensors[i].bytes || taken[other]) continue;
    if (tensors[other].last_op != tensors[i].first_op || tensors[other].first_op == tensors[i].first_op) continue;
    if (padded(tensors[other].bytes, align) != padded(tensors[i].bytes, align)) continue;
    taken[other] = true;
    from[i] = other;
  }
  assert_int_equal(gm_plan_replay_open(NULL, align, &replay, NULL), GM_OK);
  for (uint64_t op = 0; op < ops; op++) {
    for (uint64_t i = 0; i < count; i++) {
      if (tensors[i].first_op != op) continue;
      offsets[i] = from[i] != UINT64_MAX ? offsets[from[i]] : 0;
      if (from[i] == UINT64_MAX) {
        assert_int_equal(gm_plan_replay_alloc(replay, tensors[i].bytes, &offsets[i], NULL), GM_OK);
      }
    }
    for (uint64_t i = 0; i < count; i++) {
      if (tensors[i].last_op != op || taken[i]) continue;
      assert_int_equal(gm_plan_replay_free(replay, offsets[i], tensors[i].bytes, NULL), GM_OK);
    }
  }
  uint64_t peak = gm_plan_replay_peak(replay);
  gm_plan_replay_close(replay);
  return peak;
}

static void test_engine_is_the_walk_and_best_is_not_worse(void **state) {
  (void)state;
  uint64_t random = 5;
  for (uint32_t set = 0; set < SETS; set++) {
    gm_plan_tensor tensors[MOST];
    uint64_t walked[MOST], offsets[MOST], count = 1 + test_random(&random) % MOST, ops = 1 + test_random(&random) % 40;
    uint64_t engine, best, peak, bound;
    plan_random_tensors(&random, tensors, count, ops, set % 2 ? 100 : UINT64_C(1) << 40);
    assert_int_equal(gm_plan_make(NULL, GM_PLAN_ENGINE, tensors, count, offsets, &engine, NULL), GM_OK);
    assert_int_equal(engine, walk(tensors, count, ops, walked));
    assert_memory_equal(offsets, walked, count * sizeof *offsets);
    assert_int_equal(gm_plan_check(NULL, tensors, count, offsets, &peak, NULL), GM_OK);
    assert_true(peak <= engine);
    assert_int_equal(gm_plan_make(NULL, GM_PLAN_BEST, tensors, count, offsets, &best, NULL), GM_OK);
    assert_int_equal(gm_plan_check(NULL, tensors, count, offsets, &peak, NULL), GM_OK);
    assert_int_equal(gm_plan_peak_live(NULL, tensors, count, &bound, NULL), GM_OK);
    assert_true(bound <= peak && peak <= best && best <= engine);
  }
}

static bool at_once(const gm_plan_tensor *a, const gm_plan_tensor *b) {
  return a->first_op <= b->last_op && b->first_op <= a->last_op;
}

/* The lowest offset of tensor order[n] beside those before it in the order. */
static uint64_t lowest(const gm_plan_tensor *tensors, const uint32_t *order, uint32_t n, const uint64_t *offsets) {
  const gm_plan_tensor *tensor = &tensors[order[n]];
  uint64_t offset = 0, align = tensor->align ? tensor->align : 1;
  for (uint32_t i = 0; i < n;) {
    uint32_t other = order[i++];
    uint64_t end = offsets[other] + tensors[other].bytes;
    if (!at_once(tensor, &tensors[other]) || offset >= end || offset + tensor->bytes <= offsets[other]) continue;
    offset = padded(end, align);
    i = 0;
  }
  return offset;
}

/* A smallest plan is found by placing as low as possible in some order: in that of its offsets. */
static uint64_t smallest(const gm_plan_tensor *tensors, uint32_t count, uint32_t *order, uint32_t n, uint64_t *offsets,
                         uint64_t peak, uint64_t best) {
  if (peak >= best) return best;
  if (n == count) return peak;
  for (uint32_t i = n; i < count; i++) {
    uint32_t chosen = order[i];
    order[i] = order[n];
    order[n] = chosen;
    offsets[chosen] = lowest(tensors, order, n, offsets);
    uint64_t end = offsets[chosen] + tensors[chosen].bytes;
    best = smallest(tensors, count, order, n + 1, offsets, end > peak ? end : peak, best);
    order[n] = order[i];
    order[i] = chosen;
  }
  return best;
}

static void test_small_sets_against_every_order(void **state) {
  (void)state;
  uint64_t random = 17;
  uint32_t exact = 0, engine_exact = 0;
  double ratio = 0, worst = 1, engine_ratio = 0;
  for (uint32_t set = 0; set < SMALL_SETS; set++) {
    gm_plan_tensor tensors[SMALL];
    uint64_t offsets[SMALL], tried[SMALL], best, engine;
    uint32_t order[SMALL] = {0, 1, 2, 3, 4, 5, 6};
    for (uint32_t i = 0; i < SMALL; i++) {
      uint64_t first = test_random(&random) % 8;
      tensors[i] = (gm_plan_tensor){.bytes = 1 + test_random(&random) % 12, .first_op = first};
      tensors[i].last_op = first + test_random(&random) % 5;
      if (set % 2) tensors[i].align = UINT64_C(1) << test_random(&random) % 3;
    }
    uint64_t optimum = smallest(tensors, SMALL, order, 0, tried, 0, UINT64_MAX);
    assert_int_equal(gm_plan_make(NULL, GM_PLAN_BEST, tensors, SMALL, offsets, &best, NULL), GM_OK);
    assert_int_equal(gm_plan_make(NULL, GM_PLAN_ENGINE, tensors, SMALL, offsets, &engine, NULL), GM_OK);
    assert_true(best >= optimum);
    exact += best == optimum;
    engine_exact += engine == optimum;
    ratio += (double)best / (double)optimum / SMALL_SETS;
    engine_ratio += (double)engine / (double)optimum / SMALL_SETS;
    if ((double)best / (double)optimum > worst) worst = (double)best / (double)optimum;
  }
  print_message("7 tensors, %d sets: best plans %u optimal, mean %.4f, worst %.3f; the engine's %u, mean %.4f\n",
                SMALL_SETS, exact, ratio, worst, engine_exact, engine_ratio);
  assert_true(exact >= SMALL_SETS * 97 / 100 && ratio < 1.005);
  assert_true(engine_exact < exact);
}

/* The lifetimes of a recorded trace: an event is an operation. */
static gm_plan_tensor *trace_tensors(const char *path, uint64_t *out_count) {
  gm_trace *trace;
  gm_trace_event event = {.struct_size = sizeof event};
  const gm_status opened = gm_trace_open(NULL, path, &trace, NULL);
  if (opened == GM_ERR_NOT_SUPPORTED) skip(); /* built without zlib */
  assert_int_equal(opened, GM_OK);
  uint64_t capacity = 1 << 18, *ids = test_calloc(capacity, sizeof *ids), count = 0, op = 0;
  gm_plan_tensor *tensors = test_calloc(capacity, sizeof *tensors);
  for (event.kind = GM_TRACE_MARK; event.kind != GM_TRACE_END; op++) {
    assert_int_equal(gm_trace_next(trace, &event, NULL), GM_OK);
    if (event.kind == GM_TRACE_ALLOC) {
      assert_true(count < capacity);
      ids[count] = event.id;
      tensors[count++] = (gm_plan_tensor){event.bytes, 256, op, UINT64_MAX, 0};
    } else if (event.kind == GM_TRACE_FREE) {
      uint64_t low = 0, high = count; /* ids rise */
      while (high - low > 1) *(ids[(low + high) / 2] <= event.id ? &low : &high) = (low + high) / 2;
      tensors[low].last_op = op - 1;
    }
  }
  gm_trace_close(trace);
  test_free(ids);
  *out_count = count;
  return tensors;
}

static double seconds(uint64_t from) { return (double)(gm__now_ns() - from) / 1e9; }

static void plan_and_print(const char *name, const gm_plan_tensor *tensors, uint64_t count, double limit) {
  uint64_t *offsets = test_calloc(count, sizeof *offsets), bound, peaks[2], checked;
  double took[2];
  assert_int_equal(gm_plan_peak_live(NULL, tensors, count, &bound, NULL), GM_OK);
  for (int policy = GM_PLAN_ENGINE; policy <= GM_PLAN_BEST; policy++) {
    uint64_t from = gm__now_ns();
    assert_int_equal(gm_plan_make(NULL, (gm_plan_policy)policy, tensors, count, offsets, &peaks[policy], NULL), GM_OK);
    took[policy] = seconds(from);
    assert_int_equal(gm_plan_check(NULL, tensors, count, offsets, &checked, NULL), GM_OK);
    assert_true(checked <= peaks[policy]);
  }
  print_message("%s: %" PRIu64 " tensors, engine %.4f in %.3f s, best %.4f in %.3f s (times what lives)\n", name, count,
                (double)peaks[0] / (double)bound, took[0], (double)peaks[1] / (double)bound, took[1]);
  assert_true((double)peaks[1] <= limit * (double)bound);
  test_free(offsets);
}

/* Real steps leave no gap when they are known beforehand. */
static void test_traces_as_lifetimes(void **state) {
  (void)state;
  static const char *const names[] = {"dit_l2_cfg", "resnet50_train", "multistream_gpt2_bert_3s"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    char path[128];
    uint64_t count;
    snprintf(path, sizeof path, "bench/traces/%s.gmtrace.gz", names[i]);
    gm_plan_tensor *tensors = trace_tensors(path, &count);
    plan_and_print(names[i], tensors, count, 1.001);
    test_free(tensors);
  }
}

static void test_many_tensors(void **state) {
  (void)state;
  const uint64_t many = great_many(20000);
  uint64_t random = 3;
  gm_plan_tensor *tensors = test_calloc(many, sizeof *tensors);
  for (uint64_t i = 0; i < many; i++) {
    uint64_t life = test_log_uniform(&random, 4096);
    tensors[i] = (gm_plan_tensor){test_log_uniform(&random, 1 << 24), 256, i, i + life, 0};
  }
  plan_and_print("random", tensors, many, 2);
  test_free(tensors);
}

static void test_hostile_arguments(void **state) {
  (void)state;
  const gm_plan_tensor good = {.bytes = 64, .first_op = 1, .last_op = 2};
  uint64_t offsets[2], peak;
  gm_error err;
  gm_plan_tensor wrong[6][2];
  for (int i = 0; i < 6; i++) wrong[i][0] = wrong[i][1] = good;
  wrong[0][1].last_op = 0;
  wrong[1][1].align = 3;
  wrong[2][1].align = UINT64_MAX;
  wrong[3][1].bytes = GM_PLAN_MAX_BYTES + 1;
  wrong[4][1].take_over = 2; /* itself */
  wrong[5][1].take_over = UINT64_MAX;
  for (int i = 0; i < 6; i++) {
    assert_int_equal(gm_plan_make(NULL, GM_PLAN_BEST, wrong[i], 2, offsets, &peak, &err), GM_ERR_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "tensor 1"));
    offsets[0] = offsets[1] = 0;
    assert_int_equal(gm_plan_check(NULL, wrong[i], 2, offsets, &peak, &err), GM_ERR_INVALID_ARGUMENT);
    assert_int_equal(gm_plan_peak_live(NULL, wrong[i], 2, &peak, &err), GM_ERR_INVALID_ARGUMENT);
  }
  assert_int_equal(gm_plan_make(NULL, (gm_plan_policy)2, &good, 1, offsets, &peak, &err), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_plan_make(NULL, GM_PLAN_BEST, NULL, 1, offsets, &peak, &err), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_plan_make(NULL, GM_PLAN_BEST, &good, 1, NULL, &peak, &err), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_plan_make(NULL, GM_PLAN_BEST, &good, 1, offsets, NULL, &err), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_plan_make(NULL, GM_PLAN_BEST, &good, UINT64_MAX, offsets, &peak, &err), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_plan_make(NULL, GM_PLAN_BEST, NULL, 0, NULL, &peak, &err), GM_OK);
  assert_int_equal(peak, 0);
}

static void test_sizes_up_to_the_limit(void **state) {
  (void)state;
  const uint64_t half = GM_PLAN_MAX_BYTES / 2;
  gm_plan_tensor tensors[3] = {{.bytes = half}, {.bytes = half}, {.bytes = 1, .first_op = 1, .last_op = 1}};
  uint64_t offsets[3], peak, bound;
  gm_error err;
  for (int policy = GM_PLAN_ENGINE; policy <= GM_PLAN_BEST; policy++) {
    tensors[2].first_op = 1;
    assert_int_equal(gm_plan_make(NULL, (gm_plan_policy)policy, tensors, 3, offsets, &peak, &err), GM_OK);
    assert_int_equal(peak, GM_PLAN_MAX_BYTES);
    assert_int_equal(gm_plan_check(NULL, tensors, 3, offsets, &peak, &err), GM_OK);
    tensors[2].first_op = 0; /* one byte too many lives at once */
    assert_int_equal(gm_plan_make(NULL, (gm_plan_policy)policy, tensors, 3, offsets, &peak, &err),
                     GM_ERR_INVALID_ARGUMENT);
    assert_int_equal(gm_plan_peak_live(NULL, tensors, 3, &bound, &err), GM_ERR_INVALID_ARGUMENT);
  }
  tensors[0].bytes = tensors[1].bytes = tensors[2].bytes = GM_PLAN_MAX_BYTES;
  tensors[0].align = tensors[1].align = GM_PLAN_MAX_BYTES;
  tensors[1].first_op = tensors[1].last_op = 1;
  tensors[2].first_op = tensors[2].last_op = UINT64_MAX;
  assert_int_equal(gm_plan_make(NULL, GM_PLAN_BEST, tensors, 3, offsets, &peak, &err), GM_OK);
  assert_int_equal(peak, GM_PLAN_MAX_BYTES);
}

/* Tensors that the engine cannot plan, because it pads, may still have a plan. */
static void test_best_does_without_padding(void **state) {
  (void)state;
  const uint64_t half = GM_PLAN_MAX_BYTES / 2;
  const gm_plan_tensor tensors[] = {{.bytes = half, .align = half}, {.bytes = half - 1}, {.bytes = 1}};
  uint64_t offsets[3], peak;
  gm_error err;
  assert_int_equal(gm_plan_make(NULL, GM_PLAN_ENGINE, tensors, 3, offsets, &peak, &err), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_plan_make(NULL, GM_PLAN_BEST, tensors, 3, offsets, &peak, &err), GM_OK);
  assert_int_equal(peak, GM_PLAN_MAX_BYTES);
  assert_int_equal(gm_plan_check(NULL, tensors, 3, offsets, &peak, &err), GM_OK);
}

static void test_without_host_memory(void **state) {
  (void)state;
  gm_plan_tensor tensors[MOST];
  uint64_t offsets[MOST], peak, random = 11;
  counted_services host;
  plan_random_tensors(&random, tensors, MOST, 20, 1000);
  counted_services_init(&host);
  assert_int_equal(gm_plan_make(&host.services, GM_PLAN_BEST, tensors, MOST, offsets, &peak, NULL), GM_OK);
  counted_services_check(&host);
  size_t calls = host.calls;
  assert_true(calls > 12);
  for (size_t i = 1; i <= calls; i++) {
    gm_error err = {0};
    counted_services_init(&host);
    host.fail_at = i;
    assert_int_equal(gm_plan_make(&host.services, GM_PLAN_BEST, tensors, MOST, offsets, &peak, &err),
                     GM_ERR_OUT_OF_HOST_MEMORY);
    assert_int_equal(err.status, GM_ERR_OUT_OF_HOST_MEMORY);
    counted_services_check(&host);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_engine_is_the_walk_and_best_is_not_worse),
      cmocka_unit_test(test_small_sets_against_every_order),
      cmocka_unit_test(test_traces_as_lifetimes),
      cmocka_unit_test(test_many_tensors),
      cmocka_unit_test(test_hostile_arguments),
      cmocka_unit_test(test_sizes_up_to_the_limit),
      cmocka_unit_test(test_best_does_without_padding),
      cmocka_unit_test(test_without_host_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

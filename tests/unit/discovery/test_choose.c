/* A card is chosen, opened and asked: cards that tell nothing, tell late, fill up and vanish. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "support/fake_backend.h"
#include "support/pool_bench.h"

static const uint64_t MiB = 1u << 20;

/* The figures that each card tells before it is open, and when it is. */
static struct {
  bool tells[FAKE_DEVICES];        /* before it is open */
  uint64_t room[FAKE_DEVICES];     /* what it says when it is open */
  gm_status figures[FAKE_DEVICES]; /* of an open card's query */
  gm_status opening[FAKE_DEVICES];
  int asked_closed;
} quiet;

static gm_status quiet_figures(void *driver, uint32_t index, void *device, gm_raw_figures *out, gm_error *err) {
  if (device) {
    index = *(uint32_t *)device;
    if (quiet.figures[index]) return fake_answer(quiet.figures[index], "figures", err);
    out->driver = (gm_raw_reply){GM_RAW_OK, 0, fake.total[index], quiet.room[index]};
    return GM_OK;
  }
  quiet.asked_closed++;
  if (quiet.tells[index]) return fake_figures(driver, index, NULL, out, err);
  return fake_answer(GM_ERR_NOT_SUPPORTED, "figures", err); /* only an open card has figures */
}

static gm_status quiet_open(void *driver, uint32_t index, void **out, gm_error *err) {
  if (quiet.opening[index]) return fake_answer(quiet.opening[index], "open", err);
  return fake_device_open(driver, index, out, err);
}

static gm_context *quiet_context(uint32_t count) {
  const gm_context_params params = {.struct_size = sizeof params, .backends = "cpu,fake", .ignore_environment = true};
  gm_backend_ops ops = fake_ops;
  gm_context *ctx = NULL;
  memset(&quiet, 0, sizeof quiet);
  fake_backend_reset();
  fake.device_count = count;
  for (uint32_t i = 0; i < count; i++) {
    fake.total[i] = 1000 * MiB;
    quiet.room[i] = 900 * MiB;
  }
  ops.figures = quiet_figures;
  ops.device_open = quiet_open;
  pool_bench_ok(gm_context_create(&params, &ctx, err));
  pool_bench_ok(gm_backend_register(ctx, &ops, err));
  return ctx;
}

static gm_selection quiet_best(gm_context *ctx) {
  gm_selection best = {.struct_size = sizeof best};
  pool_bench_ok(gm_best_backend(ctx, &best, err));
  return best;
}

/* One card of three tells nothing: it has its place by its estimate, 950 MiB of 1000. */
static void test_one_of_several_cards_tells_nothing(void **state) {
  (void)state;
  gm_device *device = NULL;
  gm_context *ctx = quiet_context(3);
  quiet.tells[0] = quiet.tells[2] = true;
  fake.free_bytes[0] = 960 * MiB, fake.free_bytes[2] = 300 * MiB;
  gm_selection best = quiet_best(ctx);
  assert_int_equal(best.device, 0);
  assert_int_equal(best.free_state, GM_FIGURE_KNOWN);
  fake.free_bytes[0] = 400 * MiB;
  best = quiet_best(ctx);
  assert_string_equal(best.id.backend, "fake");
  assert_int_equal(best.device, 1);
  assert_int_equal(best.free_state, GM_FIGURE_ESTIMATED);
  assert_int_equal(best.free_bytes, 950 * MiB);
  assert_int_equal(fake.opens, 0);
  quiet.room[1] = 0; /* it is full: the next best is taken */
  pool_bench_ok(gm_open_for_bytes(ctx, NULL, 200 * MiB, &device, err));
  assert_int_equal(gm_device_get_info(device)->index, 0);
  assert_int_equal(fake.opens - fake.closes, 1);
  assert_int_equal(gm_device_close(device, NULL), GM_OK);
  assert_int_equal(gm_context_destroy(ctx, NULL), GM_OK);
}

static void test_figures_that_come_and_go(void **state) {
  (void)state;
  gm_device *device = NULL;
  gm_context *ctx = quiet_context(1);
  for (int round = 0; round < 3; round++) {
    quiet.tells[0] = false;
    assert_int_equal(quiet_best(ctx).free_state, GM_FIGURE_ESTIMATED);
    quiet.tells[0] = true;
    gm_selection best = quiet_best(ctx);
    assert_string_equal(best.id.backend, "fake");
    assert_int_equal(best.free_state, GM_FIGURE_KNOWN);
  }
  quiet.tells[0] = false;
  pool_bench_ok(gm_open_for_bytes(ctx, "fake", MiB, &device, err));
  quiet.asked_closed = 0;
  assert_int_equal(quiet_best(ctx).free_bytes, 900 * MiB); /* the open card itself */
  assert_int_equal(quiet.asked_closed, 0);
  quiet.figures[0] = GM_ERR_DRIVER; /* it does not tell now, and works */
  gm_selection best = quiet_best(ctx);
  assert_string_equal(best.id.backend, "fake");
  assert_int_equal(best.free_state, GM_FIGURE_ESTIMATED);
  assert_int_equal(gm_device_close(device, NULL), GM_OK);
  assert_int_equal(gm_context_destroy(ctx, NULL), GM_OK);
}

/* A card that is gone, and one whose figure fell between choosing and opening. */
static void test_cards_that_vanish_between_choosing_and_opening(void **state) {
  (void)state;
  gm_device *device = NULL;
  gm_error why = {.status = GM_OK};
  gm_context *ctx = quiet_context(3);
  quiet.tells[0] = quiet.tells[1] = quiet.tells[2] = true;
  fake.free_bytes[0] = 900 * MiB, fake.free_bytes[1] = 800 * MiB, fake.free_bytes[2] = 700 * MiB;
  quiet.opening[0] = GM_ERR_DEVICE_LOST;
  quiet.room[1] = 10 * MiB;
  pool_bench_ok(gm_open_for_bytes(ctx, "fake", 100 * MiB, &device, err));
  assert_int_equal(gm_device_get_info(device)->index, 2);
  assert_int_equal(gm_device_close(device, NULL), GM_OK);
  device = NULL;
  quiet.opening[2] = GM_ERR_UNAVAILABLE;
  assert_int_equal(gm_open_for_bytes(ctx, "fake", 100 * MiB, &device, &why), GM_ERR_NOT_FOUND);
  assert_non_null(strstr(why.message, "fake 0: cannot be opened: scripted"));
  assert_non_null(strstr(why.message, "fake 1: opened: 100 MiB does not fit"));
  assert_null(device);
  assert_int_equal(fake.opens, fake.closes);
  assert_int_equal(gm_context_destroy(ctx, NULL), GM_OK);
}

/* No host memory is no word on the card: nothing else is opened. */
static void test_no_host_memory_ends_the_choice(void **state) {
  (void)state;
  gm_device *device = NULL;
  gm_context *ctx = quiet_context(2);
  quiet.opening[0] = GM_ERR_OUT_OF_HOST_MEMORY;
  assert_int_equal(gm_open_for_bytes(ctx, "fake", MiB, &device, NULL), GM_ERR_OUT_OF_HOST_MEMORY);
  assert_int_equal(fake.opens, 0);
  assert_int_equal(gm_context_destroy(ctx, NULL), GM_OK);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_one_of_several_cards_tells_nothing),
      cmocka_unit_test(test_figures_that_come_and_go),
      cmocka_unit_test(test_cards_that_vanish_between_choosing_and_opening),
      cmocka_unit_test(test_no_host_memory_ends_the_choice),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

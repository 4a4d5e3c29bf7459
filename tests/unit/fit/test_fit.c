/* Contexts and advice over a made-up model: its figures are simple enough to say by hand what must come out. */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "gm/context.h"
#include "gm/fit.h"
#include "support/random.h"

/* 10 layers of `weights[choice]` bytes with experts of 5 each, and `kv[choice]` bytes of cache for a token. */
enum { LAYERS = 10, CHOICES = 3 };
static const uint64_t weights[CHOICES] = {100, 60, 40}, kv[CHOICES] = {4, 2, 1};
static const char *const kv_names[] = {"f16", "q8_0", "q4_0"}, *const weight_names[] = {"bf16", "q8_0", "q4_k"};

typedef struct model {
  gm_fit_device device;
  gm_fit_layer layers[LAYERS];
  uint64_t host_free_bytes, expert_bytes;
  uint32_t calls;
  gm_status answer;
} model;

static gm_status model_figures(void *user, const gm_fit_setting *setting, gm_fit_request *out, gm_error *err) {
  model *m = user;
  m->calls++;
  if (m->answer != GM_OK) {
    *err = (gm_error){.status = m->answer, .op = "model", .message = "no figures today"};
    return m->answer;
  }
  for (int i = 0; i < LAYERS; i++) {
    m->layers[i] = (gm_fit_layer){.weight_bytes = weights[setting->weight_choice],
                                  .expert_bytes = m->expert_bytes,
                                  .kv_bytes = kv[setting->kv_choice] * setting->context};
  }
  *out = (gm_fit_request){.struct_size = sizeof *out,
                          .devices = &m->device,
                          .device_count = 1,
                          .layers = m->layers,
                          .layer_count = LAYERS,
                          .host_free_bytes = m->host_free_bytes};
  return GM_OK;
}

static gm_fit_source source_of(model *m) {
  return (gm_fit_source){.struct_size = sizeof(gm_fit_source),
                         .figures = model_figures,
                         .user = m,
                         .kv_names = kv_names,
                         .kv_count = CHOICES,
                         .weight_names = weight_names,
                         .weight_count = CHOICES};
}

static gm_fit_setting setting_of(uint64_t context) {
  return (gm_fit_setting){.struct_size = sizeof(gm_fit_setting), .context = context, .all_on_devices = true};
}

/* Each range with a limit of its own against trying one context after the other. */
static void test_the_longest_context(void **state) {
  (void)state;
  uint64_t random = 41;
  for (int i = 0; i < 400; i++) {
    model m = {.device = {.free_bytes = test_random(&random) % 12000}, .host_free_bytes = GM_UNKNOWN_BYTES};
    gm_fit_source source = source_of(&m);
    gm_fit_setting setting = setting_of(7);
    uint64_t least = 1 + test_random(&random) % 50, most = least + test_random(&random) % 400, found = 99, expected = 0;
    uint64_t step = 1 + test_random(&random) % 9;
    setting.kv_choice = (uint32_t)(test_random(&random) % CHOICES);
    for (uint64_t n = least; n <= most; n += step) {
      if (LAYERS * (weights[0] + kv[setting.kv_choice] * n) <= m.device.free_bytes) expected = n;
    }
    assert_int_equal(gm_fit_longest_context(&source, &setting, least, most, step, &found, NULL), GM_OK);
    assert_int_equal(found, expected);
    assert_true(m.calls <= 10);
  }
}

static void test_ranges_of_contexts(void **state) {
  (void)state;
  model m = {.device = {.free_bytes = 2000}, .host_free_bytes = GM_UNKNOWN_BYTES};
  gm_fit_source source = source_of(&m);
  gm_fit_setting setting = setting_of(0);
  uint64_t found = 5;
  gm_error err;
  assert_int_equal(gm_fit_longest_context(&source, &setting, 1, UINT64_C(1) << 40, 1, &found, &err), GM_OK);
  assert_int_equal(found, 25);
  assert_true(m.calls <= 64);
  assert_int_equal(gm_fit_longest_context(&source, &setting, 20, 20, 256, &found, &err), GM_OK);
  assert_int_equal(found, 20);
  assert_int_equal(gm_fit_longest_context(&source, &setting, 0, 20, 1, &found, &err), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_fit_longest_context(&source, &setting, 21, 20, 1, &found, &err), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_fit_longest_context(&source, &setting, 1, 20, 0, &found, &err), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_fit_longest_context(&source, &setting, 1, UINT64_MAX, 1, &found, &err), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_fit_longest_context(&source, &setting, 1, 20, 1, NULL, &err), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(found, 20);
}

/* 100 tokens: 1400 of cache and weights for each layer in f16. */
static void test_every_kind_of_change(void **state) {
  (void)state;
  model m = {.device = {.free_bytes = 3500}, .host_free_bytes = GM_UNKNOWN_BYTES, .expert_bytes = 0};
  gm_fit_source source = source_of(&m);
  gm_fit_setting setting = setting_of(100);
  gm_fit_change changes[GM_FIT_CHANGES];
  uint32_t count = 9;
  assert_int_equal(gm_fit_advise(&source, &setting, 16, 1, changes, &count, NULL), GM_OK);
  assert_int_equal(count, 3);
  assert_string_equal(changes[0].text, "kv cache q8_0 instead of f16"); /* 10 * (100 + 200) */
  assert_int_equal(changes[0].plan.least_headroom_bytes, 500);
  assert_string_equal(changes[1].text, "a context of 62 instead of 100 tokens"); /* 10 * (100 + 248) */
  assert_string_equal(changes[2].text, "7 layers on devices, 3 on the host");
  for (uint32_t i = 0; i < count; i++) {
    gm_fit_plan plan = {.struct_size = sizeof plan};
    assert_true(changes[i].plan.fits && (i == 0 || changes[i].kind > changes[i - 1].kind));
    assert_int_equal(gm_fit_try(&source, &changes[i].setting, NULL, &plan, NULL), GM_OK);
    assert_memory_equal(&plan, &changes[i].plan, sizeof plan);
  }
}

static void test_experts_and_weights(void **state) {
  (void)state;
  model m = {.device = {.free_bytes = 1420}, .host_free_bytes = GM_UNKNOWN_BYTES, .expert_bytes = 50};
  gm_fit_source source = source_of(&m);
  gm_fit_setting setting = setting_of(10);
  gm_fit_change changes[GM_FIT_CHANGES];
  uint32_t count = 0;
  assert_int_equal(gm_fit_advise(&source, &setting, 10, 1, changes, &count, NULL), GM_OK);
  assert_int_equal(count, 3);
  assert_int_equal(changes[0].kind, GM_FIT_EXPERTS_ON_HOST);
  assert_string_equal(changes[0].text, "the experts of 10 layers on the host"); /* 10 * (100 + 40) */
  assert_int_equal(changes[1].kind, GM_FIT_FEWER_LAYERS);
  assert_string_equal(changes[2].text, "weights q4_k instead of bf16"); /* 10 * (40 + 50 + 40); q8_0 is 1500 */
}

static void test_no_advice_where_all_is_well_or_nothing_helps(void **state) {
  (void)state;
  model m = {.device = {.free_bytes = 5000}, .host_free_bytes = 0};
  gm_fit_source source = source_of(&m);
  gm_fit_setting setting = setting_of(100);
  gm_fit_change changes[GM_FIT_CHANGES];
  uint32_t count = 9;
  assert_int_equal(gm_fit_advise(&source, &setting, 16, 1, changes, &count, NULL), GM_OK);
  assert_int_equal(count, 0);
  assert_int_equal(m.calls, 1);
  m.device.free_bytes = 50;
  count = 9;
  assert_int_equal(gm_fit_advise(&source, &setting, 16, 1, changes, &count, NULL), GM_OK);
  assert_int_equal(count, 0);
  source.kv_count = source.weight_count = 0; /* one choice of each, without a name */
  m.device.free_bytes = 3500;
  assert_int_equal(gm_fit_advise(&source, &setting, 16, 1, changes, &count, NULL), GM_OK);
  assert_int_equal(count, 1);
  assert_int_equal(changes[0].kind, GM_FIT_SHORTER_CONTEXT);
}

static void test_failures_come_through(void **state) {
  (void)state;
  model m = {.device = {.free_bytes = 50}, .answer = GM_ERR_IO};
  gm_fit_source source = source_of(&m), wrong = source;
  gm_fit_setting setting = setting_of(100), bad = setting;
  gm_fit_change changes[GM_FIT_CHANGES];
  gm_fit_plan plan = {.struct_size = sizeof plan};
  uint32_t count;
  uint64_t found;
  gm_error err;
  assert_int_equal(gm_fit_try(&source, &setting, NULL, &plan, &err), GM_ERR_IO);
  assert_int_equal(gm_fit_longest_context(&source, &setting, 1, 9, 1, &found, &err), GM_ERR_IO);
  assert_int_equal(gm_fit_advise(&source, &setting, 16, 1, changes, &count, &err), GM_ERR_IO);
  assert_string_equal(err.message, "no figures today");
  m.answer = GM_OK;
  assert_int_equal(gm_fit_try(NULL, &setting, NULL, &plan, &err), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_fit_try(&source, NULL, NULL, &plan, &err), GM_ERR_INVALID_ARGUMENT);
  wrong.struct_size = 1;
  assert_int_equal(gm_fit_try(&wrong, &setting, NULL, &plan, &err), GM_ERR_INVALID_ARGUMENT);
  wrong = source;
  wrong.figures = NULL;
  assert_int_equal(gm_fit_try(&wrong, &setting, NULL, &plan, &err), GM_ERR_INVALID_ARGUMENT);
  bad.kv_choice = CHOICES;
  assert_int_equal(gm_fit_try(&source, &bad, NULL, &plan, &err), GM_ERR_INVALID_ARGUMENT);
  bad = setting;
  bad.weight_choice = CHOICES;
  assert_int_equal(gm_fit_try(&source, &bad, NULL, &plan, &err), GM_ERR_INVALID_ARGUMENT);
  assert_string_equal(err.message, "choices 0 and 3 are not below 3 and 3");
  wrong = source;
  wrong.kv_count = wrong.weight_count = 0; /* one choice of each */
  bad.weight_choice = 1;
  assert_int_equal(gm_fit_try(&wrong, &bad, NULL, &plan, &err), GM_ERR_INVALID_ARGUMENT);
  assert_string_equal(err.message, "choices 0 and 1 are not below 0 and 0");
  for (size_t i = 0; i < sizeof bad.reserved / sizeof *bad.reserved; i++) {
    bad = setting;
    bad.reserved[i] = 1;
    assert_int_equal(gm_fit_try(&source, &bad, NULL, &plan, &err), GM_ERR_INVALID_ARGUMENT);
  }
  bad = setting;
  bad.struct_size = 0;
  assert_int_equal(gm_fit_try(&source, &bad, NULL, &plan, &err), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_fit_advise(&source, &setting, 0, 1, changes, &count, &err), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_fit_advise(&source, &setting, 1, 0, changes, &count, &err), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_fit_advise(&source, &setting, 1, 1, NULL, &count, &err), GM_ERR_INVALID_ARGUMENT);
}

/* The CPU is a device, too. */
static void test_a_real_device(void **state) {
  (void)state;
  gm_context *ctx;
  gm_device *device;
  gm_error err;
  gm_fit_device read = {.margin_bytes = 3, .overhead_bytes = 4};
  assert_int_equal(gm_context_create(NULL, &ctx, &err), GM_OK);
  assert_int_equal(gm_device_open_index(ctx, "cpu", 0, &device, &err), GM_OK);
  assert_int_equal(gm_fit_device_read(device, &read, &err), GM_OK);
  assert_true(read.free_bytes > 0 && read.free_bytes != GM_UNKNOWN_BYTES);
  assert_true(read.margin_bytes == 3 && read.overhead_bytes == 4);
  assert_string_equal(read.name, gm_device_get_info(device)->name);
  assert_int_equal(gm_fit_device_read(device, NULL, &err), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_fit_device_read(NULL, &read, &err), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_device_close(device, &err), GM_OK);
  assert_int_equal(gm_context_destroy(ctx, &err), GM_OK);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_the_longest_context),
      cmocka_unit_test(test_ranges_of_contexts),
      cmocka_unit_test(test_every_kind_of_change),
      cmocka_unit_test(test_experts_and_weights),
      cmocka_unit_test(test_no_advice_where_all_is_well_or_nothing_helps),
      cmocka_unit_test(test_failures_come_through),
      cmocka_unit_test(test_a_real_device),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

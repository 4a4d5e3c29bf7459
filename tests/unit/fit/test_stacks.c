/* Encoder and decoder in one model: compute buffers that llama.cpp 0.5.0 planned for two models are inside the
 * intervals. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "core/model/model.h"
#include "gm/estimate.h"
#include "support/gguf_bytes.h"

typedef struct model_sizes {
  uint64_t width, layers, heads, forward, trained, vocab;
} model_sizes;

/* The small FLAN, and the small model of scripts/check-fit. */
static const model_sizes flan = {512, 8, 6, 1024, 512, 32128}, wide = {1024, 24, 16, 2816, 32768, 8192};

static gm_model *model_of(const model_sizes *sizes) {
  gguf_bytes file;
  gm_model *model = NULL;
  gguf_bytes_begin(&file, 3, 1, 9);
  gguf_bytes_text(&file, "general.architecture", "t5");
  gguf_bytes_u32(&file, "t5.embedding_length", sizes->width);
  gguf_bytes_u32(&file, "t5.block_count", sizes->layers);
  gguf_bytes_u32(&file, "t5.attention.head_count", sizes->heads);
  gguf_bytes_u32(&file, "t5.attention.head_count_kv", sizes->heads);
  gguf_bytes_u32(&file, "t5.attention.key_length", 64);
  gguf_bytes_u32(&file, "t5.attention.value_length", 64);
  gguf_bytes_u32(&file, "t5.feed_forward_length", sizes->forward);
  gguf_bytes_u32(&file, "t5.context_length", sizes->trained);
  gguf_bytes_tensor(&file, "token_embd.weight", 1, 0, 2, sizes->width, sizes->vocab);
  gguf_bytes_data(&file, 32, 0, 0);
  assert_int_equal(gm__model_open_memory(NULL, file.bytes, file.length, "m.gguf", true, &model, NULL), GM_OK);
  gguf_bytes_free(&file);
  return model;
}

static gm_memory_estimate estimate_of(const model_sizes *sizes, gm_estimate_settings settings) {
  gm_model *model = model_of(sizes);
  gm_model_config config = {.struct_size = sizeof config};
  gm_memory_estimate out = {.struct_size = sizeof out};
  gm_error err = {.status = GM_OK};
  settings.struct_size = sizeof settings;
  if (gm_model_read_config(model, &config, &err)) fail_msg("%s", err.message);
  if (gm_estimate_memory(NULL, &config, model, &settings, &out, &err)) fail_msg("%s", err.message);
  gm_model_close(model);
  return out;
}

static void inside(const char *what, uint64_t engine, const gm_memory_range *range, int run) {
  if (engine >= range->low && engine <= range->high) return;
  fail_msg("run %d, %s: %" PRIu64 " is not in %" PRIu64 " to %" PRIu64, run, what, engine, range->low, range->high);
}

typedef struct measured_run {
  const model_sizes *model;
  uint64_t context, batch;
  bool plain, on_host, is_q8;
  uint64_t host, device;
} measured_run;

/* The engine's own planner measured them; flan's are in tests/data/fit, the others come from scripts/check-fit. */
static const measured_run runs[] = {
    {&flan, 512, 512, true, false, false, 7872512, 71565312},
    {&flan, 4096, 128, false, false, false, 4852736, 60623360},
    {&flan, 4096, 2048, false, false, true, 61947904, 907091968},
    {&flan, 131072, 512, false, false, false, 406335488, 7218669568},
    {&flan, 32768, 512, true, false, false, 139993088, 1818499072},
    {&flan, 512, 512, true, true, false, 72615936, 0},
    {&flan, 4096, 128, false, true, false, 46205952, 0},
    {&flan, 131072, 512, false, true, false, 5340672000, 0},
    {&flan, 32768, 512, true, true, false, 1349787648, 0},
    {&wide, 4096, 512, false, false, false, 184561664, 790636544},
    {&wide, 4096, 512, true, false, false, 226500608, 1893734400},
    {&wide, 8192, 512, false, false, false, 197144576, 1407199232},
    {&wide, 4096, 512, false, false, true, 184594432, 788834304},
    {&wide, 16384, 256, true, false, false, 205524992, 1529875456},
};

/* An interval that holds everything would pass, too: it goes to either side by less than a third of its middle. */
static void measured_buffers_are_inside(void **state) {
  (void)state;
  for (int i = 0; i < (int)(sizeof runs / sizeof *runs); i++) {
    const measured_run *run = &runs[i];
    const gm_dtype type = run->is_q8 ? GM_DTYPE_Q8_0 : GM_DTYPE_F16;
    const gm_memory_estimate out =
        estimate_of(run->model, (gm_estimate_settings){
                                    .place = run->on_host ? GM_ESTIMATE_HOST : GM_ESTIMATE_DEVICE,
                                    .context = run->context,
                                    .batch = run->batch,
                                    .micro_batch = run->batch,
                                    .key_type = type,
                                    .value_type = type,
                                    .plain_attention = run->plain,
                                });
    const gm_estimate_part *compute = &out.parts[GM_ESTIMATE_COMPUTE];
    assert_int_equal(compute->standing, GM_STANDING_INTERVAL);
    inside("host", run->host, &out.host_compute, i);
    inside("device", run->device, &out.device_compute, i);
    const double width = (double)(compute->range.high - compute->range.low);
    if (width > 0.6 * (double)compute->range.bytes) fail_msg("run %d: the interval is too wide", i);
  }
}

/* No run with layers in both places, with the cache on the host, or of a model without a length was measured. */
static void other_runs_are_unknown(void **state) {
  (void)state;
  model_sizes endless = flan;
  endless.trained = 0;
  const gm_estimate_settings split = {.place = GM_ESTIMATE_SPLIT, .device_layers = 4}, on_host = {.kv_on_host = true};
  const gm_memory_estimate out[] = {estimate_of(&flan, split), estimate_of(&flan, on_host),
                                    estimate_of(&endless, (gm_estimate_settings){.context = 512})};
  for (size_t i = 0; i < sizeof out / sizeof *out; i++) {
    assert_int_equal(out[i].parts[GM_ESTIMATE_COMPUTE].standing, GM_STANDING_UNKNOWN);
    assert_true(out[i].parts[GM_ESTIMATE_COMPUTE].reason[0]);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(measured_buffers_are_inside),
                                     cmocka_unit_test(other_runs_are_unknown)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

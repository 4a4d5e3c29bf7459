/* Estimates: known numbers, rounding of settings, refusals, and what hostile dimensions do. Figures against
 * measurements are gm_fit_cases'. */
#include "gm/estimate.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/fail_each.h"

static const gm_model_dims mistral = {
    .hidden = 4096, .intermediate = 14336, .layers = 32, .vocab = 32000, .heads = 32, .kv_heads = 8};

static gm_model_config mistral_config(void) {
  return (gm_model_config){.struct_size = sizeof(gm_model_config),
                           .architecture = "llama",
                           .hidden = 4096,
                           .layers = 32,
                           .vocab = 32000,
                           .context = 32768,
                           .kind_count = 1,
                           .kinds = {{.flags = GM_LAYER_ATTENDS,
                                      .heads = 32,
                                      .kv_heads = 8,
                                      .key_size = 128,
                                      .value_size = 128,
                                      .intermediate = 14336}}};
}

static gm_status estimate(const gm_model_config *config, const gm_estimate_settings *settings, gm_memory_estimate *out,
                          gm_error *err) {
  *out = (gm_memory_estimate){.struct_size = sizeof *out};
  return gm_estimate_memory(NULL, config, NULL, settings, out, err);
}

static gm_estimate_settings plain_settings(void) {
  return (gm_estimate_settings){.struct_size = sizeof(gm_estimate_settings)};
}

static void the_documents_numbers(void **state) {
  (void)state;
  assert_int_equal(gm_estimate_parameters(&mistral), UINT64_C(7241732096));
  assert_int_equal(gm_estimate_model_memory(&mistral, 4), UINT64_C(28966928384));
  assert_int_equal(gm_estimate_model_memory(&mistral, 2), UINT64_C(14483464192));
  assert_int_equal(gm_estimate_kv_cache_memory(32, 8, 128, 4096, 4), UINT64_C(1073741824));
  assert_int_equal(gm_estimate_kv_cache_memory(32, 8, 128, 4096, 2), UINT64_C(536870912));
  gm_inference_memory all = gm_estimate_inference_memory(&mistral, 4096, 2);
  assert_int_equal(all.model_bytes, UINT64_C(14483464192));
  assert_int_equal(all.kv_cache_bytes, UINT64_C(536870912));
  assert_int_equal(all.activation_bytes, UINT64_C(109051904)); /* as measured of Mistral 7B in f16 at 512 tokens: S */
  assert_int_equal(all.total_bytes, all.model_bytes + all.kv_cache_bytes + all.activation_bytes);
}

static void plain_dimensions_stop_at_the_largest_number(void **state) {
  (void)state;
  gm_model_dims huge = {.hidden = UINT64_MAX, .intermediate = 3, .layers = 9, .vocab = 8, .heads = 1};
  assert_int_equal(gm_estimate_parameters(&huge), UINT64_MAX);
  assert_int_equal(gm_estimate_model_memory(&huge, 2), UINT64_MAX);
  assert_int_equal(gm_estimate_kv_cache_memory(UINT64_MAX, 2, 2, 2, 2), UINT64_MAX);
  assert_int_equal(gm_estimate_inference_memory(&huge, 4096, 2).total_bytes, UINT64_MAX);
  huge.heads = 0;
  assert_int_equal(gm_estimate_parameters(&huge), 0);
  assert_int_equal(gm_estimate_parameters(NULL), 0);
  assert_int_equal(gm_estimate_inference_memory(NULL, 1, 1).total_bytes, 0);
  assert_int_equal(gm_estimate_inference_memory(&mistral, 0, 2).activation_bytes, 0);
}

static void the_same_from_a_config(void **state) {
  (void)state;
  gm_model_config config = mistral_config();
  gm_memory_estimate out;
  assert_int_equal(estimate(&config, NULL, &out, NULL), GM_OK);
  assert_int_equal(out.parameters, UINT64_C(7241732096));
  assert_int_equal(out.host_weights + out.device_weights, UINT64_C(14483464192));
  assert_false(out.weights_exact);
  assert_int_equal(out.method, GM_ESTIMATE_INTERVAL);
  assert_int_equal(out.context, 4096);
  assert_int_equal(out.device_kv, UINT64_C(536870912));
  assert_int_equal(out.host_kv, 0);
  assert_int_equal(out.output, 4 * 32000);
  assert_true(out.total.low <= out.total.bytes && out.total.bytes <= out.total.high);
}

/* An embedding that is the output matrix, too, is one matrix of the model. The device has a copy of it. */
static void a_tied_embedding_counts_once(void **state) {
  (void)state;
  const uint64_t matrix = UINT64_C(2) * 32000 * 4096;
  gm_model_config config = mistral_config();
  gm_estimate_settings settings = plain_settings();
  gm_memory_estimate two, tied;
  assert_int_equal(estimate(&config, NULL, &two, NULL), GM_OK);
  assert_int_equal(two.tied_weights, 0);
  config.tied_embeddings = true;
  assert_int_equal(estimate(&config, NULL, &tied, NULL), GM_OK);
  assert_int_equal(tied.tied_weights, matrix);
  assert_int_equal(tied.device_weights, two.device_weights);
  assert_int_equal(tied.parameters * 2, tied.host_weights + tied.device_weights - matrix);
  settings.place = GM_ESTIMATE_HOST;
  assert_int_equal(estimate(&config, &settings, &tied, NULL), GM_OK);
  assert_int_equal(tied.tied_weights, 0);
  assert_int_equal(tied.parameters * 2, tied.host_weights);
}

static void context_is_rounded_as_the_engine_does(void **state) {
  (void)state;
  gm_model_config config = mistral_config();
  gm_estimate_settings settings = plain_settings();
  gm_memory_estimate out;
  settings.context = 1000;
  assert_int_equal(estimate(&config, &settings, &out, NULL), GM_OK);
  assert_int_equal(out.cells, 1024);
  settings.context = 512;
  settings.sequences = 4;
  settings.separate_sequences = true;
  assert_int_equal(estimate(&config, &settings, &out, NULL), GM_OK);
  assert_int_equal(out.cells, 256);
  assert_int_equal(out.streams, 4);
  assert_int_equal(out.context, 1024);
}

static void windows_keep_fewer_cells(void **state) {
  (void)state;
  gm_model_config config = mistral_config();
  gm_estimate_settings settings = plain_settings();
  gm_memory_estimate full, windows, out;
  settings.context = 32768;
  config.kind_count = 2;
  config.kinds[1] = config.kinds[0];
  config.kinds[1].window = 1024;
  for (int i = 0; i < 32; i++) config.kind_of[i] = i % 6 != 5;
  assert_int_equal(estimate(&config, &settings, &full, NULL), GM_OK);
  assert_int_equal(full.window_cells, 0); /* the engine ignores it for this architecture */
  memcpy(config.architecture, "gemma3", sizeof "gemma3");
  assert_int_equal(estimate(&config, &settings, &windows, NULL), GM_OK);
  assert_int_equal(windows.window_cells, 1536);
  assert_true(windows.device_kv < full.device_kv);
  settings.full_windows = true;
  assert_int_equal(estimate(&config, &settings, &out, NULL), GM_OK);
  assert_int_equal(out.device_kv, full.device_kv);
}

static void layers_on_the_host_take_their_cache_along(void **state) {
  (void)state;
  gm_model_config config = mistral_config();
  gm_estimate_settings settings = plain_settings();
  gm_memory_estimate all, half, none;
  assert_int_equal(estimate(&config, &settings, &all, NULL), GM_OK);
  settings.place = GM_ESTIMATE_SPLIT;
  settings.device_layers = 17; /* the output matrix and 16 layers */
  assert_int_equal(estimate(&config, &settings, &half, NULL), GM_OK);
  assert_int_equal(half.device_kv, all.device_kv / 2);
  assert_int_equal(half.host_kv, all.device_kv / 2);
  assert_int_equal(half.method, GM_ESTIMATE_FORMULA);
  settings.device_layers = 0;
  assert_int_equal(estimate(&config, &settings, &none, NULL), GM_OK);
  assert_int_equal(none.device_weights, 0);
  assert_int_equal(none.device_kv, 0);
}

static void an_unknown_architecture_gets_an_interval(void **state) {
  (void)state;
  gm_model_config config = mistral_config();
  gm_memory_estimate known, unknown;
  assert_int_equal(estimate(&config, NULL, &known, NULL), GM_OK);
  memcpy(config.architecture, "novel", sizeof "novel");
  assert_int_equal(estimate(&config, NULL, &unknown, NULL), GM_OK);
  assert_int_equal(unknown.method, GM_ESTIMATE_INTERVAL);
  assert_true(known.device_kv > 0 && unknown.device_kv == 0);
  assert_true(unknown.total.low < known.total.low && unknown.total.high > known.total.high);
}

static void what_the_engine_refuses(void **state) {
  (void)state;
  gm_model_config config = mistral_config();
  gm_estimate_settings settings = plain_settings();
  gm_memory_estimate out;
  gm_error err;
  config.kinds[0].key_size = 80;
  settings.key_type = GM_DTYPE_Q8_0;
  assert_int_equal(estimate(&config, &settings, &out, &err), GM_ERR_NOT_SUPPORTED);
  assert_non_null(strstr(err.message, "80"));
}

static void bad_arguments_are_named(void **state) {
  (void)state;
  gm_model_config config = mistral_config();
  gm_estimate_settings settings = plain_settings();
  gm_memory_estimate out = {.struct_size = sizeof out};
  gm_error err;
  assert_int_equal(gm_estimate_memory(NULL, NULL, NULL, NULL, &out, &err), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_estimate_memory(NULL, &config, NULL, NULL, NULL, &err), GM_ERR_INVALID_ARGUMENT);
  settings.struct_size = 1;
  assert_int_equal(estimate(&config, &settings, &out, &err), GM_ERR_INVALID_ARGUMENT);
  settings = plain_settings();
  settings.place = (gm_estimate_place)7;
  assert_int_equal(estimate(&config, &settings, &out, &err), GM_ERR_INVALID_ARGUMENT);
  settings = plain_settings();
  settings.weight_type = (gm_dtype)9999;
  assert_int_equal(estimate(&config, &settings, &out, &err), GM_ERR_INVALID_ARGUMENT);
  settings = plain_settings();
  settings.value_type = (gm_dtype)9999;
  assert_int_equal(estimate(&config, &settings, &out, &err), GM_ERR_INVALID_ARGUMENT);
  settings = plain_settings();
  settings.context = UINT64_MAX;
  assert_int_equal(estimate(&config, &settings, &out, &err), GM_ERR_INVALID_ARGUMENT);
  assert_non_null(strstr(err.message, "`context`"));
  config.layers = 0;
  assert_int_equal(estimate(&config, NULL, &out, &err), GM_ERR_INVALID_ARGUMENT);
  assert_non_null(strstr(err.message, "`layers`"));
  config.layers = 32;
  config.kind_count = 0;
  assert_int_equal(estimate(&config, NULL, &out, &err), GM_ERR_INVALID_ARGUMENT);
  assert_non_null(strstr(err.message, "`kind_count` must be 1 to 48, is 0"));
  config.kind_count = GM_LAYER_KINDS_MAX + 1;
  assert_int_equal(estimate(&config, NULL, &out, &err), GM_ERR_INVALID_ARGUMENT);
  config.kind_count = 2;
  config.kind_of[31] = 2;
  assert_int_equal(estimate(&config, NULL, &out, &err), GM_ERR_INVALID_ARGUMENT);
  assert_non_null(strstr(err.message, "`kind_of[31]` must be below `kind_count`, 2, is 2"));
  config.kind_of[31] = 1;
  config.kinds[1] = config.kinds[0];
  config.kinds[1].heads = 0;
  assert_int_equal(estimate(&config, NULL, &out, &err), GM_ERR_INVALID_ARGUMENT);
  assert_non_null(strstr(err.message, "`kinds[1].heads` must be 1 to 4096, is 0"));
  memset(config.architecture, 'a', sizeof config.architecture);
  assert_int_equal(estimate(&config, NULL, &out, &err), GM_ERR_INVALID_ARGUMENT);
}

/* The largest dimensions that are let in, with everything that makes a product larger. */
static void the_largest_dimensions_do_not_wrap(void **state) {
  (void)state;
  static const char *const names[] = {"llama", "gemma3", "gpt2", "falcon", "novel"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    gm_model_config config = {
        .struct_size = sizeof config, .hidden = 1u << 20, .layers = 60, .vocab = 1u << 26, .kind_count = 1};
    config.kinds[0] = (gm_layer_kind){.flags = GM_LAYER_ATTENDS | GM_LAYER_EXPERTS,
                                      .heads = 4096,
                                      .kv_heads = 4096,
                                      .key_size = 1u << 16,
                                      .value_size = 1u << 16,
                                      .experts = 1u << 16,
                                      .experts_used = 1u << 10,
                                      .window = 1u << 28,
                                      .intermediate = 1u << 24,
                                      .expert_intermediate = 1u << 24,
                                      .shared_intermediate = 1u << 26};
    gm_estimate_settings settings = plain_settings();
    gm_memory_estimate out;
    memcpy(config.architecture, names[i], strlen(names[i]) + 1);
    settings.context = 1u << 28;
    settings.batch = settings.micro_batch = 1u << 18;
    settings.sequences = 4096;
    settings.plain_attention = true;
    assert_int_equal(estimate(&config, &settings, &out, NULL), GM_OK);
    assert_true(out.total.low <= out.total.bytes && out.total.bytes <= out.total.high);
    assert_true(out.total.high > UINT64_C(1) << 60);
    settings.place = GM_ESTIMATE_SPLIT; /* no layer on the device, but copies of one of them */
    settings.weight_type = GM_DTYPE_F32;
    assert_int_equal(estimate(&config, &settings, &out, NULL), GM_OK);
    assert_true(out.total.low <= out.total.bytes && out.total.bytes <= out.total.high);
    assert_true(out.device_compute.low <= out.device_compute.bytes);
    assert_true(out.device_compute.bytes <= out.device_compute.high);
  }
}

static void a_recurrent_model_is_counted(void **state) {
  (void)state;
  gm_model_config config = {.struct_size = sizeof config,
                            .architecture = "mamba",
                            .hidden = 768,
                            .layers = 24,
                            .vocab = 50280,
                            .tied_embeddings = true,
                            .kind_count = 1};
  config.kinds[0] = (gm_layer_kind){.flags = GM_LAYER_RECURRENT,
                                    .conv_kernel = 4,
                                    .state_size = 16,
                                    .inner_size = 1536,
                                    .conv_elements = 3 * 1536,
                                    .state_elements = 16 * 1536};
  gm_memory_estimate out;
  assert_int_equal(estimate(&config, NULL, &out, NULL), GM_OK);
  assert_int_equal(out.parameters, 129135360); /* as published */
  assert_int_equal(out.device_kv, 24 * 4 * 1536 * (3 + 16));
}

static void layers_sum_up_to_the_whole(void **state) {
  (void)state;
  gm_model_config config = mistral_config();
  gm_memory_estimate all;
  gm_fit_layer layers[33];
  gm_fit_request request = {.struct_size = sizeof request};
  assert_int_equal(estimate(&config, NULL, &all, NULL), GM_OK);
  assert_int_equal(gm_estimate_layers(NULL, &config, NULL, NULL, layers, 33, &request, NULL), GM_OK);
  assert_int_equal(request.layer_count, 33);
  assert_ptr_equal(request.layers, layers);
  uint64_t weights = 0, kv = 0;
  for (size_t i = 0; i < 33; i++) {
    weights += layers[i].weight_bytes + layers[i].expert_bytes;
    kv += layers[i].kv_bytes;
  }
  assert_int_equal(weights, all.device_weights);
  assert_int_equal(kv, all.device_kv);
  assert_int_equal(layers[32].compute_bytes, all.device_compute.bytes);
  assert_int_equal(request.host_fixed_bytes, all.host_weights + all.host_compute.bytes + all.output);
}

static void layers_need_room(void **state) {
  (void)state;
  gm_model_config config = mistral_config();
  gm_fit_layer layers[32];
  gm_fit_request request = {.struct_size = sizeof request};
  gm_error err;
  assert_int_equal(gm_estimate_layers(NULL, &config, NULL, NULL, layers, 32, &request, &err), GM_ERR_INVALID_ARGUMENT);
  assert_non_null(strstr(err.message, "32"));
  assert_int_equal(gm_estimate_layers(NULL, &config, NULL, NULL, NULL, 32, &request, &err), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_estimate_layers(NULL, &config, NULL, NULL, layers, 32, NULL, &err), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_estimate_layers(NULL, NULL, NULL, NULL, layers, 32, &request, &err), GM_ERR_INVALID_ARGUMENT);
  volatile size_t bytes = sizeof(uint32_t);  /* which the compiler is not to know: it warns of what is behind */
  gm_estimate_settings *old = malloc(bytes); /* not a byte behind it is read */
  assert_non_null(old);
  old->struct_size = sizeof old->struct_size;
  assert_int_equal(gm_estimate_layers(NULL, &config, NULL, old, layers, 32, &request, &err), GM_ERR_INVALID_ARGUMENT);
  free(old);
}

/* Compressed attention narrower than DeepSeek's rotated part: no width is below nothing. */
static void a_narrow_compressed_cache_does_not_wrap(void **state) {
  (void)state;
  gm_model_config config = mistral_config();
  snprintf(config.architecture, sizeof config.architecture, "deepseek2");
  gm_layer_kind *kind = &config.kinds[0];
  *kind = (gm_layer_kind){.flags = GM_LAYER_ATTENDS | GM_LAYER_COMPRESSED,
                          .heads = 1024,
                          .kv_heads = 1,
                          .key_size = 16,
                          .query_size = 4,
                          .result_size = 4,
                          .intermediate = 14336};
  gm_memory_estimate out = {.struct_size = sizeof out};
  assert_int_equal(gm_estimate_memory(NULL, &config, NULL, NULL, &out, NULL), GM_OK);
  assert_in_range(out.device_compute.bytes, UINT64_C(1) << 20, UINT64_C(1) << 36);
  kind->key_size = 1 + (1 << 16);
  kind->rotated_size = 1 << 16;
  assert_int_equal(gm_estimate_memory(NULL, &config, NULL, NULL, &out, NULL), GM_OK);
  assert_in_range(out.device_compute.bytes, UINT64_C(1) << 20, UINT64_C(1) << 40);
}

static gm_status attempt(const gm_services *services) {
  const gm_model_config config = mistral_config();
  gm_memory_estimate out = {.struct_size = sizeof out};
  return gm_estimate_memory(services, &config, NULL, NULL, &out, NULL);
}

/* Its operations have no room at first: both lists of them grow. */
static void host_memory_may_run_out_anywhere(void **state) {
  (void)state;
  fail_each_allocation(attempt, 4);
}

/* Operations that only add up what experts give are one, however many they are: a file may say 1024 of 512 layers. */
static void experts_do_not_add_operations(void **state) {
  (void)state;
  size_t peak[2] = {0};
  for (int many = 0; many < 2; many++) {
    gm_model_config config = mistral_config();
    gm_memory_estimate out = {.struct_size = sizeof out};
    counted_services host;
    counted_services_init(&host);
    config.layers = GM_MODEL_LAYERS_MAX;
    config.kinds[0].flags |= GM_LAYER_EXPERTS;
    config.kinds[0].experts = 1024;
    config.kinds[0].experts_used = many ? 1024 : 3;
    config.kinds[0].expert_intermediate = 64;
    assert_int_equal(gm_estimate_memory(&host.services, &config, NULL, NULL, &out, NULL), GM_OK);
    assert_true(out.device_compute.bytes > 0);
    peak[many] = host.peak_bytes;
  }
  assert_int_equal(peak[1], peak[0]);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_documents_numbers),
      cmocka_unit_test(plain_dimensions_stop_at_the_largest_number),
      cmocka_unit_test(the_same_from_a_config),
      cmocka_unit_test(a_tied_embedding_counts_once),
      cmocka_unit_test(context_is_rounded_as_the_engine_does),
      cmocka_unit_test(windows_keep_fewer_cells),
      cmocka_unit_test(layers_on_the_host_take_their_cache_along),
      cmocka_unit_test(an_unknown_architecture_gets_an_interval),
      cmocka_unit_test(what_the_engine_refuses),
      cmocka_unit_test(bad_arguments_are_named),
      cmocka_unit_test(the_largest_dimensions_do_not_wrap),
      cmocka_unit_test(a_recurrent_model_is_counted),
      cmocka_unit_test(layers_sum_up_to_the_whole),
      cmocka_unit_test(layers_need_room),
      cmocka_unit_test(a_narrow_compressed_cache_does_not_wrap),
      cmocka_unit_test(host_memory_may_run_out_anywhere),
      cmocka_unit_test(experts_do_not_add_operations),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

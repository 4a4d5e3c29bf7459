/* How far each part of an estimate can be trusted, and why. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "core/model/model.h"
#include "gm/estimate.h"
#include "support/gguf_bytes.h"

enum { HIDDEN = 64, VOCAB = 96 };

/* A file of `architecture` with two layers, one embedding, a projection of queries and no output matrix. */
static gm_model *model_of(const char *architecture, const char *key) {
  gguf_bytes file;
  gm_model *model = NULL;
  char name[96];
  static const char *const keys[] = {"embedding_length", "block_count", "attention.head_count", "feed_forward_length"};
  static const uint64_t values[] = {HIDDEN, 2, 4, 128};
  gguf_bytes_begin(&file, 3, 2, key ? 6 : 5);
  gguf_bytes_text(&file, "general.architecture", architecture);
  for (int i = 0; i < 4; i++) {
    snprintf(name, sizeof name, "%s.%s", architecture, keys[i]);
    gguf_bytes_u32(&file, name, values[i]);
  }
  snprintf(name, sizeof name, "%s.%s", architecture, key ? key : "");
  if (key) gguf_bytes_u32(&file, name, 1);
  gguf_bytes_tensor(&file, "token_embd.weight", 0, 0, 2, (uint64_t)HIDDEN, (uint64_t)VOCAB);
  gguf_bytes_tensor(&file, "blk.0.attn_q.weight", 0, UINT64_C(4) * HIDDEN * VOCAB, 2, (uint64_t)HIDDEN,
                    (uint64_t)HIDDEN);
  gguf_bytes_data(&file, 32, UINT64_C(4) * HIDDEN * (VOCAB + HIDDEN), 0);
  assert_int_equal(gm__model_open_memory(NULL, file.bytes, file.length, "m.gguf", true, &model, NULL), GM_OK);
  gguf_bytes_free(&file);
  return model;
}

static gm_memory_estimate estimate_of(const char *architecture, const char *key, bool from_tensors,
                                      const gm_estimate_settings *settings) {
  gm_model *model = model_of(architecture, key);
  gm_model_config config = {.struct_size = sizeof config};
  gm_memory_estimate out = {.struct_size = sizeof out};
  gm_error err = {.status = GM_OK};
  if (gm_model_read_config(model, &config, &err)) fail_msg("%s", err.message);
  if (gm_estimate_memory(NULL, &config, from_tensors ? model : NULL, settings, &out, &err)) fail_msg("%s", err.message);
  gm_model_close(model);
  return out;
}

static void check_no_figure(const gm_memory_range *range) {
  assert_true(range->bytes == 0 && range->low == 0 && range->high == UINT64_MAX);
}

static void check_part(const gm_memory_estimate *estimate, gm_estimate_part_kind which, gm_standing wanted) {
  const gm_estimate_part *part = &estimate->parts[which];
  assert_int_equal(part->standing, wanted);
  assert_true(part->range.low <= part->range.bytes && part->range.bytes <= part->range.high);
  assert_int_equal(part->reason[0] == '\0', wanted == GM_STANDING_EXACT);
  if (wanted == GM_STANDING_EXACT) assert_int_equal(part->range.low, part->range.high);
  if (wanted == GM_STANDING_UNKNOWN) check_no_figure(&part->range);
}

static void all_is_exact(void **state) {
  (void)state;
  const gm_memory_estimate out = estimate_of("llama", NULL, true, NULL);
  assert_int_equal(out.standing, GM_STANDING_EXACT);
  uint64_t sum = 0;
  for (int i = 0; i < GM_ESTIMATE_PARTS; i++) {
    check_part(&out, (gm_estimate_part_kind)i, GM_STANDING_EXACT);
    sum += out.parts[i].range.bytes;
  }
  assert_int_equal(sum, out.total.bytes);
  assert_int_equal(out.parts[GM_ESTIMATE_CACHE].range.bytes, out.device_kv);
  assert_int_equal(out.parts[GM_ESTIMATE_STATE].range.bytes, 0);
}

static void weights_from_dimensions_are_an_interval(void **state) {
  (void)state;
  const gm_memory_estimate assumed = estimate_of("llama", NULL, false, NULL);
  check_part(&assumed, GM_ESTIMATE_WEIGHTS, GM_STANDING_INTERVAL);
  assert_non_null(strstr(assumed.parts[GM_ESTIMATE_WEIGHTS].reason, "f16"));
  check_part(&assumed, GM_ESTIMATE_CACHE, GM_STANDING_EXACT);
  assert_int_equal(assumed.standing, GM_STANDING_INTERVAL);
  const gm_estimate_settings asked = {.struct_size = sizeof asked, .weight_type = GM_DTYPE_Q8_0};
  const gm_memory_estimate told = estimate_of("llama", NULL, false, &asked);
  assert_null(strstr(told.parts[GM_ESTIMATE_WEIGHTS].reason, "f16"));
}

static void compute_partly_on_the_host_is_an_interval(void **state) {
  (void)state;
  const gm_estimate_settings split = {.struct_size = sizeof split, .place = GM_ESTIMATE_SPLIT, .device_layers = 1};
  const gm_memory_estimate out = estimate_of("llama", NULL, true, &split);
  check_part(&out, GM_ESTIMATE_COMPUTE, GM_STANDING_INTERVAL);
  check_part(&out, GM_ESTIMATE_WEIGHTS, GM_STANDING_EXACT);
}

static void operations_that_are_not_known(void **state) {
  (void)state;
  const gm_memory_estimate out = estimate_of("bert", NULL, true, NULL);
  check_part(&out, GM_ESTIMATE_COMPUTE, GM_STANDING_INTERVAL);
  check_part(&out, GM_ESTIMATE_CACHE, GM_STANDING_EXACT);
  assert_int_equal(out.parts[GM_ESTIMATE_CACHE].range.bytes, 0);
}

/* An architecture, and a key: nothing that layers keep is known then. The tensors are. */
static void what_gm_does_not_know(void **state) {
  (void)state;
  static const char *const rows[][2] = {{"brand_new", NULL}, {"llama", "ssm.brand_new"}, {"deepseek4", NULL}};
  for (int i = 0; i < 3; i++) {
    const gm_memory_estimate out = estimate_of(rows[i][0], rows[i][1], true, NULL);
    assert_int_equal(out.standing, GM_STANDING_UNKNOWN);
    check_part(&out, GM_ESTIMATE_CACHE, GM_STANDING_UNKNOWN);
    check_part(&out, GM_ESTIMATE_STATE, GM_STANDING_UNKNOWN);
    check_part(&out, GM_ESTIMATE_COMPUTE, GM_STANDING_UNKNOWN);
    check_part(&out, GM_ESTIMATE_WEIGHTS, GM_STANDING_INTERVAL);
    const gm_memory_range *weights = &out.parts[GM_ESTIMATE_WEIGHTS].range;
    assert_int_equal(out.total.bytes, weights->bytes);
    assert_int_equal(out.total.low, weights->low);
    assert_int_equal(out.total.high, UINT64_MAX);
    assert_int_equal(weights->high - weights->low, out.tied_weights);
    const gm_memory_estimate counted = estimate_of(rows[i][0], rows[i][1], false, NULL);
    check_part(&counted, GM_ESTIMATE_WEIGHTS, GM_STANDING_UNKNOWN);
  }
}

/* Where measured buffers were several times what the formula says, compute alone is unknown. */
static void buffers_without_a_bound(void **state) {
  (void)state;
  const gm_estimate_settings split = {.struct_size = sizeof split, .place = GM_ESTIMATE_SPLIT, .device_layers = 1};
  const gm_memory_estimate out = estimate_of("t5", NULL, true, &split);
  check_part(&out, GM_ESTIMATE_COMPUTE, GM_STANDING_UNKNOWN);
  check_part(&out, GM_ESTIMATE_CACHE, GM_STANDING_EXACT);
  check_part(&out, GM_ESTIMATE_WEIGHTS, GM_STANDING_EXACT);
  check_no_figure(&out.device_compute);
  assert_int_equal(out.total.bytes, out.host_weights + out.device_weights + out.host_kv + out.device_kv);
}

/* A plan of what is known never fits, and takes at least what it says. */
static void check_plan(const gm_fit_layer *layers, const gm_fit_request *figures, uint64_t weights) {
  const gm_fit_device device = {.free_bytes = UINT64_C(1) << 40};
  gm_fit_request request = *figures;
  gm_fit_part part;
  gm_fit_plan plan = {.struct_size = sizeof plan};
  assert_int_equal(request.standing, GM_STANDING_UNKNOWN);
  for (uint32_t i = 0; i < request.layer_count; i++) {
    assert_true(layers[i].kv_bytes == 0 && layers[i].compute_bytes == 0 && request.partial_bytes == 0);
  }
  request.devices = &device;
  request.device_count = 1;
  request.host_free_bytes = GM_UNKNOWN_BYTES;
  assert_int_equal(gm_place_layers(NULL, &request, &part, &plan, NULL), GM_OK);
  assert_true(!plan.fits && plan.standing == GM_STANDING_UNKNOWN && strstr(plan.reason, "unknown"));
  assert_true(part.kv_bytes == 0 && part.compute_bytes == 0 && part.bytes == part.weight_bytes);
  assert_int_equal(part.weight_bytes, weights);
  request.standing = GM_STANDING_EXACT;
  assert_int_equal(gm_place_layers(NULL, &request, &part, &plan, NULL), GM_OK);
  assert_true(plan.fits && plan.standing == GM_STANDING_EXACT && plan.reason[0] == '\0');
}

/* No member of a public struct has a number of what nobody knows, with the tensors and from dimensions. */
static void no_figure_of_what_is_unknown(void **state) {
  (void)state;
  for (int with_tensors = 0; with_tensors < 2; with_tensors++) {
    gm_model *model = model_of("deepseek4", NULL), *asked = with_tensors ? model : NULL;
    gm_model_config config = {.struct_size = sizeof config};
    gm_memory_estimate out = {.struct_size = sizeof out};
    gm_fit_layer layers[3];
    gm_fit_request request = {.struct_size = sizeof request};
    assert_int_equal(gm_model_read_config(model, &config, NULL), GM_OK);
    assert_int_equal(gm_estimate_memory(NULL, &config, asked, NULL, &out, NULL), GM_OK);
    assert_true(out.host_kv == 0 && out.device_kv == 0);
    check_no_figure(&out.host_compute);
    check_no_figure(&out.device_compute);
    if (!with_tensors) assert_true(out.host_weights + out.device_weights + out.tied_weights + out.parameters == 0);
    assert_int_equal(gm_estimate_layers(NULL, &config, asked, NULL, layers, 3, &request, NULL), GM_OK);
    assert_int_equal(request.host_fixed_bytes, out.host_weights + out.output);
    check_plan(layers, &request, out.device_weights);
    gm_model_close(model);
  }
}

/* Models of these architectures differ in what only their tensors say. */
static gm_estimate_part compute_with(const char *architecture, const char *const *tensors, int count, bool with_model) {
  gguf_bytes file;
  gm_model *model = NULL;
  gm_model_config config = {.struct_size = sizeof config};
  gm_memory_estimate out = {.struct_size = sizeof out};
  const gm_estimate_settings settings = {.struct_size = sizeof settings, .context = 512, .plain_attention = true};
  static const char *const keys[] = {"embedding_length", "block_count", "attention.head_count", "feed_forward_length"};
  static const uint64_t values[] = {HIDDEN, 2, 4, 128};
  char name[96];
  gguf_bytes_begin(&file, 3, (uint64_t)count, 5);
  gguf_bytes_text(&file, "general.architecture", architecture);
  for (int i = 0; i < 4; i++) {
    snprintf(name, sizeof name, "%s.%s", architecture, keys[i]);
    gguf_bytes_u32(&file, name, values[i]);
  }
  for (int i = 0; i < count; i++) {
    snprintf(name, sizeof name, "blk.0.%s.weight", tensors[i]);
    gguf_bytes_tensor(&file, name, 0, 32 * (uint64_t)i, 1, (uint64_t)8);
  }
  gguf_bytes_data(&file, 32, 32 * (uint64_t)count, 0);
  assert_int_equal(gm__model_open_memory(NULL, file.bytes, file.length, "m.gguf", true, &model, NULL), GM_OK);
  assert_int_equal(gm_model_read_config(model, &config, NULL), GM_OK);
  config.vocab = VOCAB;
  assert_int_equal(gm_estimate_memory(NULL, &config, with_model ? model : NULL, &settings, &out, NULL), GM_OK);
  gm_model_close(model);
  gguf_bytes_free(&file);
  return out.parts[GM_ESTIMATE_COMPUTE];
}

static void tensors_tell_which_order_is_right(void **state) {
  (void)state;
  static const struct {
    const char *architecture, *first[2], *second[2];
    int firsts, seconds;
  } rows[] = {
      {"falcon", {"attn_qkv"}, {"attn_qkv", "attn_norm_2"}, 1, 2},
      {"stablelm", {"attn_q", "ffn_norm"}, {"attn_q"}, 2, 1},
      {"phi3", {"attn_qkv"}, {"attn_q"}, 1, 1},
  };
  for (int i = 0; i < 3; i++) {
    const gm_estimate_part one = compute_with(rows[i].architecture, rows[i].first, rows[i].firsts, true);
    const gm_estimate_part other = compute_with(rows[i].architecture, rows[i].second, rows[i].seconds, true);
    const gm_estimate_part keys = compute_with(rows[i].architecture, rows[i].first, rows[i].firsts, false);
    assert_int_equal(one.standing, GM_STANDING_EXACT);
    assert_int_equal(other.standing, GM_STANDING_EXACT);
    assert_int_not_equal(one.range.bytes, other.range.bytes);
    assert_int_equal(keys.standing, GM_STANDING_INTERVAL);
    assert_non_null(strstr(keys.reason, "tensors"));
    assert_true(keys.range.low < one.range.bytes && one.range.bytes < keys.range.high);
    assert_true(keys.range.low < other.range.bytes && other.range.bytes < keys.range.high);
  }
  /* Keys alone do not say whether queries, keys and values have one projection. */
  static const char *const apart[] = {"attn_q"};
  assert_int_equal(compute_with("llama", apart, 1, true).standing, GM_STANDING_EXACT);
  assert_int_equal(compute_with("llama", apart, 1, false).standing, GM_STANDING_INTERVAL);
  /* A projection that the architecture's files do not have in this form: nobody measured it. */
  static const char *const joined[] = {"attn_qkv"};
  assert_int_equal(compute_with("llama", joined, 1, true).standing, GM_STANDING_INTERVAL);
}

static gm_layer_kind attends_with(uint32_t heads, uint32_t size) {
  return (gm_layer_kind){
      .flags = GM_LAYER_ATTENDS, .heads = heads, .kv_heads = heads, .key_size = size, .value_size = size};
}

/* Experts that no token passes are none that nobody counted. */
static void experts_of_which_nobody_says_how_many(void **state) {
  (void)state;
  for (uint32_t used = 0; used < 2; used++) {
    gm_model_config config = {.struct_size = sizeof config,
                              .architecture = "llama",
                              .hidden = 4 * HIDDEN,
                              .layers = 2,
                              .vocab = VOCAB,
                              .kind_count = 1,
                              .kinds = {attends_with(4, HIDDEN)}};
    gm_memory_estimate out = {.struct_size = sizeof out};
    config.kinds[0].flags |= GM_LAYER_EXPERTS;
    config.kinds[0].experts = 8;
    config.kinds[0].experts_used = used;
    config.kinds[0].expert_intermediate = 64;
    assert_int_equal(gm_estimate_memory(NULL, &config, NULL, NULL, &out, NULL), GM_OK);
    check_part(&out, GM_ESTIMATE_COMPUTE, used ? GM_STANDING_INTERVAL : GM_STANDING_UNKNOWN);
    check_part(&out, GM_ESTIMATE_CACHE, GM_STANDING_EXACT);
  }
}

/* The engine refuses these: values without flash attention, and caches of their own for an encoder-decoder. */
static void settings_that_the_engine_refuses(void **state) {
  (void)state;
  gm_estimate_settings settings = {.struct_size = sizeof settings, .value_type = GM_DTYPE_Q8_0};
  gm_memory_estimate out = {.struct_size = sizeof out};
  gm_model_config config = {.struct_size = sizeof config,
                            .architecture = "grok",
                            .hidden = 4 * HIDDEN,
                            .layers = 2,
                            .vocab = VOCAB,
                            .kind_count = 1,
                            .kinds = {attends_with(4, HIDDEN)}};
  assert_int_equal(gm_estimate_memory(NULL, &config, NULL, &settings, &out, NULL), GM_ERR_NOT_SUPPORTED);
  memcpy(config.architecture, "llama", sizeof "llama");
  assert_int_equal(gm_estimate_memory(NULL, &config, NULL, &settings, &out, NULL), GM_OK);
  settings = (gm_estimate_settings){.struct_size = sizeof settings, .sequences = 2, .separate_sequences = true};
  memcpy(config.architecture, "t5", sizeof "t5");
  config.encoder_layers = 2;
  assert_int_equal(gm_estimate_memory(NULL, &config, NULL, &settings, &out, NULL), GM_ERR_NOT_SUPPORTED);
  settings.sequences = 1;
  assert_int_equal(gm_estimate_memory(NULL, &config, NULL, &settings, &out, NULL), GM_OK);
}

/* Embeddings of each layer are inputs that the host has. */
static void embeddings_of_each_layer(void **state) {
  (void)state;
  gm_memory_estimate out[2];
  for (uint64_t i = 0; i < 2; i++) {
    const gm_model_config config = {.struct_size = sizeof config,
                                    .architecture = "gemma4",
                                    .hidden = HIDDEN,
                                    .layers = 3,
                                    .vocab = VOCAB,
                                    .layer_embedding = 16 * i,
                                    .kind_count = 1,
                                    .kinds = {attends_with(4, HIDDEN / 4)}};
    out[i] = (gm_memory_estimate){.struct_size = sizeof *out};
    assert_int_equal(gm_estimate_memory(NULL, &config, NULL, NULL, &out[i], NULL), GM_OK);
  }
  /* Those of all layers, and the numbers of the tokens once more. */
  assert_int_equal(out[1].host_compute.bytes, out[0].host_compute.bytes + 4 * 512 * 3 * 16 + 4 * 512);
}

/* The engine computes logits with the embedding itself. */
static void an_embedding_that_is_not_copied(void **state) {
  (void)state;
  const gm_memory_estimate llama = estimate_of("llama", NULL, true, NULL);
  const gm_memory_estimate bitnet = estimate_of("bitnet", NULL, true, NULL);
  assert_int_equal(llama.tied_weights, 4 * HIDDEN * VOCAB);
  assert_int_equal(bitnet.tied_weights, 0);
  assert_int_equal(bitnet.device_weights, llama.device_weights - llama.tied_weights);
}

/* Without flash attention each layer has rows for the values of the layer with the most of them. */
static void values_as_wide_as_the_widest(void **state) {
  (void)state;
  gm_model_config config = {.struct_size = sizeof config,
                            .architecture = "gemma4",
                            .hidden = HIDDEN,
                            .layers = 2,
                            .vocab = VOCAB,
                            .kind_count = 2,
                            .kind_of = {0, 1}};
  config.kinds[0] = attends_with(4, 16);
  config.kinds[1] = config.kinds[0];
  config.kinds[1].kv_heads = 1;
  gm_estimate_settings settings = {.struct_size = sizeof settings, .context = 256};
  gm_memory_estimate out = {.struct_size = sizeof out};
  assert_int_equal(gm_estimate_memory(NULL, &config, NULL, &settings, &out, NULL), GM_OK);
  assert_int_equal(out.device_kv, 2 * 256 * (64 + 64 + 16 + 16));
  settings.plain_attention = true;
  assert_int_equal(gm_estimate_memory(NULL, &config, NULL, &settings, &out, NULL), GM_OK);
  assert_int_equal(out.device_kv, 2 * 256 * (64 + 64 + 16 + 64));
}

/* The engine leaves the layers of multi-token prediction in the file. */
static void layers_that_are_not_loaded(void **state) {
  (void)state;
  gm_memory_estimate out[2];
  for (int predicts = 0; predicts < 2; predicts++) {
    gguf_bytes file;
    gm_model *model = NULL;
    gm_model_config config = {.struct_size = sizeof config};
    gguf_bytes_begin(&file, 3, 3, 5);
    gguf_bytes_text(&file, "general.architecture", "glm4moe");
    gguf_bytes_u32(&file, "glm4moe.embedding_length", HIDDEN);
    gguf_bytes_u32(&file, "glm4moe.block_count", 2);
    gguf_bytes_u32(&file, "glm4moe.attention.head_count", 4);
    gguf_bytes_u32(&file, "glm4moe.nextn_predict_layers", (uint64_t)predicts);
    gguf_bytes_tensor(&file, "token_embd.weight", 0, 0, 2, (uint64_t)HIDDEN, (uint64_t)VOCAB);
    gguf_bytes_tensor(&file, "blk.0.attn_q.weight", 0, 4 * HIDDEN * VOCAB, 2, (uint64_t)HIDDEN, (uint64_t)HIDDEN);
    gguf_bytes_tensor(&file, "blk.1.attn_q.weight", 0, 4 * HIDDEN * (VOCAB + HIDDEN), 2, (uint64_t)HIDDEN,
                      (uint64_t)HIDDEN);
    gguf_bytes_data(&file, 32, UINT64_C(4) * HIDDEN * (VOCAB + 2 * HIDDEN), 0);
    assert_int_equal(gm__model_open_memory(NULL, file.bytes, file.length, "m.gguf", true, &model, NULL), GM_OK);
    gguf_bytes_free(&file);
    assert_int_equal(gm_model_read_config(model, &config, NULL), GM_OK);
    out[predicts] = (gm_memory_estimate){.struct_size = sizeof *out};
    assert_int_equal(gm_estimate_memory(NULL, &config, model, NULL, &out[predicts], NULL), GM_OK);
    gm_model_close(model);
  }
  assert_int_equal(out[1].parameters, out[0].parameters);
  assert_int_equal(out[1].device_weights, out[0].device_weights - 4 * HIDDEN * HIDDEN);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(all_is_exact),
                                     cmocka_unit_test(weights_from_dimensions_are_an_interval),
                                     cmocka_unit_test(compute_partly_on_the_host_is_an_interval),
                                     cmocka_unit_test(operations_that_are_not_known),
                                     cmocka_unit_test(what_gm_does_not_know),
                                     cmocka_unit_test(buffers_without_a_bound),
                                     cmocka_unit_test(no_figure_of_what_is_unknown),
                                     cmocka_unit_test(tensors_tell_which_order_is_right),
                                     cmocka_unit_test(experts_of_which_nobody_says_how_many),
                                     cmocka_unit_test(settings_that_the_engine_refuses),
                                     cmocka_unit_test(embeddings_of_each_layer),
                                     cmocka_unit_test(an_embedding_that_is_not_copied),
                                     cmocka_unit_test(values_as_wide_as_the_widest),
                                     cmocka_unit_test(layers_that_are_not_loaded)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

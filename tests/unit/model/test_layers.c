/* Layer by layer: which attend, to what, in how many heads, and what recurrent ones keep. Shapes are those of real
 * models, made small. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "support/layer_scene.h"

static void check_attends(const gm_model_config *config, uint64_t layer, uint32_t heads, uint32_t key,
                          uint64_t window) {
  const gm_layer_kind *kind = gm__layer_at(config, layer);
  assert_int_equal(kind->flags & (GM_LAYER_ATTENDS | GM_LAYER_SHARES | GM_LAYER_RECURRENT), GM_LAYER_ATTENDS);
  assert_int_equal(kind->kv_heads, heads);
  assert_int_equal(kind->key_size, key);
  assert_int_equal(kind->window, window);
}

static void check_recurs(const gm_model_config *config, uint64_t layer, uint64_t conv, uint64_t state) {
  const gm_layer_kind *kind = gm__layer_at(config, layer);
  assert_int_equal(kind->flags & (GM_LAYER_ATTENDS | GM_LAYER_RECURRENT), GM_LAYER_RECURRENT);
  assert_int_equal(kind->conv_elements, conv);
  assert_int_equal(kind->state_elements, state);
}

static void test_layers_alike_are_one_kind(void **state) {
  (void)state;
  scene self;
  scene_begin(&self, "llama", 6, 1);
  scene_number(&self, "attention.head_count_kv", 2);
  const gm_model_config config = scene_config(&self);
  assert_int_equal(config.kind_count, 1);
  for (uint64_t i = 0; i < 6; i++) check_attends(&config, i, 2, HIDDEN / HEADS, 0);
}

/* Layers with a window have other heads, of another size. */
static void test_heads_of_each_layer(void **state) {
  (void)state;
  static const uint32_t heads[] = {4, 4, 1, 4, 4, 1};
  scene self;
  scene_begin(&self, "gemma4", 6, 5);
  scene_list(&self, "attention.head_count_kv", heads, 6);
  scene_number(&self, "attention.key_length", 32);
  scene_number(&self, "attention.key_length_swa", 16);
  scene_number(&self, "attention.sliding_window", 128);
  gguf_bytes_array(&self.file, scene_key(&self, "attention.sliding_window_pattern"), GGUF_BOOL, 6);
  gguf_bytes_number(&self.file, 0x000101000101, 6);
  const gm_model_config config = scene_config(&self);
  assert_int_equal(config.kind_count, 2);
  for (uint64_t i = 0; i < 6; i++) {
    const bool full = i % 3 == 2;
    check_attends(&config, i, full ? 1 : 4, full ? 32 : 16, full ? 0 : 128);
    assert_int_equal(gm__layer_at(&config, i)->value_size, 32);
  }
}

static void test_layers_without_heads_are_recurrent(void **state) {
  (void)state;
  static const uint32_t heads[] = {0, 2, 0};
  scene self;
  scene_begin(&self, "granitehybrid", 3, 5);
  scene_list(&self, "attention.head_count_kv", heads, 3);
  scene_number(&self, "ssm.conv_kernel", 4);
  scene_number(&self, "ssm.inner_size", 128);
  scene_number(&self, "ssm.state_size", 16);
  scene_number(&self, "ssm.group_count", 1);
  const gm_model_config config = scene_config(&self);
  check_recurs(&config, 0, 3 * (128 + 2 * 16), 16 * 128);
  check_attends(&config, 1, 2, HIDDEN / HEADS, 0);
  check_recurs(&config, 2, 3 * (128 + 2 * 16), 16 * 128);
}

static void test_short_convolutions(void **state) {
  (void)state;
  static const uint32_t heads[] = {0, 0, 8};
  scene self;
  scene_begin(&self, "lfm2", 3, 2);
  scene_list(&self, "attention.head_count_kv", heads, 3);
  scene_number(&self, "shortconv.l_cache", 3);
  const gm_model_config config = scene_config(&self);
  check_recurs(&config, 0, 2 * HIDDEN, 0);
  check_attends(&config, 2, 8, HIDDEN / HEADS, 0);
}

/* Every fourth layer attends; the last block predicts further tokens, and is not loaded. */
static void test_an_interval_and_a_layer_that_predicts(void **state) {
  (void)state;
  scene self;
  scene_begin(&self, "qwen35", 9, 4);
  scene_number(&self, "ssm.conv_kernel", 4);
  scene_number(&self, "ssm.inner_size", 128);
  scene_number(&self, "ssm.state_size", 16);
  scene_number(&self, "nextn_predict_layers", 1);
  const gm_model_config config = scene_config(&self);
  for (uint64_t i = 0; i < 8; i++) {
    if (i % 4 == 3) {
      check_attends(&config, i, HEADS, HIDDEN / HEADS, 0);
    } else {
      check_recurs(&config, i, 3 * 128, 16 * 128);
    }
  }
  assert_int_equal(gm__layer_at(&config, 8)->flags, GM_LAYER_UNUSED);
}

static void test_layers_that_do_both(void **state) {
  (void)state;
  scene self;
  scene_begin(&self, "falcon-h1", 2, 3);
  scene_number(&self, "ssm.conv_kernel", 4);
  scene_number(&self, "ssm.inner_size", 128);
  scene_number(&self, "ssm.state_size", 16);
  const gm_model_config config = scene_config(&self);
  const gm_layer_kind *kind = gm__layer_at(&config, 1);
  assert_int_equal(kind->flags, GM_LAYER_ATTENDS | GM_LAYER_RECURRENT);
  assert_int_equal(kind->kv_heads, HEADS);
  assert_int_equal(kind->state_elements, 16 * 128);
}

static void test_the_last_layers_share(void **state) {
  (void)state;
  scene self;
  scene_begin(&self, "gemma4", 6, 1);
  scene_number(&self, "attention.shared_kv_layers", 2);
  const gm_model_config config = scene_config(&self);
  for (uint64_t i = 0; i < 6; i++) {
    assert_int_equal(gm__layer_at(&config, i)->flags, i < 4 ? GM_LAYER_ATTENDS : GM_LAYER_SHARES);
  }
}

/* Engines take 20 for this architecture, whatever its key says. */
static void test_the_first_twenty_layers_keep(void **state) {
  (void)state;
  scene self;
  scene_begin(&self, "gemma3n", 24, 1);
  scene_number(&self, "attention.shared_kv_layers", 2);
  const gm_model_config config = scene_config(&self);
  for (uint64_t i = 0; i < 24; i++) {
    assert_int_equal(gm__layer_at(&config, i)->flags, i < 20 ? GM_LAYER_ATTENDS : GM_LAYER_SHARES);
  }
}

/* Keys and values are compressed where the file has the parts of a compressed head, and nowhere else. */
static void test_compressed_only_where_it_is_stated(void **state) {
  (void)state;
  static const char *const names[] = {"deepseek2", "deepseek2", "minicpm3"};
  for (int i = 0; i < 3; i++) {
    scene self;
    scene_begin(&self, names[i], 2, i == 1 ? 4 : 6);
    scene_number(&self, "attention.kv_lora_rank", 32);
    scene_number(&self, "rope.dimension_count", 8);
    scene_number(&self, "attention.key_length", 24);
    scene_number(&self, "attention.value_length", 16);
    if (i != 1) scene_number(&self, "attention.key_length_mla", 24);
    if (i != 1) scene_number(&self, "attention.value_length_mla", 16);
    const gm_model_config config = scene_config(&self);
    const gm_layer_kind *kind = gm__layer_at(&config, 0);
    assert_int_equal(kind->flags, i == 0 ? GM_LAYER_ATTENDS | GM_LAYER_COMPRESSED : GM_LAYER_ATTENDS);
    assert_int_equal(kind->kv_heads, i == 0 ? 1 : HEADS);
    assert_int_equal(kind->key_size, i == 0 ? 40 : 24);
    assert_int_equal(kind->value_size, i == 0 ? 0 : 16);
  }
}

/* Those with a window have another rank, and other heads. */
static void test_compressed_layers_with_a_window(void **state) {
  (void)state;
  static const uint32_t windows[] = {0, 1}, indexed[] = {1, 0};
  scene self;
  scene_begin(&self, "dots3note", 2, 12);
  scene_number(&self, "attention.kv_lora_rank", 32);
  scene_number(&self, "attention.kv_lora_rank_swa", 48);
  scene_number(&self, "attention.key_length_mla", 24);
  scene_number(&self, "attention.key_length_mla_swa", 40);
  scene_number(&self, "attention.value_length_mla", 16);
  scene_number(&self, "attention.value_length_mla_swa", 20);
  scene_number(&self, "attention.key_length_swa", 56);
  scene_number(&self, "rope.dimension_count", 8);
  scene_number(&self, "attention.sliding_window", 128);
  scene_number(&self, "attention.indexer.key_length", 64);
  scene_list(&self, "attention.sliding_window_pattern", windows, 2);
  scene_list(&self, "attention.indexer.types", indexed, 2);
  const gm_model_config config = scene_config(&self);
  const gm_layer_kind *full = gm__layer_at(&config, 0), *window = gm__layer_at(&config, 1);
  assert_string_equal(config.unsure, "");
  assert_int_equal(full->key_size, 32 + 8);
  assert_int_equal(full->query_size, 24);
  assert_int_equal(full->result_size, 16);
  assert_int_equal(full->window, 0);
  assert_int_equal(full->indexer_size, 64);
  assert_int_equal(window->key_size, 48 + 8);
  assert_int_equal(window->query_size, 40);
  assert_int_equal(window->result_size, 20);
  assert_int_equal(window->window, 128);
  assert_int_equal(window->indexer_size, 0);
  assert_int_equal(window->flags & GM_LAYER_COMPRESSED, GM_LAYER_COMPRESSED);
}

/* The engine keeps keys and values of one head more, which remembers what each token asked for. */
static void test_a_layer_that_chooses_adapters(void **state) {
  (void)state;
  scene self;
  scene_begin(&self, "graniteswitch", 3, 2);
  scene_number(&self, "attention.head_count_kv", 4);
  scene_number(&self, "feed_forward_length", 128);
  const gm_model_config config = scene_config(&self);
  assert_string_equal(config.unsure, "");
  assert_int_equal(config.layers, 4);
  for (uint64_t i = 0; i < 4; i++) check_attends(&config, i, i < 3 ? 4 : 1, HIDDEN / HEADS, 0);
  assert_int_equal(gm__layer_at(&config, 3)->heads, 1);
  assert_int_equal(gm__layer_at(&config, 3)->intermediate, 0);
  scene_begin(&self, "graniteswitch", GM_MODEL_LAYERS_MAX, 0);
  gm_model_config most;
  assert_int_equal(scene_read(&self, &most, NULL), GM_ERR_NOT_SUPPORTED);
}

static void test_a_window_that_no_key_says(void **state) {
  (void)state;
  for (int stated = 0; stated < 2; stated++) {
    scene self;
    scene_begin(&self, "llama4", 4, (uint64_t)stated);
    if (stated) scene_number(&self, "attention.sliding_window", 0);
    const gm_model_config config = scene_config(&self);
    assert_int_equal(gm__layer_at(&config, 0)->window, stated ? 0 : 8192);
    assert_int_equal(gm__layer_at(&config, 3)->window, 0);
  }
}

static void test_an_indexer_keeps_keys_of_its_own(void **state) {
  (void)state;
  scene self;
  scene_begin(&self, "glm-dsa", 1, 1);
  scene_number(&self, "attention.indexer.key_length", 128);
  const gm_model_config config = scene_config(&self);
  assert_int_equal(gm__layer_at(&config, 0)->indexer_size, 128);
}

static void test_lists_of_another_length(void **state) {
  (void)state;
  static const uint32_t heads[] = {1, 2, 3, 4};
  for (uint64_t count = 1; count <= 4; count++) {
    scene self;
    if (count == 3) continue;
    scene_begin(&self, "new", 3, 1);
    scene_list(&self, "attention.head_count_kv", heads, count);
    scene_refused(&self, GM_ERR_FORMAT, "layers, and the model has 3");
  }
}

static void test_too_many_layers_and_kinds(void **state) {
  (void)state;
  uint32_t heads[GM_LAYER_KINDS_MAX + 1];
  for (uint32_t i = 0; i <= GM_LAYER_KINDS_MAX; i++) heads[i] = i + 1;
  scene self;
  scene_begin(&self, "new", GM_LAYER_KINDS_MAX + 1, 1);
  scene_list(&self, "attention.head_count_kv", heads, GM_LAYER_KINDS_MAX + 1);
  scene_refused(&self, GM_ERR_NOT_SUPPORTED, "more than 48 kinds");
  scene_begin(&self, "new", GM_MODEL_LAYERS_MAX + 1, 0);
  scene_refused(&self, GM_ERR_NOT_SUPPORTED, "513 layers");
}

/* Matrices of heads: RWKV, gated delta attention, linear attention. The heads are those of the first layer. */
static void test_states_of_matrices(void **state) {
  (void)state;
  static const uint32_t heads[] = {0, 8, 0};
  scene self;
  scene_begin(&self, "rwkv7", 3, 1);
  scene_number(&self, "wkv.head_size", 16);
  gm_model_config config = scene_config(&self);
  check_recurs(&config, 2, 2 * HIDDEN, 16 * HIDDEN);
  assert_string_equal(config.unsure, "");
  scene_begin(&self, "arwkv7", 3, 2);
  scene_number(&self, "wkv.head_size", 16);
  scene_number(&self, "token_shift_count", 1);
  config = scene_config(&self);
  check_recurs(&config, 2, HIDDEN, 16 * HIDDEN);
  scene_begin(&self, "kimi-linear", 3, 3);
  scene_list(&self, "attention.head_count_kv", heads, 3);
  scene_number(&self, "kda.head_dim", 32);
  scene_number(&self, "ssm.conv_kernel", 3);
  config = scene_config(&self);
  check_recurs(&config, 0, UINT64_C(3) * 2 * HEADS * 32, 32 * 32 * HEADS);
  check_attends(&config, 1, HEADS, HIDDEN / HEADS, 0);
  scene_begin(&self, "minimax-01", 16, 1);
  scene_number(&self, "attention.key_length", 32);
  config = scene_config(&self);
  for (uint64_t i = 0; i < 16; i++) {
    if (i % 8 == 7) {
      check_attends(&config, i, HEADS, 32, 0);
    } else {
      check_recurs(&config, i, 0, 32 * 32 * HEADS);
    }
  }
}

/* A state without its size is no state of 0 bytes. */
static void test_a_state_without_its_size(void **state) {
  (void)state;
  static const char *const names[] = {"rwkv6", "mamba2"};
  for (int i = 0; i < 2; i++) {
    scene self;
    scene_begin(&self, names[i], 2, 0);
    const gm_model_config config = scene_config(&self);
    assert_non_null(strstr(config.unsure, "no key gives the size"));
  }
}

/* Models of text that compute without a cache, encoders, and the one encoder that has one. */
static void test_layers_that_keep_nothing(void **state) {
  (void)state;
  static const char *const names[] = {"dream", "llada", "llada-moe", "rnd1", "eurobert", "bert", "t5encoder", "llama"};
  for (int i = 0; i < 8; i++) {
    scene self;
    scene_begin(&self, names[i], 2, 0);
    const gm_model_config config = scene_config(&self);
    assert_int_equal(gm__layer_at(&config, 1)->flags, i < 6 ? GM_LAYER_UNCACHED : GM_LAYER_ATTENDS);
  }
}

static void test_windows_of_some_sizes_alone(void **state) {
  (void)state;
  static const struct {
    const char *name;
    uint64_t layers, wanted;
  } rows[] = {
      {"exaone4", 8, 0}, {"exaone4", 64, 100}, {"smallthinker", 8, 4096}, {"cohere2", 8, 100}, {"lfm2", 8, 100}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    scene self;
    scene_begin(&self, rows[i].name, rows[i].layers, 1);
    scene_number(&self, "attention.sliding_window", 100);
    const gm_model_config config = scene_config(&self);
    assert_int_equal(gm__layer_at(&config, 2)->window, rows[i].wanted);
    const bool all = strcmp(rows[i].name, "lfm2") == 0;
    assert_int_equal(gm__layer_at(&config, rows[i].layers - 1)->window,
                     all || strcmp(rows[i].name, "smallthinker") == 0 ? rows[i].wanted : 0);
  }
}

/* Layers with neither are feed-forward parts alone, with experts or not. */
static void test_layers_that_only_feed(void **state) {
  (void)state;
  static const uint32_t heads[] = {0, 0, 2}, widths[] = {0, 48, 0};
  scene self;
  scene_begin(&self, "nemotron_h_moe", 3, 7);
  scene_list(&self, "attention.head_count_kv", heads, 3);
  scene_list(&self, "feed_forward_length", widths, 3);
  scene_number(&self, "expert_count", 4);
  scene_number(&self, "expert_used_count", 2);
  scene_number(&self, "ssm.conv_kernel", 4);
  scene_number(&self, "ssm.inner_size", 128);
  scene_number(&self, "ssm.state_size", 16);
  const gm_model_config config = scene_config(&self);
  check_recurs(&config, 0, 3 * 128, 16 * 128);
  assert_int_equal(gm__layer_at(&config, 1)->flags, GM_LAYER_EXPERTS);
  check_attends(&config, 2, 2, HIDDEN / HEADS, 0);
}

/* An indexer of each layer, of those in a list, or behind the dense ones; that one keeps values, too. */
static void test_which_layers_have_an_indexer(void **state) {
  (void)state;
  static const uint32_t listed[] = {1, 0, 1, 0};
  static const char *const names[] = {"deepseek32", "glm-dsa", "minimax-m3", "hy_v4"};
  static const uint32_t wanted[][4] = {{32, 32, 32, 32}, {32, 0, 32, 0}, {0, 32, 32, 32}, {0, 0, 0, 0}};
  for (int i = 0; i < 4; i++) {
    scene self;
    scene_begin(&self, names[i], 4, 4);
    scene_number(&self, "attention.indexer.key_length", 32);
    scene_number(&self, "leading_dense_block_count", 1);
    scene_number(&self, "attention.indexer.top_k", i == 3 ? 0 : 64);
    scene_list(&self, "attention.indexer.types", listed, 4);
    const gm_model_config config = scene_config(&self);
    for (uint64_t layer = 0; layer < 4; layer++) {
      const gm_layer_kind *kind = gm__layer_at(&config, layer);
      assert_int_equal(kind->indexer_size, wanted[i][layer]);
      assert_int_equal(kind->indexer_value_size, i == 2 && layer > 0 ? HIDDEN / HEADS : 0);
      /* A layer of the list without an indexer reads what the one before it has chosen. */
      const bool chooses = i == 1 || kind->indexer_size > 0;
      assert_int_equal(kind->indexer_top, chooses ? 64 : 0);
    }
  }
}

/* Streams of the residual, its checkpoints and narrow experts are facts of the model. Streams of a residual that
 * engines do not mix so end the answer. */
static void test_what_the_residual_is_made_of(void **state) {
  (void)state;
  static const char *const names[] = {"hy_v4", "dflash"};
  for (int i = 0; i < 2; i++) {
    scene self;
    scene_begin(&self, names[i], 2, 3);
    scene_number(&self, "hyper_connection.count", 4);
    scene_number(&self, "attn_res.block_size", 12);
    scene_number(&self, i ? "expert_latent_length" : "moe_latent_size", 24);
    const gm_model_config config = scene_config(&self);
    assert_int_equal(config.residual_streams, 4);
    assert_int_equal(config.residual_period, 12);
    assert_int_equal(config.expert_latent, 24);
    assert_int_equal(strstr(config.unsure, "streams") != NULL, i);
  }
}

/* A key that gm does not read ends the answer where it may say what layers keep, and nowhere else. */
static void test_keys_that_gm_does_not_know(void **state) {
  (void)state;
  static const char *const weighty[] = {
      "ssm.brand_new", "attention.value_lora_rank", "attention.sliding_window_left", "attention.indexer.pool",
      "num_loops",     "attention.key_length_far"};
  static const char *const harmless[] = {
      "rope.freq_base_swa",           "ssm.time_step_rank", "attention.gate_lora_rank",
      "attention.indexer.head_count", "logit_scale",        "expert_gating_func"};
  for (int i = 0; i < 12; i++) {
    scene self;
    scene_begin(&self, "llama", 3, 1);
    scene_number(&self, i < 6 ? weighty[i] : harmless[i - 6], 7);
    const gm_model_config config = scene_config(&self);
    if (i < 6 ? !strstr(config.unsure, weighty[i]) : config.unsure[0] != 0) {
      fail_msg("%s: \"%s\"", i < 6 ? weighty[i] : harmless[i - 6], config.unsure);
    }
  }
  static const uint32_t numbers[] = {1, 2, 3};
  for (int whose = 0; whose < 2; whose++) { /* a list with a number for each layer, and one of another file's part */
    scene self;
    scene_begin(&self, "llama", 3, 1);
    if (whose) self.architecture = "other";
    scene_list(&self, "brand_new", numbers, 3);
    const gm_model_config config = scene_config(&self);
    assert_int_equal(config.unsure[0] != 0, !whose);
  }
}

static void test_an_architecture_that_gm_does_not_know(void **state) {
  (void)state;
  static const char *const names[] = {"brand_new", "deepseek4", "glm5-next"};
  for (int i = 0; i < 3; i++) {
    scene self;
    scene_begin(&self, names[i], 2, 0);
    const gm_model_config config = scene_config(&self);
    assert_true(strlen(config.unsure) > 10);
  }
}

/* The first tensor of experts has their width, whatever the key says. */
static void test_experts_as_wide_as_their_tensor(void **state) {
  (void)state;
  gguf_bytes file;
  gm_model *model = NULL;
  gm_model_config config = {.struct_size = sizeof config};
  gguf_bytes_begin(&file, 3, 1, 6);
  gguf_bytes_text(&file, "general.architecture", "llama");
  gguf_bytes_u32(&file, "llama.embedding_length", HIDDEN);
  gguf_bytes_u32(&file, "llama.block_count", 3);
  gguf_bytes_u32(&file, "llama.attention.head_count", HEADS);
  gguf_bytes_u32(&file, "llama.expert_count", 4);
  gguf_bytes_u32(&file, "llama.expert_feed_forward_length", 999);
  gguf_bytes_tensor(&file, "blk.1.ffn_down_exps.weight", 0, 0, 3, (uint64_t)24, (uint64_t)HIDDEN, (uint64_t)4);
  gguf_bytes_data(&file, 32, 24 * HIDDEN * 4 * 4, 0);
  assert_int_equal(gm__model_open_memory(NULL, file.bytes, file.length, "m.gguf", true, &model, NULL), GM_OK);
  gguf_bytes_free(&file);
  assert_int_equal(gm_model_read_config(model, &config, NULL), GM_OK);
  assert_int_equal(gm_model_widest_layer(&config).expert_intermediate, 24);
  gm_model_close(model);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_layers_alike_are_one_kind),
      cmocka_unit_test(test_heads_of_each_layer),
      cmocka_unit_test(test_layers_without_heads_are_recurrent),
      cmocka_unit_test(test_short_convolutions),
      cmocka_unit_test(test_an_interval_and_a_layer_that_predicts),
      cmocka_unit_test(test_layers_that_do_both),
      cmocka_unit_test(test_the_last_layers_share),
      cmocka_unit_test(test_the_first_twenty_layers_keep),
      cmocka_unit_test(test_compressed_only_where_it_is_stated),
      cmocka_unit_test(test_compressed_layers_with_a_window),
      cmocka_unit_test(test_a_layer_that_chooses_adapters),
      cmocka_unit_test(test_a_window_that_no_key_says),
      cmocka_unit_test(test_an_indexer_keeps_keys_of_its_own),
      cmocka_unit_test(test_states_of_matrices),
      cmocka_unit_test(test_a_state_without_its_size),
      cmocka_unit_test(test_layers_that_keep_nothing),
      cmocka_unit_test(test_windows_of_some_sizes_alone),
      cmocka_unit_test(test_layers_that_only_feed),
      cmocka_unit_test(test_which_layers_have_an_indexer),
      cmocka_unit_test(test_what_the_residual_is_made_of),
      cmocka_unit_test(test_keys_that_gm_does_not_know),
      cmocka_unit_test(test_an_architecture_that_gm_does_not_know),
      cmocka_unit_test(test_experts_as_wide_as_their_tensor),
      cmocka_unit_test(test_lists_of_another_length),
      cmocka_unit_test(test_too_many_layers_and_kinds),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

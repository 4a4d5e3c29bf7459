/* Layer by layer out of a config.json. */
#include "unit/model/config_json.h"

/* A W for each layer with the window, an F for each that attends to everything. */
static void check_windows(const char *json, const char *wanted) {
  const gm_model_config config = parse_good(json);
  char told[GM_MODEL_LAYERS_MAX + 1] = "";
  for (uint64_t layer = 0; layer < config.layers; layer++) {
    const uint64_t window = gm__layer_at(&config, layer)->window;
    told[layer] = window == 16 ? 'W' : window == 0 ? 'F' : '?';
  }
  assert_string_equal(told, wanted);
}

static void test_windows(void **state) {
  (void)state;
  check_windows("{\"model_type\":\"gemma2\"," BASE ",\"sliding_window\":16}", "WFWFWF");
  check_windows("{\"model_type\":\"gemma3\"," BASE ",\"sliding_window\":16,\"sliding_window_pattern\":3}", "WWFWWF");
  check_windows("{\"model_type\":\"modernbert\"," BASE ",\"local_attention\":16}", "FWWFWW");
  check_windows("{\"model_type\":\"qwen2\"," BASE ",\"sliding_window\":16,\"use_sliding_window\":false}", "FFFFFF");
  check_windows("{" BASE
                ",\"sliding_window\":16,\"layer_types\":[\"sliding_attention\",\"sliding_attention\","
                "\"full_attention\",\"sliding_attention\",\"sliding_attention\",\"full_attention\"]}",
                "WWFWWF");
  check_windows("{" BASE
                ",\"sliding_window\":16,\"layer_types\":[\"full_attention\",\"sliding_attention\","
                "\"full_attention\",\"sliding_attention\",\"full_attention\",\"sliding_attention\"]}",
                "FWFWFW");
  check_windows("{" BASE
                ",\"sliding_window\":16,\"layer_types\":[\"full_attention\",\"full_attention\",\"full_attention\","
                "\"full_attention\",\"full_attention\",\"full_attention\"]}",
                "FFFFFF");
  check_windows("{\"model_type\":\"exaone-moe\"," BASE ",\"sliding_window\":16,\"sliding_window_pattern\":\"LLG\"}",
                "WWFWWF");
  check_bad("{" BASE ",\"sliding_window\":16,\"layer_types\":[\"sliding_attention\",\"sliding_attention\"]}",
            GM_ERR_FORMAT, "a list of 2 layers, and the model has 6");
}

/* Layers that attend are listed, or are one of so many; the others are recurrent. A list may go on behind the layers.
 */
static void test_recurrent_layers(void **state) {
  (void)state;
  static const char *const files[] = {
      "{\"model_type\":\"lfm2\"," BASE ",\"conv_L_cache\":3,\"full_attn_idxs\":[1,5]}",
      "{\"model_type\":\"jamba\"," BASE ",\"mamba_d_conv\":3,\"attn_layer_period\":4,\"attn_layer_offset\":1}",
      "{" BASE
      ",\"conv_L_cache\":3,\"layer_types\":[\"conv\",\"full_attention\",\"conv\",\"conv\",\"conv\",\"full_attention\","
      "\"full_attention\"]}"};
  for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
    const gm_model_config config = parse_good(files[i]);
    for (uint64_t layer = 0; layer < 6; layer++) {
      const uint32_t flags = gm__layer_at(&config, layer)->flags;
      assert_int_equal(flags, layer == 1 || layer == 5 ? GM_LAYER_ATTENDS : GM_LAYER_RECURRENT);
    }
  }
  check_bad("{" BASE ",\"full_attn_idxs\":[512]}", GM_ERR_FORMAT, "beyond the 512th");
  check_bad("{" BASE ",\"full_attn_idxs\":[-1]}", GM_ERR_FORMAT, "a number that is not negative");
}

/* Experts in each second layer, or in the last of so many. */
static void test_layers_with_experts(void **state) {
  (void)state;
  static const char *const files[] = {
      "{" BASE ",\"num_experts\":4,\"expert_layer_period\":2,\"expert_layer_offset\":1}",
      "{" BASE ",\"num_experts\":4,\"interleave_moe_layer_step\":2,\"intermediate_size_mlp\":99}"};
  for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
    const gm_model_config config = parse_good(files[i]);
    for (uint64_t layer = 0; layer < 6; layer++) {
      const gm_layer_kind *kind = gm__layer_at(&config, layer);
      assert_int_equal((kind->flags & GM_LAYER_EXPERTS) != 0, layer % 2);
      if (i == 1 && layer % 2 == 0) assert_int_equal(kind->intermediate, 99);
    }
  }
}

/* Each layer has the heads that a list gives it. */
static void test_heads_of_each_layer(void **state) {
  (void)state;
  const gm_model_config config = parse_good("{" BASE ",\"num_key_value_heads\":[4,2,1,4,2,1]}");
  for (uint64_t layer = 0; layer < 6; layer++) assert_int_equal(gm__layer_at(&config, layer)->kv_heads, 4 >> layer % 3);
}

/* A list beside the number of all layers, which need not be the largest of the list. */
static void test_a_list_of_heads_beside_a_number(void **state) {
  (void)state;
  static const char *const files[] = {"{" BASE ",\"num_attention_heads_per_layer\":[4,8,4,8,4,2],\"num_kv_heads\":2}",
                                      "{\"num_attention_heads_per_layer\":[4,8,4,8,4,2],\"num_kv_heads\":2," BASE "}"};
  static const uint32_t heads[] = {4, 8, 4, 8, 4, 2};
  for (int i = 0; i < 2; i++) {
    const gm_model_config config = parse_good(files[i]);
    for (uint64_t layer = 0; layer < 6; layer++) {
      assert_int_equal(gm__layer_at(&config, layer)->heads, heads[layer]);
      assert_int_equal(gm__layer_at(&config, layer)->kv_heads, 2);
      assert_int_equal(gm__layer_at(&config, layer)->key_size, 16);
    }
  }
}

/* Layers of one part each: recurrent, with experts, attention, feed-forward. */
static void test_layers_of_one_part(void **state) {
  (void)state;
  static const char *const files[] = {
      "{\"model_type\":\"nemotron_h\",\"hidden_size\":64,\"num_attention_heads\":4,\"intermediate_size\":9,"
      "\"conv_kernel\":4,\"hybrid_override_pattern\":\"M-*M\"}",
      "{\"model_type\":\"nemotron_h\",\"hidden_size\":64,\"num_attention_heads\":4,\"intermediate_size\":9,"
      "\"conv_kernel\":4,\"layers_block_type\":[\"mamba\",\"mlp\",\"attention\",\"linear_attention\"]}"};
  for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
    const gm_model_config config = parse_good(files[i]);
    assert_int_equal(config.layers, 4);
    assert_int_equal(gm__layer_at(&config, 0)->flags, GM_LAYER_RECURRENT);
    assert_int_equal(gm__layer_at(&config, 1)->flags, 0);
    assert_int_equal(gm__layer_at(&config, 2)->flags, GM_LAYER_ATTENDS);
    assert_int_equal(gm__layer_at(&config, 3)->flags, GM_LAYER_RECURRENT);
  }
}

/* A feed-forward layer between layers with experts has none. */
static void test_dense_between_experts(void **state) {
  (void)state;
  const gm_model_config config = parse_good(
      "{\"model_type\":\"nemotron_h\",\"hidden_size\":64,\"num_attention_heads\":4,\"intermediate_size\":9,"
      "\"n_routed_experts\":4,\"num_experts_per_tok\":2,\"moe_intermediate_size\":7,\"hybrid_override_pattern\":\"-E*"
      "\"}");
  assert_int_equal(gm__layer_at(&config, 0)->flags, 0);
  assert_int_equal(gm__layer_at(&config, 0)->intermediate, 9);
  assert_int_equal(gm__layer_at(&config, 1)->flags, GM_LAYER_EXPERTS);
  assert_int_equal(gm__layer_at(&config, 1)->expert_intermediate, 7);
  assert_int_equal(gm__layer_at(&config, 2)->flags, GM_LAYER_ATTENDS);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_windows),
      cmocka_unit_test(test_recurrent_layers),
      cmocka_unit_test(test_layers_with_experts),
      cmocka_unit_test(test_heads_of_each_layer),
      cmocka_unit_test(test_a_list_of_heads_beside_a_number),
      cmocka_unit_test(test_layers_of_one_part),
      cmocka_unit_test(test_dense_between_experts),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Dimensions of models from config.json and from GGUF, and parameter counts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "core/model/layers.h"
#include "core/model/model.h"
#include "support/counted_services.h"
#include "support/gguf_bytes.h"
#include "support/test_folder.h"
#include "unit/model/config_json.h"

static void test_a_usual_model(void **state) {
  (void)state;
  gm_model_config config =
      parse_good("{\"model_type\":\"mistral\"," BASE
                 ",\"num_key_value_heads\":2,\"intermediate_size\":100,"
                 "\"vocab_size\":9,\"max_position_embeddings\":77,\"sliding_window\":16,\"rope_theta\":1e4}");
  assert_string_equal(config.architecture, "llama");
  assert_int_equal(config.hidden, 64);
  const gm_layer_kind layer = gm_model_widest_layer(&config);
  assert_int_equal(layer.kv_heads, 2);
  assert_int_equal(layer.key_size, 16);
  assert_int_equal(layer.value_size, 16);
  assert_int_equal(layer.window, 0); /* engines keep a full cache */
  assert_int_equal(config.context, 77);
  assert_false(config.tied_embeddings);
}

static void test_an_unknown_one_keeps_its_name(void **state) {
  (void)state;
  gm_model_config config = parse_good("{\"model_type\":\"brand_new\",\"n_embd\":8,\"n_layer\":1,\"n_head\":2}");
  assert_string_equal(config.architecture, "brand_new");
  assert_int_equal(gm_model_widest_layer(&config).kv_heads, 2);
}

static void test_inner_objects_count_more(void **state) {
  (void)state;
  gm_model_config config = parse_good(
      "{\"model_type\":\"llava\",\"text_config\":{\"model_type\":\"gemma3_text\",\"hidden_size\":2560,"
      "\"num_hidden_layers\":34},\"hidden_size\":1,\"vision_config\":{\"hidden_size\":5}}");
  assert_string_equal(config.architecture, "gemma3");
  assert_int_equal(config.hidden, 2560);
  const gm_layer_kind layer = gm_model_widest_layer(&config);
  assert_int_equal(layer.heads, 8); /* what the class takes where the file says nothing */
  assert_int_equal(layer.kv_heads, 4);
  assert_int_equal(layer.key_size, 256);
}

static void test_mla(void **state) {
  (void)state;
  const gm_model_config config =
      parse_good("{\"model_type\":\"deepseek_v3\"," BASE
                 ",\"num_key_value_heads\":4,\"kv_lora_rank\":512,\"q_lora_rank\":24,"
                 "\"qk_nope_head_dim\":128,\"qk_rope_head_dim\":64,\"v_head_dim\":128,\"n_routed_experts\":8,"
                 "\"num_experts_per_tok\":2,\"moe_intermediate_size\":10,\"first_k_dense_replace\":1}");
  assert_string_equal(config.architecture, "deepseek2");
  const gm_layer_kind *dense = gm__layer_at(&config, 0), *sparse = gm__layer_at(&config, 1);
  assert_int_equal(dense->flags, GM_LAYER_ATTENDS | GM_LAYER_COMPRESSED);
  assert_int_equal(dense->heads, 4);
  assert_int_equal(dense->kv_heads, 1);
  assert_int_equal(dense->key_size, 512 + 64);
  assert_int_equal(dense->query_size, 192);
  assert_int_equal(dense->result_size, 128);
  assert_int_equal(dense->rotated_size, 64);
  assert_int_equal(dense->query_rank, 24);
  assert_int_equal(sparse->flags, dense->flags | GM_LAYER_EXPERTS);
  assert_int_equal(sparse->experts, 8);
  assert_int_equal(sparse->expert_intermediate, 10);
}

static void test_recurrent_and_encoders(void **state) {
  (void)state;
  gm_model_config config = parse_good(
      "{\"model_type\":\"mamba\",\"hidden_size\":8,\"num_hidden_layers\":2,"
      "\"time_step_limit\":[0.0,Infinity]}");
  assert_int_equal(gm_model_widest_layer(&config).inner_size, 16);
  assert_int_equal(gm_model_widest_layer(&config).heads, 0);
  config = parse_good(
      "{\"model_type\":\"t5\",\"d_model\":8,\"num_layers\":2,\"num_decoder_layers\":3,"
      "\"num_heads\":2,\"d_kv\":5}");
  assert_int_equal(config.encoder_layers, 2);
  assert_int_equal(config.layers, 3);
  assert_int_equal(gm_model_widest_layer(&config).key_size, 5);
  config = parse_good("{\"model_type\":\"falcon\"," BASE ",\"multi_query\":true}");
  assert_int_equal(gm_model_widest_layer(&config).kv_heads, 1);
  assert_int_equal(gm_model_widest_layer(&config).intermediate, 256);
  assert_true(parse_good("{\"model_type\":\"bert\"," BASE "}").encoder_only);
}

static void test_bad_json(void **state) {
  (void)state;
  check_bad("", GM_ERR_FORMAT, "an object");
  check_bad("{\"hidden_size\":\"64\"}", GM_ERR_FORMAT, "byte 15");
  check_bad("{\"hidden_size\":NaN}", GM_ERR_FORMAT, "byte 15");
  check_bad("{\"hidden_size\":-1}", GM_ERR_FORMAT, "not negative");
  check_bad("{\"hidden_size\":1.5}", GM_ERR_FORMAT, "an integer");
  check_bad("{\"hidden_size\":{}}", GM_ERR_FORMAT, "an integer");
  check_bad("{\"hidden_size\":[[1]]}", GM_ERR_FORMAT, "an integer");
  check_bad("{\"hidden_size\":99999999999999999999}", GM_ERR_FORMAT, "64 bits");
  check_bad("{\"hidden_size\":1099511627777}", GM_ERR_FORMAT, "above 2^40");
  check_bad("{\"hidden_size\":1,\"hidden_size\":1}", GM_ERR_FORMAT, "twice");
  check_bad("{\"model_type\":7}", GM_ERR_FORMAT, "a string");
  check_bad("{\"model_type\":\"0123456789012345678901234567890123\"}", GM_ERR_FORMAT, "31 bytes");
  check_bad("{\"a\":[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[1]]", GM_ERR_FORMAT, "too deep");
  check_bad("{" BASE "} x", GM_ERR_FORMAT, "follows");
  check_bad("{}", GM_ERR_NOT_FOUND, "\"hidden_size\" is not stated");
  check_bad("{\"hidden_size\":null}", GM_ERR_NOT_FOUND, "\"hidden_size\" is not stated");
  check_bad("{\"hidden_size\":0}", GM_ERR_FORMAT, "\"hidden_size\" is 0");
  check_bad("{\"hidden_size\":1,\"n_layer\":1}", GM_ERR_NOT_FOUND, "\"num_attention_heads\" is not stated");
}

/* Two names of one dimension, and lists of another length than the model has layers. */
/* True is no size, and not the number 1. */
static void test_true_is_no_number(void **state) {
  (void)state;
  static const char *const keys[] = {"vocab_size",     "head_dim", "num_experts",
                                     "sliding_window", "d_state",  "kv_lora_rank"};
  for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
    char json[256];
    snprintf(json, sizeof json, "{" BASE ",\"%s\":true}", keys[i]);
    check_bad(json, GM_ERR_FORMAT, "an integer is expected");
  }
  check_bad("{" BASE ",\"num_key_value_heads\":[1,true]}", GM_ERR_FORMAT, "an integer is expected");
}

static void test_contradictions(void **state) {
  (void)state;
  check_bad("{" BASE ",\"n_layer\":7}", GM_ERR_FORMAT, "another name of the same dimension has another value");
  check_bad("{\"n_embd\":8," BASE "}", GM_ERR_FORMAT, "another name");
  check_bad("{" BASE ",\"n_head\":8}", GM_ERR_FORMAT, "another name");
  check_bad("{" BASE ",\"num_kv_heads\":2,\"num_key_value_heads\":1}", GM_ERR_FORMAT, "another name");
  check_bad("{" BASE ",\"num_experts\":8,\"num_local_experts\":9}", GM_ERR_FORMAT, "another name");
  check_bad("{" BASE ",\"moe_k\":2,\"num_experts_per_tok\":1}", GM_ERR_FORMAT, "another name");
  check_bad("{" BASE ",\"moe_intermediate_size\":2,\"expert_ffn_hidden_size\":1}", GM_ERR_FORMAT, "another name");
  check_bad("{" BASE ",\"dtype\":\"float32\",\"torch_dtype\":\"torch.bfloat16\"}", GM_ERR_FORMAT,
            "\"dtype\" and \"torch_dtype\" have different values");
  check_bad("{" BASE ",\"text_config\":{\"torch_dtype\":\"float16\",\"dtype\":\"float32\"}}", GM_ERR_FORMAT,
            "have different values");
  parse_good("{" BASE ",\"n_layer\":6,\"n_head\":4,\"n_embd\":64}");
  parse_good("{" BASE ",\"text_config\":{\"n_layer\":7}}"); /* an inner object has its own */
  check_bad("{" BASE ",\"num_key_value_heads\":[1,2,1]}", GM_ERR_FORMAT, "a list of 3 layers");
  check_bad("{" BASE ",\"num_key_value_heads\":[1,2,1,1,1,1,1,1,1,1,1,1]}", GM_ERR_FORMAT, "a list of 12 layers");
  check_bad("{" BASE ",\"layer_types\":[\"full_attention\"]}", GM_ERR_FORMAT, "a list of 1 layers");
  check_bad("{" BASE ",\"num_key_value_heads\":[[1]]}", GM_ERR_FORMAT, "an integer");
  check_bad("{" BASE ",\"num_key_value_heads\":[70000]}", GM_ERR_FORMAT, "too large");
  check_bad("{\"hidden_size\":64,\"num_hidden_layers\":5000000,\"num_attention_heads\":4}", GM_ERR_NOT_SUPPORTED,
            "5000000 layers");
}

#define SMALL                                                                                                      \
  "\"model_type\":\"llama\",\"vocab_size\":10,\"hidden_size\":8,\"intermediate_size\":20,\"num_hidden_layers\":2," \
  "\"num_attention_heads\":2,\"num_key_value_heads\":1"

/* Counted, or not and why. */
static void test_counted_parameters(void **state) {
  (void)state;
  static const struct {
    const char *json, *why;
  } cases[] = {{"{" SMALL "}", ""},
               {"{" SMALL ",\"mlp_bias\":-1}", "\"mlp_bias\" is no count"},
               {"{" SMALL ",\"mlp_bias\":0.5}", "\"mlp_bias\" is no count"},
               {"{" SMALL ",\"mlp_bias\":NaN}", "\"mlp_bias\" is no count"},
               {"{" SMALL ",\"mlp_bias\":[0]}", "\"mlp_bias\" is no count"},
               {"{" BASE ",\"model_type\":\"llama\"}", "\"vocab_size\" is not stated"},
               {"{" BASE ",\"model_type\":\"of_tomorrow\"}", "the family \"of_tomorrow\""},
               {"{" BASE "}", "the family \"\""}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    gm_model_config config = {.struct_size = sizeof config};
    const char *path = temp_folder_write(&folder, "c.json", cases[i].json, strlen(cases[i].json));
    assert_int_equal(gm_model_config_load(NULL, path, &config, NULL), GM_OK);
    assert_int_equal(config.parameters_counted, cases[i].why[0] == '\0');
    if (!strstr(config.uncounted, cases[i].why)) fail_msg("%s: %s", cases[i].json, config.uncounted);
  }
  gm_model_config config = {.struct_size = sizeof config};
  const char *path = temp_folder_write(&folder, "c.json", cases[0].json, strlen(cases[0].json));
  assert_int_equal(gm_model_config_load(NULL, path, &config, NULL), GM_OK);
  assert_int_equal(config.embedding_parameters, 80);
  assert_int_equal(config.output_parameters, 88); /* a norm, and the output matrix */
  assert_int_equal(config.other_parameters, 0);
  assert_int_equal(config.kind_count, 1);
  assert_int_equal(config.kinds[0].parameters, 2 * 64 + 2 * 32 + 3 * 160 + 16);
  assert_int_equal(config.kinds[0].expert_parameters, 0);
}

static void test_files(void **state) {
  (void)state;
  gm_model_config config = {.struct_size = sizeof config}, odd = {.struct_size = 1};
  const char *path = temp_folder_write(&folder, "c.json", "{" BASE "}", strlen("{" BASE "}"));
  assert_int_equal(gm_model_config_load(NULL, path, &config, NULL), GM_OK);
  assert_int_equal(config.layers, 6);
  assert_int_equal(gm_model_config_load(NULL, NULL, &config, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_model_config_load(NULL, "", &config, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_model_config_load(NULL, path, NULL, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_model_config_load(NULL, path, &odd, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_model_config_load(NULL, folder.path, &config, NULL), GM_ERR_IO);
  assert_int_equal(gm_model_config_load(NULL, temp_folder_join(&folder, "none"), &config, NULL), GM_ERR_NOT_FOUND);
  path = temp_folder_write(&folder, "empty.json", "", 0);
  assert_int_equal(gm_model_config_load(NULL, path, &config, NULL), GM_ERR_FORMAT);
}

/* 100 MB are refused by their number, before one byte of them is read. */
static void test_a_huge_file(void **state) {
  (void)state;
  counted_services host;
  gm_model_config config = {.struct_size = sizeof config};
  const char *path = temp_folder_write(&folder, "c.json", "{", 1);
  counted_services_init(&host);
  assert_int_equal(truncate(path, 100000000), 0);
  assert_int_equal(gm_model_config_load(&host.services, path, &config, NULL), GM_ERR_FORMAT);
  assert_int_equal(host.calls, 0);
}

/* ---- models ---- */

static gm_model *open_bytes(gguf_bytes *file) {
  gm_model *model = NULL;
  gm_error err = {0};
  gguf_bytes_data(file, 32, 0, 0);
  if (gm__model_open_memory(NULL, file->bytes, file->length, "m.gguf", true, &model, &err)) fail_msg("%s", err.message);
  gguf_bytes_free(file);
  return model;
}

static void begin_model(gguf_bytes *file, const char *architecture, uint64_t tensors, uint64_t values) {
  char key[64];
  static const char *const keys[] = {"embedding_length", "block_count", "attention.head_count"};
  gguf_bytes_begin(file, 3, tensors, 4 + values);
  gguf_bytes_text(file, "general.architecture", architecture);
  for (uint64_t i = 0; i < 3; i++) {
    snprintf(key, sizeof key, "%s.%s", architecture, keys[i]);
    gguf_bytes_u32(file, key, 4 * (i + 1));
  }
}

static void test_gguf_keys(void **state) {
  (void)state;
  gguf_bytes file;
  gm_model_config config = {.struct_size = sizeof config};
  begin_model(&file, "new", 1, 3);
  gguf_bytes_array(&file, "new.attention.head_count_kv", GGUF_I32, 8);
  for (uint64_t i = 0; i < 8; i++) gguf_bytes_number(&file, i == 5 ? 3 : 2, 4);
  gguf_bytes_u32(&file, "new.attention.sliding_window", 16);
  gguf_bytes_array(&file, "new.attention.sliding_window_pattern", GGUF_BOOL, 8);
  gguf_bytes_number(&file, 0x0001010100010101, 8);
  gguf_bytes_tensor(&file, "token_embd.weight", 0, 0, 2, (uint64_t)4, (uint64_t)50);
  gm_model *model = open_bytes(&file);
  assert_int_equal(gm_model_read_config(model, &config, NULL), GM_OK);
  assert_string_equal(config.architecture, "new");
  assert_int_equal(config.hidden, 4);
  assert_int_equal(gm_model_widest_layer(&config).kv_heads, 3);
  assert_int_equal(config.vocab, 50);
  for (uint64_t i = 0; i < 8; i++) assert_int_equal(gm__layer_at(&config, i)->window, i % 4 == 3 ? 0 : 16);
  assert_int_equal(config.kind_count, 3);
  assert_true(config.tied_embeddings);
  assert_int_equal(gm_model_read_config(NULL, &config, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_model_read_config(model, NULL, NULL), GM_ERR_INVALID_ARGUMENT);
  gm_model_close(model);
}

/* One value more, of 8 bytes, that is not what its key is for. */
static void check_bad_gguf(const char *key, uint32_t type, uint64_t value, int bytes) {
  gguf_bytes file;
  gm_error err = {0};
  gm_model_config config = {.struct_size = sizeof config};
  begin_model(&file, "llama", 0, 1);
  gguf_bytes_value(&file, key, type, value, bytes);
  gm_model *model = open_bytes(&file);
  assert_int_equal(gm_model_read_config(model, &config, &err), GM_ERR_FORMAT);
  assert_non_null(strstr(err.message, key));
  gm_model_close(model);
}

static void test_bad_gguf_values(void **state) {
  (void)state;
  check_bad_gguf("llama.context_length", GGUF_F32, 0x7fc00000, 4);
  check_bad_gguf("llama.context_length", GGUF_I32, 0xffffffff, 4);
  check_bad_gguf("llama.context_length", GGUF_U64, (uint64_t)1 << 41, 8);
  check_bad_gguf("llama.context_length", GGUF_STRING, 0, 8);
  gguf_bytes file;
  gm_error err = {0};
  gm_model_config config = {.struct_size = sizeof config};
  gguf_bytes_begin(&file, 3, 0, 1);
  gguf_bytes_text(&file, "general.architecture", "llama");
  gm_model *model = open_bytes(&file);
  assert_int_equal(gm_model_read_config(model, &config, &err), GM_ERR_NOT_FOUND);
  assert_non_null(strstr(err.message, "\"llama.embedding_length\" is not stated"));
  gm_model_close(model);
}

static void check_count(const char *architecture, uint64_t stored, uint64_t unique) {
  gguf_bytes file;
  uint64_t got_stored = 0, got_unique = 0;
  begin_model(&file, architecture, 3, 0);
  gguf_bytes_tensor(&file, "token_embd.weight", 0, 0, 2, (uint64_t)4, (uint64_t)50);
  gguf_bytes_tensor(&file, "output.weight", 0, 832, 2, (uint64_t)4, (uint64_t)50);
  gguf_bytes_tensor(&file, "rope_freqs.weight", 0, 1664, 1, (uint64_t)8);
  gm_model *model = open_bytes(&file);
  assert_int_equal(gm_model_parameter_count(model, &got_stored, &got_unique, NULL), GM_OK);
  assert_int_equal(got_stored, stored);
  assert_int_equal(got_unique, unique);
  gm_model_close(model);
}

static void test_parameters_of_gguf(void **state) {
  (void)state;
  check_count("llama", 408, 400);
  check_count("falcon", 408, 200);
  assert_int_equal(gm_model_parameter_count(NULL, NULL, NULL, NULL), GM_ERR_INVALID_ARGUMENT);
}

static void check_beside(const char *config_text, uint64_t unique) {
  static const char header[] =
      "{\"lm_head.weight\":{\"dtype\":\"U8\",\"shape\":[3,2],\"data_offsets\":[0,6]},"
      "\"model.embed_tokens.weight\":{\"dtype\":\"U8\",\"shape\":[3,2],\"data_offsets\":[6,12]}}";
  uint64_t stored = 0, got = 0;
  gm_model *model = NULL;
  safetensors_bytes file = safetensors_bytes_make(header, strlen(header), 12, 0);
  temp_folder_write(&folder, "model.safetensors", file.bytes, file.length);
  safetensors_bytes_free(&file);
  if (config_text) temp_folder_write(&folder, "config.json", config_text, strlen(config_text));
  assert_int_equal(gm_model_open(NULL, folder.path, &model, NULL), GM_OK);
  gm_model_config config = {.struct_size = sizeof config};
  assert_int_equal(gm_model_read_config(model, &config, NULL), config_text ? GM_OK : GM_ERR_NOT_FOUND);
  assert_int_equal(gm_model_parameter_count(model, &stored, &got, NULL), GM_OK);
  assert_int_equal(stored, 12);
  assert_int_equal(got, unique);
  gm_model_close(model);
}

static void test_parameters_of_a_folder(void **state) {
  (void)state;
  check_beside(NULL, 12);
  check_beside("{\"tie_word_embeddings\":false," BASE "}", 12);
  check_beside("{\"tie_word_embeddings\":true," BASE "}", 6);
}

#define in_folder(test) cmocka_unit_test_setup_teardown(test, folder_setup, folder_teardown)

/* These state no width of the feed-forward layer where it is the usual one. */
static void test_usual_feed_forward(void **state) {
  (void)state;
  static const char *const names[] = {"falcon", "gpt2", "gptj", "mpt", "starcoder", "bloom", "llama"};
  const size_t last = sizeof names / sizeof *names - 1;
  for (size_t i = 0; i <= last; i++) {
    gguf_bytes file;
    gm_model_config config = {.struct_size = sizeof config};
    begin_model(&file, names[i], 0, 0);
    gm_model *model = open_bytes(&file);
    assert_int_equal(gm_model_read_config(model, &config, NULL), GM_OK);
    assert_int_equal(gm_model_widest_layer(&config).intermediate, i < last ? 4 * 4 : 0);
    gm_model_close(model);
  }
}

/* Bits of each element of a quantised matrix, with the scales of its groups. */
static void test_quantised_weights(void **state) {
  (void)state;
  static const struct {
    const char *object;
    double bits;
    bool experts_only;
  } cases[] = {
      {"{\"quant_method\":\"fp8\",\"fmt\":\"e4m3\",\"weight_block_size\":[128,128]}", 8, false},
      {"{\"quant_method\":\"gptq\",\"bits\":4,\"group_size\":128}", 4 + 20.0 / 128, false},
      {"{\"bits\":4,\"group_size\":-1,\"quant_method\":\"awq\"}", 4, false},
      {"{\"quant_method\":\"mxfp4\",\"modules_to_not_convert\":[\"model.layers.*.self_attn\"]}", 4.25, true},
      {"{\"quant_method\":\"bitsandbytes\",\"load_in_4bit\":true,\"load_in_8bit\":false}", 4.5, false},
      {"{\"quant_method\":\"bitsandbytes\",\"load_in_8bit\":true}", 8, false},
      {"{\"quant_method\":\"modelopt\",\"quant_algo\":\"NVFP4\"}", 4.5, false},
      {"{\"quant_method\":\"compressed-tensors\",\"config_groups\":{\"group_0\":{\"targets\":[\"Linear\"],\"weights\":"
       "{\"num_bits\":4,\"group_size\":32,\"type\":\"int\"}}}}",
       4 + 20.0 / 32, false},
      {"{\"quant_method\":\"fbgemm_fp8\"}", 8, false},
      {"{\"quant_method\":\"int8\",\"bits\":4}", 8, false},
      {"{\"quant_method\":\"modelopt\",\"quant_algo\":\"W4A16_AWQ\"}", 4.156, false},
      {"{\"quant_method\":\"gptq_marlin\",\"bits\":2,\"group_size\":64}", 2 + 18.0 / 64, false},
      {"{\"quant_method\":\"auto-round\",\"bits\":3,\"group_size\":1}", 3 + 19.0, false},
      {"{\"quant_method\":\"hqq\",\"bits\":1}", 1, false},
      {"{\"quant_method\":\"quanto\",\"bits\":16}", 16, false},
      {"{\"quant_method\":\"quanto\",\"bits\":17}", 0, false},
      {"{\"quant_method\":\"of tomorrow\",\"bits\":3}", 0, false},
      {"{\"quant_method\":\"gptq\",\"bits\":null}", 0, false},
      {"{\"quant_method\":7,\"bits\":\"four\"}", 0, false},
      {"{}", 0, false}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char json[512];
    snprintf(json, sizeof json, "{" BASE ",\"torch_dtype\":\"bfloat16\",\"quantization_config\":%s}", cases[i].object);
    const gm_model_config config = parse_good(json);
    assert_true(config.matrix_bits == cases[i].bits);
    assert_int_equal(config.experts_quantised, cases[i].experts_only);
  }
  check_bad("{" BASE ",\"quantization_config\":{},\"quantization_config\":{}}", GM_ERR_FORMAT, "a key is there twice");
  check_bad("{" BASE ",\"quantization_config\":{\"bits\":1e4}}", GM_ERR_FORMAT, "byte");
  check_bad("{" BASE ",\"quantization_config\":{\"bits\":4", GM_ERR_FORMAT, "byte");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_usual_model),
      cmocka_unit_test(test_an_unknown_one_keeps_its_name),
      cmocka_unit_test(test_usual_feed_forward),
      cmocka_unit_test(test_quantised_weights),
      cmocka_unit_test(test_inner_objects_count_more),
      cmocka_unit_test(test_mla),
      cmocka_unit_test(test_recurrent_and_encoders),
      cmocka_unit_test(test_bad_json),
      cmocka_unit_test(test_true_is_no_number),
      cmocka_unit_test(test_contradictions),
      in_folder(test_counted_parameters),
      in_folder(test_files),
      in_folder(test_a_huge_file),
      cmocka_unit_test(test_gguf_keys),
      cmocka_unit_test(test_bad_gguf_values),
      cmocka_unit_test(test_parameters_of_gguf),
      in_folder(test_parameters_of_a_folder),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

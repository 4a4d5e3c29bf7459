/* Which types of a key and value cache an engine runs. With flash attention blocks must divide the head; without it
 * they must divide the row of all heads. StableLM-3B has heads of 80, which no block of 32 divides, and rows of 2560.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "gm/estimate.h"
#include "support/gguf_bytes.h"
#include "support/temp_folder.h"

enum { LAYERS = 32, WIDTH = 2560, FORWARD = 6912, VOCAB = 50304, TENSORS = 4 + 11 * LAYERS };
enum { F32 = 0, Q4_K = 12, Q6_K = 14 };

typedef struct stablelm {
  gguf_bytes file;
  uint64_t at; /* of the next tensor's data */
} stablelm;

static void stablelm_tensor(stablelm *self, const char *name, uint32_t type, uint64_t width, uint64_t rows) {
  uint64_t elements = width * rows;
  uint64_t bytes = type == F32 ? 4 * elements : elements / 256 * (type == Q4_K ? 144 : 210);
  gguf_bytes_tensor(&self->file, name, type, self->at, rows == 1 ? 1 : 2, width, rows);
  self->at += (bytes + 31) / 32 * 32;
}

static void stablelm_norm(stablelm *self, const char *name) {
  static const char *const ends[] = {"weight", "bias"};
  char full[64];
  for (int i = 0; i < 2; i++) {
    snprintf(full, sizeof full, "%s.%s", name, ends[i]);
    stablelm_tensor(self, full, F32, WIDTH, 1);
  }
}

/* The mix Q4_K_M: an eighth of the layers at both ends, and every third between, have larger values and outputs. */
static void stablelm_layer(stablelm *self, unsigned layer) {
  bool large = layer < LAYERS / 8 || layer >= 7 * LAYERS / 8 || (layer - LAYERS / 8) % 3 == 2;
  const struct {
    const char *name;
    uint32_t type;
    uint64_t width, rows;
  } matrices[] = {
      {"attn_q", Q4_K, WIDTH, WIDTH},
      {"attn_k", Q4_K, WIDTH, WIDTH},
      {"attn_v", large ? Q6_K : Q4_K, WIDTH, WIDTH},
      {"attn_output", Q4_K, WIDTH, WIDTH},
      {"ffn_gate", Q4_K, WIDTH, FORWARD},
      {"ffn_up", Q4_K, WIDTH, FORWARD},
      {"ffn_down", large ? Q6_K : Q4_K, FORWARD, WIDTH},
  };
  char name[64];
  for (size_t i = 0; i < sizeof matrices / sizeof *matrices; i++) {
    snprintf(name, sizeof name, "blk.%u.%s.weight", layer, matrices[i].name);
    stablelm_tensor(self, name, matrices[i].type, matrices[i].width, matrices[i].rows);
  }
  snprintf(name, sizeof name, "blk.%u.attn_norm", layer);
  stablelm_norm(self, name);
  snprintf(name, sizeof name, "blk.%u.ffn_norm", layer);
  stablelm_norm(self, name);
}

static gm_model *stablelm_open(gm_model_config *config) {
  stablelm self = {.at = 0};
  gguf_bytes_begin(&self.file, 3, TENSORS, 7);
  gguf_bytes_text(&self.file, "general.architecture", "stablelm");
  gguf_bytes_u32(&self.file, "stablelm.vocab_size", VOCAB);
  gguf_bytes_u32(&self.file, "stablelm.context_length", 4096);
  gguf_bytes_u32(&self.file, "stablelm.embedding_length", WIDTH);
  gguf_bytes_u32(&self.file, "stablelm.block_count", LAYERS);
  gguf_bytes_u32(&self.file, "stablelm.feed_forward_length", FORWARD);
  gguf_bytes_u32(&self.file, "stablelm.attention.head_count", 32);
  stablelm_tensor(&self, "token_embd.weight", Q4_K, WIDTH, VOCAB);
  stablelm_tensor(&self, "output.weight", Q6_K, WIDTH, VOCAB);
  stablelm_norm(&self, "output_norm");
  for (unsigned layer = 0; layer < LAYERS; layer++) stablelm_layer(&self, layer);
  temp_folder folder;
  temp_folder_make(&folder);
  temp_folder_write(&folder, "model.gguf", self.file.bytes, self.file.length);
  gguf_bytes_free(&self.file);
  gm_model *model = NULL;
  gm_error err = {.status = GM_OK};
  gm_status status = gm_model_open_header(NULL, temp_folder_join(&folder, "model.gguf"), &model, &err);
  temp_folder_remove(&folder);
  if (status != GM_OK) fail_msg("%s", err.message);
  *config = (gm_model_config){.struct_size = sizeof *config};
  assert_int_equal(gm_model_read_config(model, config, &err), GM_OK);
  return model;
}

static gm_estimate_settings on_the_host(gm_dtype keys, gm_dtype values) {
  return (gm_estimate_settings){.struct_size = sizeof(gm_estimate_settings),
                                .place = GM_ESTIMATE_HOST,
                                .context = 4096,
                                .batch = 512,
                                .key_type = keys,
                                .value_type = values,
                                .plain_attention = true};
}

static gm_status estimate(const gm_estimate_settings *settings, gm_memory_estimate *out, gm_error *err) {
  gm_model_config config;
  gm_model *model = stablelm_open(&config);
  *out = (gm_memory_estimate){.struct_size = sizeof *out};
  gm_status status = gm_estimate_memory(NULL, &config, model, settings, out, err);
  gm_model_close(model);
  return status;
}

static void a_row_that_blocks_divide_is_enough_without_flash_attention(void **state) {
  (void)state;
  gm_estimate_settings settings = on_the_host(GM_DTYPE_Q8_0, GM_DTYPE_F16);
  gm_memory_estimate out;
  gm_error err = {.status = GM_OK};
  gm_status status = estimate(&settings, &out, &err);
  if (status != GM_OK) fail_msg("%s", err.message);
  assert_int_equal(out.parameters, UINT64_C(2795443200));
  assert_int_equal(out.host_kv, UINT64_C(1027604480));
  assert_int_equal(out.total.bytes, UINT64_C(3047944704)); /* as an engine takes */
}

static void flash_attention_needs_heads_that_blocks_divide(void **state) {
  (void)state;
  gm_estimate_settings settings = on_the_host(GM_DTYPE_Q8_0, GM_DTYPE_F16);
  settings.plain_attention = false;
  gm_memory_estimate out;
  gm_error err;
  assert_int_equal(estimate(&settings, &out, &err), GM_ERR_NOT_SUPPORTED);
  assert_non_null(strstr(err.message, "heads of a multiple of 32; these have 80"));
  settings = on_the_host(GM_DTYPE_F16, GM_DTYPE_Q8_0);
  settings.plain_attention = false;
  assert_int_equal(estimate(&settings, &out, &err), GM_ERR_NOT_SUPPORTED);
}

static void quantised_values_need_flash_attention(void **state) {
  (void)state;
  gm_estimate_settings settings = on_the_host(GM_DTYPE_F16, GM_DTYPE_Q8_0);
  gm_memory_estimate out;
  gm_error err;
  assert_int_equal(estimate(&settings, &out, &err), GM_ERR_NOT_SUPPORTED);
  assert_non_null(strstr(err.message, "flash attention"));
}

static void a_row_that_blocks_do_not_divide_is_refused(void **state) {
  (void)state;
  gm_model_config config = {.struct_size = sizeof config,
                            .architecture = "llama",
                            .hidden = 240,
                            .layers = 2,
                            .vocab = 1000,
                            .kind_count = 1};
  config.kinds[0] = (gm_layer_kind){
      .flags = GM_LAYER_ATTENDS, .heads = 3, .kv_heads = 3, .key_size = 80, .value_size = 80, .intermediate = 512};
  gm_estimate_settings settings = on_the_host(GM_DTYPE_Q8_0, GM_DTYPE_F16);
  gm_memory_estimate out = {.struct_size = sizeof out};
  gm_error err;
  assert_int_equal(gm_estimate_memory(NULL, &config, NULL, &settings, &out, &err), GM_ERR_NOT_SUPPORTED);
  assert_non_null(strstr(err.message, "240"));
}

/* A model that compresses keys and values into one has one cache, of one type. */
static void one_cache_has_one_type(void **state) {
  (void)state;
  gm_model_config config = {.struct_size = sizeof config,
                            .architecture = "deepseek2",
                            .hidden = 2048,
                            .layers = 4,
                            .vocab = 1000,
                            .kind_count = 1};
  config.kinds[0] = (gm_layer_kind){.flags = GM_LAYER_ATTENDS | GM_LAYER_COMPRESSED,
                                    .heads = 16,
                                    .kv_heads = 1,
                                    .key_size = 512 + 64,
                                    .query_size = 192,
                                    .result_size = 128,
                                    .rotated_size = 64,
                                    .intermediate = 1408};
  gm_estimate_settings settings = on_the_host(GM_DTYPE_F32, GM_DTYPE_F16);
  gm_memory_estimate out = {.struct_size = sizeof out};
  gm_error err;
  assert_int_equal(gm_estimate_memory(NULL, &config, NULL, &settings, &out, &err), GM_ERR_NOT_SUPPORTED);
  assert_non_null(strstr(err.message, "one type"));
  settings.value_type = GM_DTYPE_F32;
  assert_int_equal(gm_estimate_memory(NULL, &config, NULL, &settings, &out, &err), GM_OK);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_row_that_blocks_divide_is_enough_without_flash_attention),
      cmocka_unit_test(flash_attention_needs_heads_that_blocks_divide),
      cmocka_unit_test(quantised_values_need_flash_attention),
      cmocka_unit_test(a_row_that_blocks_do_not_divide_is_refused),
      cmocka_unit_test(one_cache_has_one_type),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

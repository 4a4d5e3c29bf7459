/* Layer by layer: which attend, to what, in how many heads, and what recurrent ones keep. Shapes are those of real
 * models, made small. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "core/model/layers.h"
#include "core/model/model.h"
#include "support/gguf_bytes.h"

enum { HIDDEN = 64, HEADS = 8 };

typedef struct scene {
  gguf_bytes file;
  const char *architecture;
} scene;

static const char *scene_key(const scene *self, const char *rest) {
  static char key[96];
  snprintf(key, sizeof key, "%s.%s", self->architecture, rest);
  return key;
}

/* `values` more keys come behind these. */
static void scene_begin(scene *self, const char *architecture, uint64_t layers, uint64_t values) {
  self->architecture = architecture;
  gguf_bytes_begin(&self->file, 3, 0, 4 + values);
  gguf_bytes_text(&self->file, "general.architecture", architecture);
  gguf_bytes_u32(&self->file, scene_key(self, "embedding_length"), HIDDEN);
  gguf_bytes_u32(&self->file, scene_key(self, "block_count"), layers);
  gguf_bytes_u32(&self->file, scene_key(self, "attention.head_count"), HEADS);
}

static void scene_number(scene *self, const char *rest, uint64_t value) {
  gguf_bytes_u32(&self->file, scene_key(self, rest), value);
}

static void scene_list(scene *self, const char *rest, const uint32_t *numbers, uint64_t count) {
  gguf_bytes_array(&self->file, scene_key(self, rest), GGUF_I32, count);
  for (uint64_t i = 0; i < count; i++) gguf_bytes_number(&self->file, numbers[i], 4);
}

static gm_status scene_read(scene *self, gm_model_config *out, gm_error *err) {
  gm_model *model = NULL;
  gguf_bytes_data(&self->file, 32, 0, 0);
  assert_int_equal(gm__model_open_memory(NULL, self->file.bytes, self->file.length, "m.gguf", true, &model, err),
                   GM_OK);
  gguf_bytes_free(&self->file);
  *out = (gm_model_config){.struct_size = sizeof *out};
  const gm_status status = gm_model_read_config(model, out, err);
  gm_model_close(model);
  return status;
}

static gm_model_config scene_config(scene *self) {
  gm_model_config config;
  gm_error err = {.status = GM_OK};
  if (scene_read(self, &config, &err)) fail_msg("%s", err.message);
  return config;
}

static void scene_refused(scene *self, gm_status wanted, const char *words) {
  gm_model_config config;
  gm_error err = {.status = GM_OK};
  assert_int_equal(scene_read(self, &config, &err), wanted);
  if (!strstr(err.message, words)) fail_msg("\"%s\" has no \"%s\"", err.message, words);
}

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
  scene_begin(&self, "gemma3n", 6, 1);
  scene_number(&self, "attention.shared_kv_layers", 2);
  const gm_model_config config = scene_config(&self);
  for (uint64_t i = 0; i < 6; i++) {
    assert_int_equal(gm__layer_at(&config, i)->flags, i < 4 ? GM_LAYER_ATTENDS : GM_LAYER_SHARES);
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

/* What a caller has put together by hand. */
static void test_a_configuration_without_kinds(void **state) {
  (void)state;
  gm_model_config config = {.struct_size = sizeof config,
                            .architecture = "gemma2",
                            .hidden = HIDDEN,
                            .layers = 4,
                            .heads = HEADS,
                            .window = 16,
                            .window_period = 2,
                            .window_first = true};
  gm__layers_alike(&config);
  assert_int_equal(config.kind_count, 2);
  for (uint64_t i = 0; i < 4; i++) check_attends(&config, i, HEADS, HIDDEN / HEADS, i % 2 ? 0 : 16);
  const gm_model_config before = config;
  gm__layers_alike(&config);
  assert_memory_equal(&before, &config, sizeof config);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_layers_alike_are_one_kind),
                                     cmocka_unit_test(test_heads_of_each_layer),
                                     cmocka_unit_test(test_layers_without_heads_are_recurrent),
                                     cmocka_unit_test(test_short_convolutions),
                                     cmocka_unit_test(test_an_interval_and_a_layer_that_predicts),
                                     cmocka_unit_test(test_layers_that_do_both),
                                     cmocka_unit_test(test_the_last_layers_share),
                                     cmocka_unit_test(test_compressed_only_where_it_is_stated),
                                     cmocka_unit_test(test_a_window_that_no_key_says),
                                     cmocka_unit_test(test_an_indexer_keeps_keys_of_its_own),
                                     cmocka_unit_test(test_lists_of_another_length),
                                     cmocka_unit_test(test_too_many_layers_and_kinds),
                                     cmocka_unit_test(test_a_configuration_without_kinds)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

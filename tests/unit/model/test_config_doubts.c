/* Keys of a config.json that gm does not read: those that look as if they mattered end the answer. */
#include <stdlib.h>

#include "gm/estimate.h"
#include "gm/model_config.h"
#include "support/test_folder.h"
#include "unit/model/config_json.h"

static gm_model_config load(const char *json) {
  gm_model_config config = {.struct_size = sizeof config};
  gm_error err = {0};
  const char *path = temp_folder_write(&folder, "c.json", json, strlen(json));
  if (gm_model_config_load(NULL, path, &config, &err)) fail_msg("%s: %s", json, err.message);
  return config;
}

#define LLAMA "\"model_type\":\"llama\",\"vocab_size\":10,\"intermediate_size\":20," BASE

/* In the object of the model or of its language model, and objects of their own. */
static void keys_that_may_matter(void **state) {
  (void)state;
  static const struct {
    const char *json, *key;
  } rows[] = {{"{" LLAMA ",\"ssm_new\":4}", "ssm_new"},
              {"{\"attention_window_size\":2048," LLAMA "}", "attention_window_size"},
              {"{" LLAMA ",\"kv_lora_rank_2\":-1}", "kv_lora_rank_2"},
              {"{" LLAMA ",\"indexer_types\":[\"full\"]}", "indexer_types"},
              {"{" LLAMA ",\"anything\":[1,2,3,4,5,6]}", "anything"}, /* a number for each layer */
              {"{" LLAMA ",\"linear_attn_config\":{\"heads\":3}}", "linear_attn_config"},
              {"{\"text_config\":{" LLAMA ",\"swa_head_dim\":3}}", "swa_head_dim"}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    const gm_model_config config = load(rows[i].json);
    char wanted[GM_MODEL_UNSURE_SIZE];
    snprintf(wanted, sizeof wanted, "gm does not know the key \"%s\"", rows[i].key);
    if (strcmp(config.unsure, wanted) != 0) fail_msg("%s: \"%s\"", rows[i].json, config.unsure);
  }
}

static void keys_that_do_not_matter(void **state) {
  (void)state;
  static const char *const rows[] = {"{" LLAMA "}",
                                     "{" LLAMA ",\"use_cache\":true,\"cache_implementation\":\"hybrid\"}",
                                     "{" LLAMA ",\"attention_window_size\":0}",
                                     "{" LLAMA ",\"attention_window_size\":null}",
                                     "{" LLAMA ",\"ssm_new\":false,\"kda\":[]}",
                                     "{" LLAMA ",\"anything\":[1,2,3,4,5]}",
                                     "{" LLAMA ",\"anything\":[\"a\",\"b\",\"c\",\"d\",\"e\",\"f\"]}",
                                     "{" LLAMA ",\"vision_config\":{\"window_size\":7,\"head_dim\":8}}",
                                     "{" LLAMA ",\"linear_attn_config\":{}}",
                                     "{" LLAMA ",\"rope_scaling\":{\"factor\":8.0}}"};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    const gm_model_config config = load(rows[i]);
    if (config.unsure[0]) fail_msg("%s: %s", rows[i], config.unsure);
  }
}

/* The answer is unknown and says the key; the parameters are counted all the same. */
static void an_answer_in_doubt(void **state) {
  (void)state;
  const gm_model_config config = load("{" LLAMA ",\"ssm_new\":4,\"torch_dtype\":\"bfloat16\"}");
  gm_memory_estimate out = {.struct_size = sizeof out};
  assert_int_equal(gm_estimate_memory(NULL, &config, NULL, NULL, &out, NULL), GM_OK);
  assert_int_equal(out.standing, GM_STANDING_UNKNOWN);
  assert_int_equal(out.parts[GM_ESTIMATE_CACHE].standing, GM_STANDING_UNKNOWN);
  assert_non_null(strstr(out.parts[GM_ESTIMATE_CACHE].reason, "ssm_new"));
  assert_int_equal(out.parts[GM_ESTIMATE_WEIGHTS].standing, GM_STANDING_EXACT);
}

/* Nobody looked at its keys. */
static void a_file_with_too_many_keys(void **state) {
  (void)state;
  enum { KEYS = 2000, STEP = 6 };
  char *json = malloc(sizeof LLAMA + KEYS * STEP + 3);
  assert_non_null(json);
  size_t at = (size_t)sprintf(json, "{" LLAMA);
  for (int i = 0; i < KEYS; i++, at += STEP) memcpy(json + at, ",\"a\":1", STEP);
  memcpy(json + at, "}", 2);
  const gm_model_config config = load(json);
  assert_non_null(strstr(config.unsure, "more keys"));
  free(json);
}

#define in_folder(test) cmocka_unit_test_setup_teardown(test, folder_setup, folder_teardown)

int main(void) {
  const struct CMUnitTest tests[] = {
      in_folder(keys_that_may_matter),
      in_folder(keys_that_do_not_matter),
      in_folder(an_answer_in_doubt),
      in_folder(a_file_with_too_many_keys),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Dimensions out of the text of a config.json. */
#ifndef GM_TESTS_UNIT_MODEL_CONFIG_JSON_H
#define GM_TESTS_UNIT_MODEL_CONFIG_JSON_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "core/model/layers.h"
#include "core/model/model_config.h"

static inline gm_status parse(const char *json, gm_model_config *out, gm_error *err) {
  char text[4096];
  snprintf(text, sizeof text, "%s", json);
  return gm__model_config_parse_json(text, strlen(text), "config.json", "op", out, err);
}

/* The JSON with blanks around each of its tokens, as people write it. */
static inline void spread(const char *json, char *out, size_t capacity) {
  size_t at = 0;
  bool inside = false;
  for (; *json; json++) {
    assert_true(at + 8 < capacity);
    if (*json == '"' && json[-inside] != '\\') inside = !inside;
    const bool parts = !inside && strchr("{}[]:,", *json);
    if (parts) at += (size_t)sprintf(out + at, "\n %c\t\r", *json);
    if (!parts) out[at++] = *json;
  }
  out[at] = '\0';
}

/* Blanks change nothing. */
static inline gm_model_config parse_good(const char *json) {
  static char wide[1 << 16];
  gm_model_config config = {.struct_size = sizeof config}, same = config;
  gm_error err = {0};
  if (parse(json, &config, &err) != GM_OK) fail_msg("%s: %s", json, err.message);
  spread(json, wide, sizeof wide);
  if (parse(wide, &same, &err) != GM_OK) fail_msg("%s: %s", wide, err.message);
  assert_memory_equal(&config, &same, sizeof same);
  return config;
}

static inline void check_bad(const char *json, gm_status wanted, const char *words) {
  gm_model_config config = {.struct_size = sizeof config};
  gm_error err = {0};
  gm_status status = parse(json, &config, &err);
  if (status != wanted || !strstr(err.message, words)) {
    fail_msg("%s: %s \"%s\", not %s \"%s\"", json, gm_status_name(status), err.message, gm_status_name(wanted), words);
  }
}

#define BASE "\"hidden_size\":64,\"num_hidden_layers\":6,\"num_attention_heads\":4"

#endif

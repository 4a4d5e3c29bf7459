/* Any bytes as a GGUF file, whole and as a header alone: whatever opens must answer every question consistently, and
 * nothing may leak. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz/fuzz_model.h"
#include "gm/model_config.h"
#include "gm/model_value.h"

static void check_tensor(const gm_model *model, uint64_t index, uint64_t length, uint64_t *taken) {
  gm_tensor_info info = {.struct_size = sizeof info};
  uint64_t found = UINT64_MAX;
  fuzz_require(gm_model_tensor(model, index, &info, NULL) == GM_OK);
  fuzz_require(info.rank <= 4 && info.shard == 0);
  if (info.bytes > 0) {
    fuzz_require(info.file_offset >= *taken && info.bytes <= UINT64_MAX - info.file_offset);
    *taken = info.file_offset + info.bytes;
    fuzz_require(*taken <= length);
  }
  fuzz_require(gm_model_find(model, info.name, &found, NULL) == GM_OK && found == index);
}

static void check_value(const gm_model *model, uint64_t index) {
  gm_model_value value = {.struct_size = sizeof value}, same = value, element = value;
  const char *key = NULL;
  fuzz_require(gm_model_value_at(model, 0, index, &key, &value, NULL) == GM_OK && key[0]);
  fuzz_require(gm_model_find_value(model, key, &same, NULL) == GM_OK && same.kind == value.kind);
  if (value.kind == GM_VALUE_STRING) fuzz_require(value.string[value.length] == '\0');
  if (value.kind != GM_VALUE_ARRAY) return;
  for (uint64_t i = 0; i < value.length && i < 100; i++) {
    fuzz_require(gm_model_value_element(model, key, i, &element, NULL) == GM_OK);
    fuzz_require(element.kind == value.element_kind && element.kind != GM_VALUE_ARRAY);
    if (element.kind == GM_VALUE_STRING) fuzz_require(element.string[element.length] == '\0');
  }
  fuzz_require(gm_model_value_element(model, key, value.length, &element, NULL) == GM_ERR_INVALID_ARGUMENT);
}

static void check_config(const gm_model *model) {
  gm_model_config config = {.struct_size = sizeof config};
  uint64_t stored = 0, unique = 0;
  gm_error err = {0};
  if (gm_model_value_count(model, 0) == 0) return; /* would look for a config.json */
  gm_status status = gm_model_read_config(model, &config, &err);
  fuzz_require(status == GM_OK || (err.status == status && err.message[0]));
  fuzz_require(status != GM_OK || (config.hidden > 0 && config.layers > 0));
  fuzz_require(gm_model_parameter_count(model, &stored, &unique, NULL) == GM_OK && unique <= stored);
}

static void check_model(const gm_model *model, uint64_t length) {
  uint64_t taken = 0;
  for (uint64_t i = 0; i < gm_model_tensor_count(model); i++) check_tensor(model, i, length, &taken);
  for (uint64_t i = 0; i < gm_model_value_count(model, 0); i++) check_value(model, i);
  check_config(model);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
  fuzz_open_model(bytes, length, false, check_model);
  fuzz_open_model(bytes, length, true, check_model);
  return 0;
}

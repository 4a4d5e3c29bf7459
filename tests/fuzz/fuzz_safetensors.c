/* Any bytes as a safetensors file: whatever opens must answer every question consistently, and nothing may leak. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz/fuzz_model.h"

/* Every accepted file must satisfy this, whatever is in it. */
static void check_tensor(const gm_model *model, uint64_t index, uint64_t length, uint64_t *at) {
  gm_tensor_info info = {.struct_size = sizeof info};
  uint64_t found = UINT64_MAX;
  fuzz_require(gm_model_tensor(model, index, &info, NULL) == GM_OK);
  fuzz_require(info.file_offset == *at && info.bytes <= length - *at);
  fuzz_require(info.rank <= GM_TENSOR_MAX_RANK && info.shard == 0);
  *at += info.bytes;
  fuzz_require(gm_model_find(model, info.name, &found, NULL) == GM_OK && found == index);
}

static void check_model(const gm_model *model, uint64_t length) {
  uint64_t at = length - gm_model_tensor_bytes(model);
  for (uint64_t i = 0; i < gm_model_tensor_count(model); i++) check_tensor(model, i, length, &at);
  fuzz_require(at == length);
  for (uint64_t i = 0; i < gm_model_metadata_count(model, 0); i++) {
    const char *key = NULL, *value = NULL;
    fuzz_require(gm_model_metadata(model, 0, i, &key, &value, NULL) == GM_OK && key && value);
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
  /* These have targets of their own: there holes are allowed. */
  if (length >= 4 && (memcmp(bytes, "GGUF", 4) == 0 || memcmp(bytes, "PK", 2) == 0)) return 0;
  fuzz_open_model(bytes, length, false, check_model);
  return 0;
}

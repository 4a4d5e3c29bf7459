/* Any bytes as an array of NumPy, or an archive of them: whatever opens must answer every question consistently, and
 * nothing may leak. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz/fuzz_model.h"

static void check_model(const gm_model *model, uint64_t length) {
  uint64_t taken = 0;
  for (uint64_t i = 0; i < gm_model_tensor_count(model); i++) {
    gm_tensor_info info = {.struct_size = sizeof info};
    uint64_t found = UINT64_MAX;
    fuzz_require(gm_model_tensor(model, i, &info, NULL) == GM_OK);
    fuzz_require(info.file_offset >= taken && info.bytes <= UINT64_MAX - info.file_offset);
    taken = info.file_offset + info.bytes;
    fuzz_require(taken <= length);
    fuzz_require(gm_model_find(model, info.name, &found, NULL) == GM_OK && found == i);
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
  fuzz_open_model(bytes, length, false, check_model);
  fuzz_open_model(bytes, length, true, check_model);
  return 0;
}

/* Any bytes as an array of NumPy, or an archive of them: whatever opens must answer every question consistently, and
 * nothing may leak. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/model/model.h"
#include "fuzz/fuzz.h"
#include "support/counted_services.h"

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

static void check_mode(const uint8_t *bytes, size_t length, bool header_only) {
  counted_services counted;
  counted_services_init(&counted);
  gm_model *model = NULL;
  gm_error err = {0};
  gm_status status = gm__model_open_memory(&counted.services, bytes, length, "fuzz", header_only, &model, &err);
  fuzz_require((status == GM_OK) == (model != NULL));
  fuzz_require(status == GM_OK || (err.status == status && err.message[0]));
  /* A member takes at least 46 bytes of the list; the end of an archive is looked for in 64 KiB at most. */
  fuzz_require(counted.peak_bytes <= 16384 + 64 * (uint64_t)length);
  if (model) check_model(model, header_only ? UINT64_MAX : length);
  gm_model_close(model);
  fuzz_require(counted.live_bytes == 0 && counted.wrong_releases == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
  check_mode(bytes, length, false);
  check_mode(bytes, length, true);
  return 0;
}

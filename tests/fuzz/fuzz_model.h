/* Any bytes as a model file, for the targets of its formats. */
#ifndef GM_TESTS_FUZZ_FUZZ_MODEL_H
#define GM_TESTS_FUZZ_FUZZ_MODEL_H

#include <string.h>

#include "core/model/model.h"
#include "fuzz/fuzz.h"
#include "support/counted_services.h"

/* Opens the bytes. `check` looks at each model that opens, whose data may end at `length`; a header alone may state any
 * place. A refusal has a reason, nothing leaks, and a small file cannot ask for much: an entry of its tables takes at
 * least 20 bytes. */
static inline void fuzz_open_model(const uint8_t *bytes, size_t length, bool header_only,
                                   void (*check)(const gm_model *model, uint64_t length)) {
  counted_services counted;
  counted_services_init(&counted);
  gm_model *model = NULL;
  gm_error err = {0};
  gm_status status = gm__model_open_memory(&counted.services, bytes, length, "fuzz", header_only, &model, &err);
  fuzz_require((status == GM_OK) == (model != NULL));
  fuzz_require(status == GM_OK || (err.status == status && err.message[0]));
  fuzz_require(counted.peak_bytes <= 16384 + 64 * (uint64_t)length);
  if (model) check(model, header_only ? UINT64_MAX : length);
  gm_model_close(model);
  fuzz_require(counted.live_bytes == 0 && counted.wrong_releases == 0);
}

#endif

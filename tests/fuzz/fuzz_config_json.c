/* Any bytes as a config.json: refused with a reason, or dimensions that are bounded. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/model/dimensions.h"
#include "core/model/model_config.h"
#include "fuzz/fuzz.h"

static void check_config(const gm_model_config *config) {
  fuzz_require(config->struct_size == sizeof *config);
  fuzz_require(memchr(config->architecture, '\0', sizeof config->architecture) != NULL);
  fuzz_require(config->hidden > 0 && config->hidden <= GM__DIM_VALUE_MAX);
  fuzz_require(config->layers <= GM__DIM_VALUE_MAX && config->context <= GM__DIM_VALUE_MAX);
  fuzz_require((config->window_period == 0) == (config->window == 0));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
  gm_model_config config = {.struct_size = sizeof config};
  gm_error err = {0};
  char *text = malloc(length ? length : 1);
  fuzz_require(text != NULL);
  if (length) memcpy(text, bytes, length);
  gm_status status = gm__model_config_parse_json(text, length, "fuzz", "op", &config, &err);
  free(text);
  fuzz_require(status == GM_OK || (err.status == status && err.message[0]));
  if (status == GM_OK) check_config(&config);
  return 0;
}

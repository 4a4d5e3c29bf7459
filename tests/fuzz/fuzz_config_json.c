/* Any bytes as a config.json: refused with a reason, or dimensions that are bounded, and parameters or a reason. */
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
  fuzz_require(config->layers <= GM_MODEL_LAYERS_MAX && config->kind_count <= GM_LAYER_KINDS_MAX);
  for (uint64_t i = 0; i < config->layers; i++) fuzz_require(config->kind_of[i] < config->kind_count);
}

/* Both readers write to the text. */
static char *copy_of(const uint8_t *bytes, size_t length) {
  char *text = malloc(length ? length : 1);
  fuzz_require(text != NULL);
  if (length) memcpy(text, bytes, length);
  return text;
}

/* The parameters are counted, or there is a reason. */
static void check_parameters(const uint8_t *bytes, size_t length, gm_model_config *config) {
  char *text = copy_of(bytes, length);
  fuzz_require(gm__config_parameters(NULL, text, length, config, NULL) == GM_OK);
  free(text);
  fuzz_require(memchr(config->uncounted, '\0', sizeof config->uncounted) != NULL);
  fuzz_require(config->parameters_counted == (config->uncounted[0] == '\0'));
  fuzz_require(config->kind_count <= GM_LAYER_KINDS_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
  gm_model_config config = {.struct_size = sizeof config};
  gm_error err = {0};
  char *text = copy_of(bytes, length);
  gm_status status = gm__model_config_parse_json(text, length, "fuzz", "op", &config, &err);
  free(text);
  fuzz_require(status == GM_OK || (err.status == status && err.message[0]));
  if (status != GM_OK) return 0;
  check_config(&config);
  check_parameters(bytes, length, &config);
  return 0;
}

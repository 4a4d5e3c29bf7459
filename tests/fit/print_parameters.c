/* print_parameters FILE...: of each config.json its parameters, how far the weights can be trusted, and why. */
#include <inttypes.h>
#include <stdio.h>

#include "gm/estimate.h"

static int print_one(const char *path) {
  static const char *const words[] = {"exact", "interval", "unknown"};
  gm_error err = {0};
  gm_model_config config = {.struct_size = sizeof config};
  const gm_estimate_settings settings = {.struct_size = sizeof settings, .context = 4096, .weight_type = GM_DTYPE_BF16};
  gm_memory_estimate estimate = {.struct_size = sizeof estimate};
  gm_status status = gm_model_config_load(NULL, path, &config, &err);
  if (status == GM_OK) status = gm_estimate_memory(NULL, &config, NULL, &settings, &estimate, &err);
  if (status != GM_OK) return printf("0\trefused\t%s\n", err.message) < 0;
  const gm_estimate_part *weights = &estimate.parts[GM_ESTIMATE_WEIGHTS];
  return printf("%" PRIu64 "\t%s\t%s\n", estimate.parameters, words[weights->standing], weights->reason) < 0;
}

int main(int count, char **paths) {
  for (int i = 1; i < count; i++) {
    if (print_one(paths[i])) return 1;
  }
  return count > 1 ? 0 : 2;
}

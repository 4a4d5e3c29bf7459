/* extend_config_manager: gm's keys have these names and defaults. The device alone differs: "cuda" there, auto here. */
#include "example.h"
#include "gm/config.h"

static const char *const defaults[][2] = {
    {"gpu.memory.max_fraction", "0.9"}, {"gpu.memory.cache_size", "100"}, {"gpu.memory.keep_in_vram", "true"},
    {"gpu.backend.enabled", "true"},    {"gpu.backend.device", "auto"},   {"gpu.ast.cache_enabled", "true"},
    {"gpu.ast.max_cache_size", "50"},
};

int main(void) {
  const gm_context_params params = {.struct_size = sizeof params, .ignore_environment = true};
  gm_context *ctx;
  char value[64];
  DO(gm_context_create(&params, &ctx, &err));
  for (size_t i = 0; i < sizeof defaults / sizeof *defaults; i++) {
    DO(gm_config_get(ctx, defaults[i][0], value, sizeof value, NULL, &err));
    printf("%s = %s\n", defaults[i][0], value);
    CLAIM(strcmp(value, defaults[i][1]) == 0);
  }
  DO(gm_config_set(ctx, "gpu.memory.max_fraction", "0.8", &err)); /* another name of memory_fraction */
  DO(gm_config_get(ctx, "memory_fraction", value, sizeof value, NULL, &err));
  CLAIM(strcmp(value, "0.8") == 0);
  DO(gm_context_destroy(ctx, &err));
  return 0;
}

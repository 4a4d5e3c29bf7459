/* Environment variables: GENESIS_CUDA_SEGMENT_SIZE and so on are GM_SEGMENT_SIZE and so on. The test sets them. */
#include "example.h"
#include "gm/config.h"

static const char *const variables[][3] = {
    {"GM_SEGMENT_SIZE", "segment_size", "1G"},
    {"GM_CACHE_SIZE", "cache_size", "1000"},
    {"GM_WARMUP_ENABLED", "warmup_enabled", "true"},
    {"GM_STATS_ENABLED", "stats_enabled", "true"}, /* no effect: gm always counts */
};

int main(void) {
  gm_context *ctx;
  char value[64];
  gm_config_source source;
  DO(gm_context_create(NULL, &ctx, &err));
  for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
    CLAIM(getenv(variables[i][0]));
    DO(gm_config_get(ctx, variables[i][1], value, sizeof value, &source, &err));
    printf("%s: %s = %s\n", variables[i][0], variables[i][1], value);
    CLAIM(source == GM_CONFIG_ENVIRONMENT && strcmp(value, variables[i][2]) == 0);
  }
  DO(gm_context_destroy(ctx, &err));
  return 0;
}

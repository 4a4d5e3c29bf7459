#include "tools/gmem/advise_trial.h"

#include <stdio.h>

#include "gm/config.h"
#include "tools/gmem/replay_run.h"
#include "tools/gmem/session.h"

/* Locked, because the last word is the environment's otherwise: the advice is about the trace, not about this shell. */
static gm_status trial_set(gm_context *ctx, const char *key, const char *value, gm_error *err) {
  gm_status status = gm_config_set(ctx, key, value, err);
  return status == GM_OK ? gm_config_lock(ctx, key, err) : status;
}

static gm_status trial_configure(gm_context *ctx, const advise_settings *settings, gm_error *err) {
  const char *const values[][2] = {
      {"allocation_strategy", settings->strategy ? settings->strategy : "auto"},
      {"warmup", settings->warm_up ? settings->warm_up : ""},
      {"max_pool_bytes", settings->max_pool_bytes ? settings->max_pool_bytes : "0"},
      {"warmup_enabled", "true"},
      {"pre_allocate", "false"},
      {"track_allocations", "false"},
  };
  gm_status status = GM_OK;
  for (size_t i = 0; i < sizeof values / sizeof *values && status == GM_OK; i++) {
    status = trial_set(ctx, values[i][0], values[i][1], err);
  }
  return status;
}

static gm_status trial_open(session *self, uint64_t capacity, const advise_settings *settings, gm_error *err) {
  static const session_choice choice = {.backend = "null", .device = 0};
  const gm_pool_params params = {.struct_size = sizeof params, .name = "advise"};
  char options[64] = "";
  if (capacity) snprintf(options, sizeof options, "null:capacity=%llu", (unsigned long long)capacity);
  gm_status status = session_begin(self, options, err);
  if (status == GM_OK) status = trial_configure(self->ctx, settings, err);
  if (status == GM_OK) status = session_open(self, &choice, 0, err);
  return status == GM_OK ? gm_pool_create(self->device, &params, &self->pool, err) : status;
}

gm_status advise_trial(const replay_events *events, uint64_t capacity, const advise_settings *settings,
                       advise_result *out, gm_error *err) {
  const replay_params params = {.runs = 1, .threads = 1};
  session self = {.ctx = NULL};
  replay_result result = {.failed = 0};
  gm_error closing = {.status = GM_OK};
  gm_status status = trial_open(&self, capacity, settings, err);
  if (status == GM_OK) status = replay_run(self.pool, events, &params, &result, err);
  gm_status closed = session_end(&self, &closing);
  *out = (advise_result){.stats = result.stats, .driver_allocs = result.driver_allocs_cold, .failed = result.failed};
  if (status != GM_OK || closed == GM_OK) return status;
  *err = closing;
  return closed;
}

double advise_fragmentation(const advise_result *result, uint64_t peak_live) {
  uint64_t reserved = result->stats.peak_reserved_bytes;
  return reserved > peak_live ? 1.0 - (double)peak_live / (double)reserved : 0;
}

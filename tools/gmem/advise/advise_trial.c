#include "tools/gmem/advise/advise_trial.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gm/cleanup.h"
#include "gm/config.h"
#include "tools/gmem/output/progress.h"
#include "tools/gmem/replay/replay_run.h"
#include "tools/gmem/replay/replay_worker.h"

enum { TRIAL_TIMES = 3 };

bool advise_on_null(const advise_target *target) { return strcmp(target->choice.backend, "null") == 0; }

unsigned advise_times(const advise_target *target) { return advise_on_null(target) ? 1 : TRIAL_TIMES; }

/* Locked, because the last word is the environment's otherwise: the advice is about the trace, not about this shell. */
static gm_status trial_set(gm_context *ctx, const char *key, const char *value, gm_error *err) {
  gm_status status = gm_config_set(ctx, key, value, err);
  return status == GM_OK ? gm_config_lock(ctx, key, err) : status;
}

static gm_status trial_configure(gm_context *ctx, const advise_settings *settings, gm_error *err) {
  const char *const values[][2] = {
      {"allocation_strategy", settings->strategy ? settings->strategy : "auto"},
      {"memory_fraction", settings->memory_fraction ? settings->memory_fraction : "0.9"},
      {"min_free_bytes", settings->min_free_bytes ? settings->min_free_bytes : "auto"},
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

static gm_status trial_open(session *self, const advise_target *target, const advise_settings *settings,
                            gm_error *err) {
  const bool is_null = advise_on_null(target);
  const gm_pool_params params = {.struct_size = sizeof params,
                                 .name = "advise",
                                 .no_vmm = target->no_vmm,
                                 .max_bytes = is_null ? 0 : target->capacity};
  char options[64] = "";
  if (is_null && target->capacity) {
    snprintf(options, sizeof options, "null:capacity=%llu", (unsigned long long)target->capacity);
  }
  gm_status status = session_begin_quietly(self, options, err);
  if (status == GM_OK) status = trial_configure(self->ctx, settings, err);
  if (status == GM_OK) status = session_open(self, &target->choice, 0, err);
  return status == GM_OK ? gm_pool_create(self->device, &params, &self->pool, err) : status;
}

gm_status advise_look(const advise_target *target, gm_device_info *out_info, bool *out_mapped, gm_error *err) {
  static const advise_settings defaults = {.strategy = NULL};
  session self = {.ctx = NULL};
  gm_status status = trial_open(&self, target, &defaults, err);
  if (status == GM_OK) {
    *out_info = *gm_device_get_info(self.device);
    *out_mapped = !target->no_vmm && (out_info->capabilities & GM_CAP_VMM) != 0;
  }
  const gm_status closed = session_end(&self, status == GM_OK ? err : NULL);
  return status == GM_OK ? closed : status;
}

static gm_status trial_once(const replay_events *events, const advise_target *target, const advise_settings *settings,
                            advise_result *out, gm_error *err) {
  const replay_params params = {.runs = 1, .threads = 1, .holes = true};
  session self = {.ctx = NULL};
  replay_result result = {.failed = 0};
  gm_error closing = {.status = GM_OK};
  gm_status status = trial_open(&self, target, settings, err);
  if (status == GM_OK) status = replay_run(self.pool, events, &params, &result, err);
  gm_status closed = session_end(&self, &closing);
  *out = (advise_result){.stats = result.stats,
                         .driver_allocs = result.driver_allocs_cold,
                         .warm_up_allocs = result.stats.driver_allocs - result.driver_allocs_cold,
                         .failed = result.failed,
                         .holes = result.holes};
  out->stats.hole_bytes = result.holes.hole_bytes; /* not those after the last free */
  out->stats.scattered_bytes = result.holes.scattered_bytes;
  out->stats.largest_hole_bytes = result.holes.largest_hole_bytes;
  if (status != GM_OK || closed == GM_OK) return status;
  *err = closing;
  return closed;
}

static uint64_t trial_more(uint64_t a, uint64_t b) { return a > b ? a : b; }

static void trial_worst(advise_result *worst, const advise_result *other) {
  if (other->stats.peak_reserved_bytes > worst->stats.peak_reserved_bytes) {
    worst->stats = other->stats;
    worst->holes = other->holes;
  }
  worst->driver_allocs = trial_more(worst->driver_allocs, other->driver_allocs);
  worst->warm_up_allocs = trial_more(worst->warm_up_allocs, other->warm_up_allocs);
  worst->failed = trial_more(worst->failed, other->failed);
}

gm_status advise_trial(const replay_events *events, const advise_target *target, const advise_settings *settings,
                       advise_result *out, gm_error *err) {
  gm_status status = trial_once(events, target, settings, out, err);
  for (unsigned i = 1; i < advise_times(target) && status == GM_OK; i++) {
    advise_result again;
    progress_show("replaying", i, advise_times(target));
    status = trial_once(events, target, settings, &again, err);
    if (status == GM_OK) trial_worst(out, &again);
  }
  return status;
}

/* ---- compaction ---- */

/* A request that finds no memory leaves its slot empty. */
static gm_status trial_event(gm_pool *pool, const replay_event *event, gm_buffer **buffer, gm_error *err) {
  if (event->is_free) {
    gm_buffer_release(*buffer, NULL);
    *buffer = NULL;
    return GM_OK;
  }
  const gm_buffer_params params = {.struct_size = sizeof params,
                                   .request = {.bytes = event->bytes, .flags = GM_RELOCATABLE},
                                   .fallback = GM_FALLBACK_REFUSE};
  const gm_status status = gm_buffer_create(pool, &params, buffer, err);
  return status == GM_ERR_OUT_OF_DEVICE_MEMORY || status == GM_ERR_OVER_LIMIT ? GM_OK : status;
}

static gm_status trial_compact(gm_pool *pool, advise_compaction *out, gm_error *err) {
  gm_pool_clear(pool);
  gm_status status = gm_pool_fragmentation(pool, &out->before, err);
  if (status == GM_OK) status = gm_pool_compact(pool, NULL, &out->report, err);
  return status == GM_OK ? gm_pool_fragmentation(pool, &out->after, err) : status;
}

static gm_status trial_buffers(const replay_events *events, gm_pool *pool, advise_compaction *out, gm_error *err) {
  gm_buffer **buffers = calloc(events->allocs + (size_t)1, sizeof *buffers);
  gm_status status = GM_OK;
  if (!buffers) return replay_fail(err, GM_ERR_OUT_OF_HOST_MEMORY, "no host memory for the buffers");
  for (size_t i = 0; i < events->count && status == GM_OK; i++) {
    status = trial_event(pool, &events->list[i], &buffers[events->list[i].slot], err);
  }
  if (status == GM_OK) status = trial_compact(pool, out, err);
  for (size_t i = 0; i < events->allocs; i++) gm_buffer_release(buffers[i], NULL);
  free(buffers);
  return status;
}

gm_status advise_try_compaction(const replay_events *events, const advise_target *target,
                                const advise_settings *settings, advise_compaction *out, gm_error *err) {
  session self = {.ctx = NULL};
  gm_error closing = {.status = GM_OK};
  *out = (advise_compaction){.before = {.struct_size = sizeof out->before},
                             .after = {.struct_size = sizeof out->after},
                             .report = {.struct_size = sizeof out->report}};
  gm_status status = trial_open(&self, target, settings, err);
  if (status == GM_OK) status = trial_buffers(events, self.pool, out, err);
  const gm_status closed = session_end(&self, &closing);
  if (status != GM_OK || closed == GM_OK) return status;
  *err = closing;
  return closed;
}

double advise_unused(const advise_result *result, uint64_t peak_live) {
  uint64_t reserved = result->stats.peak_reserved_bytes;
  return reserved > peak_live ? 1.0 - (double)peak_live / (double)reserved : 0;
}

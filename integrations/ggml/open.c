/* The environment's words, gm's device and pool, and their end. */
#include <ggml-impl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ggml_gm.h"

gm_ggml gm_ggml_self;

static bool is_one_of(const char *name, const char *value, const char *first, const char *second) {
  if (strcmp(value, first) == 0 || strcmp(value, second) == 0) return true;
  GGML_LOG_ERROR("ggml-gm: %s=%s: say %s or %s\n", name, value, first, second);
  return false;
}

static bool read_switch(const char *name, bool fallback, const char *on, const char *off, bool *out) {
  const char *value = getenv(name);
  *out = value ? strcmp(value, on) == 0 : fallback;
  return !value || is_one_of(name, value, on, off);
}

/* Bytes with an optional K, M or G behind them. */
static bool read_bytes(const char *name, uint64_t *out) {
  const char *value = getenv(name);
  *out = 0;
  if (!value) return true;
  char *end;
  const unsigned long long count = strtoull(value, &end, 10);
  const char *unit = strchr("KMG", *end);
  const unsigned shift = unit && *end ? 10U * (unsigned)(1 + (*end == 'M') + 2 * (*end == 'G')) : 0;
  if (end == value || !unit || (*end && end[1]) || count > UINT64_MAX >> shift) {
    GGML_LOG_ERROR("ggml-gm: %s=%s: say a number of bytes, such as 8M\n", name, value);
    return false;
  }
  *out = (uint64_t)count << shift;
  return true;
}

bool gm_ggml_settings_read(gm_ggml_settings *out) {
  const char *device = getenv("GGML_GM_DEVICE");
  out->device = device ? device : "cpu";
  if (strcmp(out->device, "null") == 0) {
    GGML_LOG_ERROR("ggml-gm: GGML_GM_DEVICE=null: that device has no memory to compute in\n");
    return false;
  }
  out->plan = getenv("GGML_GM_PLAN");
  return read_switch("GGML_GM_HOST", true, "1", "0", &out->host) &&
         read_switch("GGML_GM_FALLBACK", true, "host", "none", &out->fall_back) &&
         read_switch("GGML_GM_REPORT", false, "1", "0", &out->report) &&
         read_bytes("GGML_GM_MAX_BUFFER", &out->max_buffer);
}

bool gm_ggml_open(void) {
  gm_ggml *self = &gm_ggml_self;
  gm_error err = {.status = GM_OK};
  if (!gm_ggml_check_begin(self->settings.plan)) return false;
  const gm_pool_params params = {.struct_size = sizeof params, .name = "ggml"};
  if (gm_context_create(NULL, &self->ctx, &err) ||
      gm_open_for_bytes(self->ctx, self->settings.device, 1, &self->device, &err) ||
      gm_stream_create(self->device, &self->stream, &err) || gm_pool_create(self->device, &params, &self->pool, &err)) {
    GGML_LOG_ERROR("ggml-gm: %s\n", err.message);
    return false;
  }
  const gm_device_info *info = gm_device_get_info(self->device);
  self->in_host = info->api == GM_API_CPU;
  self->alignment = info->alignment > 64 ? (size_t)info->alignment : 64;
  return true;
}

void gm_ggml_check(gm_status status, const gm_error *err) {
  if (status != GM_OK) GGML_ABORT("ggml-gm: %s: %s", gm_status_name(status), err->message);
}

static void report(const gm_ggml *self) {
  gm_stats stats = {.struct_size = sizeof stats};
  if (!self->pool || gm_pool_stats(self->pool, &stats) != GM_OK) return;
  fprintf(stderr,
          "ggml-gm: %s: %zu buffers, %zu of them in host memory, %zu wrapped; peak %" PRIu64 " bytes asked, %" PRIu64
          " reserved; %" PRIu64 " driver calls; %" PRIu64 " live\n",
          gm_device_get_info(self->device)->name, self->buffers, self->fallbacks, self->wrapped,
          stats.peak_requested_bytes, stats.peak_reserved_bytes, stats.driver_allocs, stats.active);
}

/* ggml never unloads a backend, so this runs when the process ends. */
__attribute__((destructor)) static void close_all(void) {
  gm_ggml *self = &gm_ggml_self;
  if (self->settings.report) report(self);
  if (self->pool) gm_ggml_check_print();
  gm_stream_close(self->stream, NULL);
  gm_pool_destroy(self->pool, NULL);
  gm_device_close(self->device, NULL);
  gm_context_destroy(self->ctx, NULL);
}

#include "core/device/pressure.h"

#include "core/algo/classifier.h"
#include "core/base/cancel.h"
#include "core/base/error.h"
#include "core/base/saturate.h"
#include "core/base/sized.h"
#include "core/context/config.h"
#include "core/device/device.h"
#include "core/discovery/device_figures.h"
#include "core/host/host_info.h"

/* Invariant: levels come out of one classifier. A pool may have thresholds of its own. Each device, pool, context and
 * watch remembers the level that it said last, which is all that hysteresis needs. Two threads that ask at once may
 * both move it by their own reading. Either is a level that was true. */

gm_status gm__pressure_check(const gm_pressure *out, const char *op, gm_error *err) {
  return gm__sized_check(out, sizeof *out, op, "out", err);
}

static gm_pressure_thresholds pressure_thresholds(gm_context *ctx) {
  return (gm_pressure_thresholds){.medium = gm__config_fraction(ctx, "pressure.medium"),
                                  .high = gm__config_fraction(ctx, "pressure.high"),
                                  .critical = gm__config_fraction(ctx, "pressure.critical"),
                                  .hysteresis = gm__config_fraction(ctx, "pressure.hysteresis")};
}

gm_status gm__pressure_fill(gm_context *ctx, const gm__pressure_ratio *of, _Atomic int *level, gm_pressure *out,
                            gm_error *err) {
  const gm_pressure_thresholds thresholds = of->thresholds ? *of->thresholds : pressure_thresholds(ctx);
  gm_status status = gm__classifier_check(&thresholds, err);
  if (status) return status;
  const uint64_t used = gm__min(of->used_bytes, of->total_bytes);
  double ratio = of->total_bytes ? (double)used / (double)of->total_bytes : 1.0;
  gm_pressure_level last = (gm_pressure_level)atomic_load_explicit(level, memory_order_relaxed);
  gm_pressure_level now = gm__classifier_level(last, ratio, &thresholds);
  if (now < of->least) now = of->least;
  atomic_store_explicit(level, (int)now, memory_order_relaxed);
  const gm_pressure told = {
      .struct_size = sizeof told, .level = now, .ratio = ratio, .used_bytes = used, .total_bytes = of->total_bytes};
  gm__sized_out(out, &told, sizeof told);
  return GM_OK;
}

gm_status gm__pressure_read_device(void *subject, _Atomic int *level, gm_pressure *out, gm_error *err) {
  gm_device *device = subject;
  gm_memory_info memory = {.struct_size = sizeof memory};
  gm_status status = gm_device_memory_info(device, &memory, err);
  if (status) return status;
  if (memory.total_bytes == GM_UNKNOWN_BYTES || memory.free_bytes == GM_UNKNOWN_BYTES) {
    return gm__fail(err, GM_ERR_UNAVAILABLE, "gm_device_pressure", "nobody says how much memory of \"%s\" is free",
                    device->info.name);
  }
  uint64_t effective_free = gm__add_sat(memory.free_bytes, memory.reclaimable_bytes);
  const gm__pressure_ratio ratio = {.used_bytes = gm__sub_sat(memory.total_bytes, effective_free),
                                    .total_bytes = memory.total_bytes,
                                    .least = memory.borrowed_bytes ? GM_PRESSURE_BORROWED : GM_PRESSURE_LOW};
  return gm__pressure_fill(device->ctx, &ratio, level, out, err);
}

gm_status gm_device_pressure(gm_device *device, gm_pressure *out, gm_error *err) {
  GM__UNCANCELLED();
  static const char op[] = "gm_device_pressure";
  gm_status status = gm__device_check(device, op, err);
  if (!status) status = gm__pressure_check(out, op, err);
  return status ? status : gm__pressure_read_device(device, &device->pressure, out, err);
}

/* Host memory that gm itself keeps for reuse. */
static uint64_t pressure_host_pooled(void) {
  gm_device_info host = {.struct_size = sizeof host, .type = GM_DEVICE_TYPE_CPU};
  return gm__card_pooled(gm__device_card(NULL, &host));
}

gm_status gm__pressure_read_host(void *subject, _Atomic int *level, gm_pressure *out, gm_error *err) {
  gm_context *ctx = subject;
  gm_host_info host = {.struct_size = sizeof host};
  if (!gm__host_memory_read(gm__context_services(ctx), ctx->host_root, &host)) {
    return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, "gm_host_pressure", "no host memory to read the figures");
  }
  if (host.total_bytes == GM_UNKNOWN_BYTES || host.free_bytes == GM_UNKNOWN_BYTES) {
    return gm__fail(err, GM_ERR_UNAVAILABLE, "gm_host_pressure", "the system does not say how much memory is free");
  }
  const uint64_t used = gm__sub_sat(host.total_bytes, gm__add_sat(host.free_bytes, pressure_host_pooled()));
  const gm__pressure_ratio ratio = {.used_bytes = used, .total_bytes = host.total_bytes};
  return gm__pressure_fill(ctx, &ratio, level, out, err);
}

gm_status gm_host_pressure(gm_context *ctx, gm_pressure *out, gm_error *err) {
  GM__UNCANCELLED();
  static const char op[] = "gm_host_pressure";
  gm_status status = gm__context_check(ctx, op, err);
  if (!status) status = gm__pressure_check(out, op, err);
  return status ? status : gm__pressure_read_host(ctx, &ctx->host_pressure, out, err);
}

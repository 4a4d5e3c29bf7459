/* How far each part of an estimate can be trusted. A part is exact only where gm follows the engine step by step. */
#include <stdio.h>
#include <string.h>

#include "core/base/saturate.h"
#include "core/fit/estimate_parts.h"

enum { STANDING_KNOWN_PERCENT = 5, STANDING_UNKNOWN_PERCENT = 15 };

static gm_estimate_part standing_exact(uint64_t bytes) {
  return (gm_estimate_part){.standing = GM_STANDING_EXACT, .range = {bytes, bytes, bytes}};
}

static gm_estimate_part standing_interval(gm_memory_range range, const char *why) {
  gm_estimate_part out = {.standing = GM_STANDING_INTERVAL, .range = range};
  snprintf(out.reason, sizeof out.reason, "%s", why);
  return out;
}

static const gm_memory_range standing_nothing = {0, 0, UINT64_MAX};

static gm_estimate_part standing_unknown(const char *why) {
  gm_estimate_part out = {.standing = GM_STANDING_UNKNOWN, .range = standing_nothing};
  snprintf(out.reason, sizeof out.reason, "%s", why);
  return out;
}

static const char standing_assumed[] = "counted from dimensions, in f16, which no file states";

/* Each parameter was counted: what is left open is its type. */
static gm_estimate_part standing_counted(const gm_model_config *config, uint64_t bytes,
                                         const gm_estimate_settings *settings) {
  const uint64_t off = gm__mul_sat(bytes / 100, STANDING_KNOWN_PERCENT);
  const gm_memory_range around = {bytes, gm__sub_sat(bytes, off), gm__add_sat(bytes, off)};
  if (settings->weight_type) return standing_exact(bytes);
  if (config->matrix_bits > 0) return standing_interval(around, "which matrices are quantised is not stated");
  if (config->weight_type) return standing_exact(bytes);
  return standing_interval(around, standing_assumed);
}

/* Counted from dimensions, biases, tables of positions and stored copies are missing, or more where gm does not know
 * the architecture. */
static gm_estimate_part standing_weights(const gm__estimate_parts *parts, bool from_tensors,
                                         const gm_estimate_settings *settings) {
  const gm_model_config *config = parts->shape.config;
  const uint64_t bytes = gm__add_sat(parts->weights.host, parts->weights.device);
  const uint64_t percent = parts->shape.row ? STANDING_KNOWN_PERCENT : STANDING_UNKNOWN_PERCENT;
  if (from_tensors && !config->unsure[0]) return standing_exact(bytes);
  if (from_tensors) {
    const gm_memory_range range = {bytes, gm__sub_sat(bytes, parts->weights.tied), bytes};
    return range.low == bytes ? standing_exact(bytes) : standing_interval(range, config->unsure);
  }
  if (config->parameters_counted) return standing_counted(config, bytes, settings);
  if (config->unsure[0]) return standing_unknown(config->unsure);
  if (config->uncounted[0]) return standing_unknown(config->uncounted);
  const uint64_t off = gm__mul_sat(bytes / 100, percent);
  const gm_memory_range range = {bytes, gm__sub_sat(bytes, off), gm__add_sat(bytes, off)};
  const bool assumed = !settings->weight_type && !config->weight_type && !(config->matrix_bits > 0);
  return standing_interval(range, assumed ? standing_assumed : "counted from dimensions, without biases");
}

static gm_estimate_part standing_compute(const gm__estimate_parts *parts) {
  const gm__compute *compute = &parts->compute;
  const gm_memory_range range = {gm__add_sat(compute->host.bytes, compute->device.bytes),
                                 gm__add_sat(compute->host.low, compute->device.low),
                                 gm__add_sat(compute->host.high, compute->device.high)};
  if (parts->shape.config->unsure[0]) return standing_unknown(parts->shape.config->unsure);
  if (parts->shape.experts && !parts->shape.experts_used) {
    return standing_unknown("nothing says how many experts a token passes");
  }
  const char *unbounded = compute->bounded ? NULL : parts->shape.traits->unbounded;
  if (unbounded) return standing_unknown(unbounded);
  switch (compute->method) {
    case GM_ESTIMATE_EXACT: return standing_exact(range.bytes);
    case GM_ESTIMATE_FORMULA: return standing_interval(range, "the engine's plan follows a formula here");
    case GM_ESTIMATE_INTERVAL: break;
  }
  if (parts->shape.row && parts->shape.row_is_open) {
    return standing_interval(range, "the tensors say which order its operations have, and are not there");
  }
  if (parts->shape.row) return standing_interval(range, "the sizes of some small tensors are taken by rule");
  return standing_interval(range, "the operations of this architecture are not known one by one");
}

static bool standing_is_unknown(const gm_memory_estimate *estimate, gm_estimate_part_kind part) {
  return estimate->parts[part].standing == GM_STANDING_UNKNOWN;
}

/* An unknown part has no figure anywhere. The cache and the state are so together. */
static void standing_forget(gm_memory_estimate *out) {
  if (standing_is_unknown(out, GM_ESTIMATE_WEIGHTS)) {
    out->parameters = out->host_weights = out->device_weights = out->tied_weights = 0;
  }
  if (standing_is_unknown(out, GM_ESTIMATE_CACHE)) out->host_kv = out->device_kv = 0;
  if (standing_is_unknown(out, GM_ESTIMATE_COMPUTE)) out->host_compute = out->device_compute = standing_nothing;
}

void gm__standing_fill(const gm__estimate_parts *parts, bool from_tensors, const gm_estimate_settings *settings,
                       gm_memory_estimate *out) {
  const char *unsure = parts->shape.config->unsure;
  const uint64_t kept = gm__add_sat(parts->kv.host, parts->kv.device), state = parts->kv.state;
  const uint64_t cache = gm__sub_sat(kept, state);
  out->parts[GM_ESTIMATE_WEIGHTS] = standing_weights(parts, from_tensors, settings);
  out->parts[GM_ESTIMATE_CACHE] = unsure[0] ? standing_unknown(unsure) : standing_exact(cache);
  out->parts[GM_ESTIMATE_STATE] = unsure[0] ? standing_unknown(unsure) : standing_exact(state);
  out->parts[GM_ESTIMATE_COMPUTE] = standing_compute(parts);
  out->standing = GM_STANDING_EXACT;
  for (int i = 0; i < GM_ESTIMATE_PARTS; i++) {
    if (out->parts[i].standing > out->standing) out->standing = out->parts[i].standing;
  }
  standing_forget(out);
}

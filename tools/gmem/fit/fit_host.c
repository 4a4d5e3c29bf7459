/* Weights that were asked to be on the host: the experts of the first layers, and tensors by name. */
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/gmem/fit/fit.h"

enum { HOST_PATTERN = 512, HOST_ALIGNMENT = 128 };

static uint64_t host_least(uint64_t a, uint64_t b) { return a < b ? a : b; }

/* ---- tensors by name ---- */

static gm_status host_refuse(gm_error *err, const char *pattern, const char *why) {
  err->status = GM_ERR_INVALID_ARGUMENT;
  snprintf(err->message, sizeof err->message, "--override-tensor: \"%.100s\": %.200s", pattern, why);
  return err->status;
}

/* Embeddings are on the host in any case. */
static uint64_t host_layer(const fit_question *self, const char *name) {
  if (strncmp(name, "output", 6) == 0) return self->config.layers;
  if (strncmp(name, "blk.", 4) != 0) return GM_FIT_LAYERS_MAX;
  const uint64_t layer = strtoull(name + 4, NULL, 10);
  return layer < self->config.layers ? layer : GM_FIT_LAYERS_MAX;
}

/* A tensor that two patterns name counts once: the first decides, as in the engine. */
static void host_override(fit_question *self, const gm_tensor_info *tensor) {
  const uint64_t layer = host_layer(self, tensor->name);
  if (layer >= GM_FIT_LAYERS_MAX) return;
  uint64_t *bytes = strstr(tensor->name, "_exps") ? self->override_experts : self->override_weights;
  bytes[layer] = fit_add(bytes[layer], fit_add(tensor->bytes, HOST_ALIGNMENT - 1) / HOST_ALIGNMENT * HOST_ALIGNMENT);
}

static gm_status host_compile(const char *from, size_t length, regex_t *out, gm_error *err) {
  char pattern[HOST_PATTERN], why[128];
  snprintf(pattern, sizeof pattern, "%.*s", (int)length, from);
  if (length >= sizeof pattern) return host_refuse(err, pattern, "it is too long");
  const char *equals = strrchr(pattern, '=');
  if (!equals || strcmp(equals, "=CPU") != 0) return host_refuse(err, pattern, "say PATTERN=CPU");
  if (strstr(pattern, "(?") || strstr(pattern, "\\d")) return host_refuse(err, pattern, "this syntax is not read here");
  pattern[equals - pattern] = '\0';
  const int code = regcomp(out, pattern, REG_EXTENDED | REG_NOSUB);
  if (code == 0) return GM_OK;
  regerror(code, out, why, sizeof why);
  return host_refuse(err, pattern, why);
}

enum { HOST_PATTERNS = 32 };

typedef struct host_patterns {
  regex_t patterns[HOST_PATTERNS];
  size_t count;
} host_patterns;

static gm_status host_compile_all(const char *list, host_patterns *out, gm_error *err) {
  while (*list) {
    const size_t length = strcspn(list, ",");
    if (out->count == HOST_PATTERNS) return host_refuse(err, list, "more patterns than 32");
    const gm_status status = host_compile(list, length, &out->patterns[out->count], err);
    if (status != GM_OK) return status;
    out->count++;
    list += length + (list[length] == ',');
  }
  return GM_OK;
}

gm_status fit_read_overrides(fit_question *self, gm_error *err) {
  host_patterns all = {.count = 0};
  gm_tensor_info tensor = {.struct_size = sizeof tensor};
  if (!self->overrides) return GM_OK;
  if (!self->model) return host_refuse(err, self->overrides, "it needs a model file, whose tensors have names");
  gm_status status = host_compile_all(self->overrides, &all, err);
  for (uint64_t i = 0; status == GM_OK && i < gm_model_tensor_count(self->model); i++) {
    status = gm_model_tensor(self->model, i, &tensor, err);
    bool is_named = false;
    for (size_t k = 0; status == GM_OK && k < all.count && !is_named; k++) {
      is_named = regexec(&all.patterns[k], tensor.name, 0, NULL, 0) == 0;
    }
    if (is_named) host_override(self, &tensor);
  }
  for (size_t k = 0; k < all.count; k++) regfree(&all.patterns[k]);
  return status;
}

/* ---- figures ---- */

/* Experts that leave a device leave its layers, and lie beside what is on the host in any case. */
static uint64_t host_take(fit_question *self, const gm_fit_request *request) {
  uint64_t moved = 0;
  memset(self->moved, 0, sizeof self->moved);
  for (uint32_t i = 0; i < request->layer_count; i++) {
    gm_fit_layer *layer = &self->layers[i];
    const bool all = i < self->experts_on_host;
    const uint64_t weights = host_least(layer->weight_bytes, self->override_weights[i]);
    const uint64_t experts = all ? layer->expert_bytes : host_least(layer->expert_bytes, self->override_experts[i]);
    layer->weight_bytes -= weights;
    layer->expert_bytes -= experts;
    self->moved[i] = weights + experts;
    moved = fit_add(moved, self->moved[i]);
  }
  return moved;
}

/* The host computes with them, as it does with a layer of its own. */
static gm_status host_compute(fit_question *self, const gm_estimate_settings *settings, gm_fit_request *out,
                              gm_error *err) {
  gm_estimate_settings partly = *settings;
  gm_memory_estimate estimate = {.struct_size = sizeof estimate};
  partly.place = GM_ESTIMATE_SPLIT;
  partly.device_layers = fit_layer_count(self) - 1;
  const gm_status status = gm_estimate_memory(NULL, &self->config, self->model, &partly, &estimate, err);
  if (status != GM_OK || estimate.host_compute.bytes <= self->estimate.host_compute.bytes) return status;
  out->host_fixed_bytes += estimate.host_compute.bytes - self->estimate.host_compute.bytes;
  self->host_compute = estimate.host_compute;
  return GM_OK;
}

gm_status fit_move_to_host(fit_question *self, const gm_estimate_settings *settings, gm_fit_request *out,
                           gm_error *err) {
  self->host_compute = self->estimate.host_compute;
  const uint64_t moved = self->device_count ? host_take(self, out) : 0;
  if (!moved) return GM_OK;
  out->host_fixed_bytes = fit_add(out->host_fixed_bytes, moved);
  for (uint32_t i = 0; i < self->device_count; i++) self->room[i].overhead_bytes += out->partial_bytes;
  out->partial_bytes = 0; /* it counts already */
  return host_compute(self, settings, out, err);
}

void fit_settle_host(fit_question *self) {
  gm_memory_estimate *estimate = &self->estimate;
  const gm_memory_range before = estimate->host_compute, now = self->host_compute;
  uint64_t moved = 0;
  for (uint32_t i = self->plan.host.layer_count; i < fit_layer_count(self); i++) moved += self->moved[i];
  if (!moved) return;
  estimate->host_weights += moved;
  estimate->device_weights -= moved;
  if (now.bytes <= before.bytes) return;
  estimate->host_compute = now;
  estimate->total.bytes += now.bytes - before.bytes;
  estimate->total.high += now.high - before.high;
  estimate->total.low = estimate->total.low - before.low + now.low;
}

/* What was asked to be on the host: the experts of the first layers. */
#include <string.h>

#include "tools/gmem/fit/fit.h"

/* Experts that leave a device leave its layers, and lie beside what is on the host in any case. */
static uint64_t host_take(fit_question *self, const gm_fit_request *request) {
  uint64_t moved = 0;
  memset(self->moved, 0, sizeof self->moved);
  for (uint32_t i = 0; i + 1 < request->layer_count && i < self->experts_on_host; i++) {
    self->moved[i] = self->layers[i].expert_bytes;
    self->layers[i].expert_bytes = 0;
    moved += self->moved[i];
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
  out->host_fixed_bytes += moved;
  for (uint32_t i = 0; i < self->device_count; i++) self->room[i].overhead_bytes += out->partial_bytes;
  out->partial_bytes = 0; /* it counts already */
  return host_compute(self, settings, out, err);
}

void fit_settle_host(fit_question *self) {
  gm_memory_estimate *estimate = &self->estimate;
  const gm_memory_range before = estimate->host_compute, now = self->host_compute;
  uint64_t moved = 0;
  for (uint32_t i = self->plan.host.layer_count; i < self->config.layers; i++) moved += self->moved[i];
  if (!moved) return;
  estimate->host_weights += moved;
  estimate->device_weights -= moved;
  if (now.bytes <= before.bytes) return;
  estimate->host_compute = now;
  estimate->total.bytes += now.bytes - before.bytes;
  estimate->total.high += now.high - before.high;
  estimate->total.low = estimate->total.low - before.low + now.low;
}

#include "tools/gmem/fit/fit_beside.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gm/model_value.h"
#include "tools/gmem/fit/fit.h"

enum { BESIDE_ALIGNMENT = 128 }; /* of tensors on a device */

const char *fit_beside_word(fit_beside_kind kind) {
  static const char *const words[] = {"projector", "draft", "adapter", "model"};
  return words[kind];
}

static gm_status beside_refuse(gm_error *err, const fit_beside *it, const char *why) {
  err->status = GM_ERR_INVALID_ARGUMENT;
  snprintf(err->message, sizeof err->message, "%.200s: %s", it->path, why);
  return err->status;
}

/* ---- what a file says ---- */

static bool beside_says(const fit_beside *it, const char *key, const char *word) {
  gm_model_value value = {.struct_size = sizeof value};
  return gm_model_find_value(it->model, key, &value, NULL) == GM_OK && value.kind == GM_VALUE_STRING &&
         strcmp(value.string, word) == 0;
}

static uint64_t beside_number(const fit_beside *it, const char *key) {
  gm_model_value value = {.struct_size = sizeof value};
  if (gm_model_find_value(it->model, key, &value, NULL) != GM_OK) return 0;
  if (value.kind == GM_VALUE_U64) return value.u64;
  return value.kind == GM_VALUE_I64 && value.i64 > 0 ? (uint64_t)value.i64 : 0;
}

static uint64_t beside_padded(uint64_t bytes) {
  return fit_add(bytes, BESIDE_ALIGNMENT - 1) / BESIDE_ALIGNMENT * BESIDE_ALIGNMENT;
}

/* Projectors whose images have one size. Others choose it for each image, or hear. */
static bool beside_is_fixed(const fit_beside *it) {
  static const char *const types[] = {"mlp", "mlp_norm", "ldp", "ldpv2", "gemma3", "idefics3", "janus_pro"};
  for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
    if (beside_says(it, "clip.projector_type", types[i])) return true;
  }
  return false;
}

/* The text's width, from matrices behind the layers. One side may be wider, where patches are joined before it. */
static uint64_t beside_text(const fit_beside *it) {
  gm_tensor_info tensor = {.struct_size = sizeof tensor};
  uint64_t widest = 0;
  for (uint64_t i = 0; i < gm_model_tensor_count(it->model); i++) {
    if (gm_model_tensor(it->model, i, &tensor, NULL) != GM_OK || tensor.rank != 2) continue;
    if (strncmp(tensor.name, "mm.", 3) != 0) continue;
    const uint64_t *side = tensor.shape, narrow = side[0] < side[1] ? side[0] : side[1];
    if (narrow > widest) widest = narrow;
  }
  return widest < 1 << 20 ? widest : 1 << 20;
}

/* Each patch of an image has rows of activations: at least two, and one of the feed-forward part. It has at most eight
 * with two of those, or four with three of the text's width. Without flash attention every patch looks at every one.
 * clip.cpp planned 24 projectors of four types, and all are inside. In `ldp` a convolution of each channel takes nine
 * copies in f16, beside two rows of the text's width: seven in all. `ldpv2` has a quarter of the patches there. */
static void beside_projector(fit_beside *it, bool is_plain) {
  const uint64_t side = beside_number(it, "clip.vision.image_size"),
                 patch = beside_number(it, "clip.vision.patch_size");
  const uint64_t width = beside_number(it, "clip.vision.embedding_length");
  const uint64_t feed = beside_number(it, "clip.vision.feed_forward_length");
  const uint64_t heads = beside_number(it, "clip.vision.attention.head_count");
  const bool is_sane = side && patch && patch <= side && side <= 8192 && width && width < 1 << 20 && feed < 1 << 20 &&
                       heads && heads < 1 << 12;
  if (!is_sane || !beside_is_fixed(it)) {
    snprintf(it->why, sizeof it->why, "the compute buffer of a projector whose images have no fixed size is unknown");
    return;
  }
  const uint64_t patches = side / patch * (side / patch);
  const uint64_t scores = is_plain ? heads * patches * patches : 0, least = patches * (2 * width + feed);
  const uint64_t text = beside_text(it), copied = text > width && beside_says(it, "clip.projector_type", "ldp");
  const uint64_t layers = 8 * width + 2 * feed, behind = 4 * (copied ? text : width) + 3 * text;
  it->compute.low = 4 * (least > scores ? least : scores);
  it->compute.high = 4 * (patches * (layers > behind ? layers : behind) + 2 * scores);
  it->compute.bytes = it->compute.high;
}

/* "blk.7.": 7; anything else is beside the output. */
static uint64_t beside_layer(const char *name, uint64_t layers) {
  if (strncmp(name, "blk.", 4) != 0) return layers;
  const uint64_t layer = strtoull(name + 4, NULL, 10);
  return layer < layers ? layer : layers;
}

static gm_status beside_tensors(fit_beside *it, uint64_t layers, gm_error *err) {
  gm_tensor_info tensor = {.struct_size = sizeof tensor};
  for (uint64_t i = 0; i < gm_model_tensor_count(it->model); i++) {
    const gm_status status = gm_model_tensor(it->model, i, &tensor, err);
    if (status != GM_OK) return status;
    uint64_t *sum = &it->by_layer[beside_layer(tensor.name, layers)];
    *sum = fit_add(*sum, beside_padded(tensor.bytes));
  }
  return GM_OK;
}

/* ---- opening ---- */

static gm_status beside_read(fit_question *self, fit_beside *it, gm_error *err) {
  const uint64_t layers = self->config.layers;
  switch (it->kind) {
    case FIT_PROJECTOR:
      if (!beside_says(it, "general.architecture", "clip")) return beside_refuse(err, it, "it is no projector");
      beside_projector(it, self->settings.plain_attention);
      return beside_tensors(it, 0, err);
    case FIT_ADAPTER:
      if (!beside_says(it, "general.type", "adapter")) return beside_refuse(err, it, "it is no adapter");
      if (!beside_says(it, "general.architecture", self->config.architecture)) {
        return beside_refuse(err, it, "it is an adapter of another architecture");
      }
      return beside_tensors(it, layers, err);
    default:
      it->config.struct_size = sizeof it->config;
      if (gm_model_value_count(it->model, 0) == 0) return beside_refuse(err, it, "it is no GGUF file");
      return gm_model_read_config(it->model, &it->config, err);
  }
}

gm_status fit_beside_open(fit_question *self, gm_error *err) {
  gm_status status = GM_OK;
  for (uint32_t i = 0; i < self->beside_count && status == GM_OK; i++) {
    fit_beside *it = &self->beside[i];
    status = gm_model_open_header(NULL, it->path, &it->model, err);
    if (status == GM_OK) status = beside_read(self, it, err);
  }
  return status;
}

void fit_beside_close(fit_question *self) {
  for (uint32_t i = 0; i < self->beside_count; i++) {
    gm_model_close(self->beside[i].model);
    self->beside[i].model = NULL;
  }
}

/* ---- figures ---- */

static uint64_t beside_sum(const fit_beside *it) {
  uint64_t sum = 0;
  for (int i = 0; i < GM_FIT_LAYERS_MAX; i++) sum = fit_add(sum, it->by_layer[i]);
  return sum;
}

/* A model whole on devices; engines keep the cache of a draft in f16. */
static gm_status beside_model(fit_question *self, fit_beside *it, const gm_estimate_settings *settings, gm_error *err) {
  gm_estimate_settings run = *settings;
  gm_memory_estimate estimate = {.struct_size = sizeof estimate};
  if (it->kind == FIT_DRAFT) run.key_type = run.value_type = GM_DTYPE_F64;
  const gm_status status = gm_estimate_memory(NULL, &it->config, it->model, &run, &estimate, err);
  if (status != GM_OK) return status;
  const gm_memory_range *compute = &estimate.device_compute;
  if (estimate.standing == GM_STANDING_UNKNOWN) {
    snprintf(it->why, sizeof it->why, "how much the %s takes is unknown", fit_beside_word(it->kind));
  }
  it->device_bytes = fit_add(estimate.device_weights, estimate.device_kv);
  it->device_bytes = fit_add(it->device_bytes, self->outlook == FIT_AT_BEST ? compute->low : compute->bytes);
  it->spare_bytes = self->outlook == FIT_AT_BEST ? 0 : compute->high - compute->bytes;
  it->less_bytes = self->outlook == FIT_AT_BEST ? 0 : compute->bytes - compute->low;
  it->host_bytes = fit_add(fit_add(estimate.host_weights, estimate.host_kv), estimate.host_compute.bytes);
  it->host_bytes = fit_add(it->host_bytes, estimate.output);
  if (it->kind == FIT_OTHER && self->device_count) {
    it->device_bytes = fit_add(it->device_bytes, fit_overhead(&it->config, estimate.micro_batch));
  }
  return GM_OK;
}

static gm_status beside_measure(fit_question *self, fit_beside *it, const gm_estimate_settings *settings,
                                gm_error *err) {
  it->host_bytes = it->spare_bytes = it->less_bytes = 0;
  if (it->kind == FIT_DRAFT || it->kind == FIT_OTHER) return beside_model(self, it, settings, err);
  it->device_bytes = beside_sum(it);
  if (it->kind != FIT_PROJECTOR) return GM_OK;
  const bool best = self->outlook == FIT_AT_BEST;
  it->less_bytes = best ? 0 : it->compute.bytes - it->compute.low;
  it->device_bytes = fit_add(it->device_bytes, best ? it->compute.low : it->compute.bytes);
  return GM_OK;
}

/* Onto a device, which has so much less for layers. */
static void beside_take(fit_question *self, uint32_t device, uint64_t bytes, uint64_t spare) {
  self->taken[device] = fit_add(self->taken[device], bytes);
  self->room[device].margin_bytes = fit_add(self->room[device].margin_bytes, spare);
}

static void beside_place(fit_question *self, const fit_beside *it, gm_fit_request *out) {
  out->host_fixed_bytes = fit_add(out->host_fixed_bytes, it->host_bytes);
  if (it->kind == FIT_ADAPTER) {
    for (uint32_t i = 0; i < out->layer_count; i++) {
      self->layers[i].weight_bytes = fit_add(self->layers[i].weight_bytes, it->by_layer[i]);
    }
  } else if (!self->device_count) {
    out->host_fixed_bytes = fit_add(out->host_fixed_bytes, it->device_bytes);
  } else if (it->kind != FIT_DRAFT || self->device_count == 1) {
    beside_take(self, 0, it->device_bytes, it->spare_bytes);
  } else { /* each device may get a layer more or less than its share */
    const uint64_t layer = it->device_bytes / (it->config.layers + 1);
    for (uint32_t i = 0; i < self->device_count; i++) {
      if (self->draft_share[i] <= 0) continue;
      beside_take(self, i, (uint64_t)((double)it->device_bytes * self->draft_share[i]), layer + it->spare_bytes);
    }
  }
}

gm_status fit_beside_figures(fit_question *self, const gm_estimate_settings *settings, gm_fit_request *out,
                             gm_error *err) {
  memset(self->taken, 0, sizeof self->taken);
  for (uint32_t i = 0; i < self->beside_count; i++) {
    const gm_status status = beside_measure(self, &self->beside[i], settings, err);
    if (status != GM_OK) return status;
    beside_place(self, &self->beside[i], out);
  }
  return GM_OK;
}

/* The part of all layers on devices that a device has. */
static double beside_share(const fit_question *self, uint32_t device) {
  const uint32_t layers = self->plan.device_layers;
  return layers ? (double)self->parts[device].layer_count / layers : device == 0;
}

bool fit_beside_share(fit_question *self, bool widens) {
  bool is_covered = true;
  for (uint32_t i = 0; i < self->device_count; i++) {
    const double share = beside_share(self, i), before = self->draft_share[i];
    is_covered = is_covered && share <= before;
    self->draft_share[i] = widens && before > share ? before : share;
  }
  return is_covered;
}

/* Invariant: each tensor counts in one component. */
#include "gm/components.h"

#include <stdio.h>
#include <string.h>

#include "core/base/cancel.h"
#include "core/base/error.h"
#include "core/base/saturate.h"
#include "core/base/sized.h"
#include "core/fit/component_parts.h"
#include "gm/model_value.h"

enum { COMPONENT_PIXELS = 1024 };

/* ---- one component ---- */

const gm__component_family *gm__component_recognise(const gm__component_view *view, const gm_component_settings *run,
                                                    gm_component *out) {
  static const gm__component_family families[] = {{"flux", GM_COMPONENT_DENOISER, gm__component_flux},
                                                  {"chroma", GM_COMPONENT_DENOISER, gm__component_chroma},
                                                  {"flux2", GM_COMPONENT_DENOISER, gm__component_flux2},
                                                  {"qwen_image", GM_COMPONENT_DENOISER, gm__component_qwen_image},
                                                  {"sd3", GM_COMPONENT_DENOISER, gm__component_sd3},
                                                  {"unet", GM_COMPONENT_DENOISER, gm__component_unet},
                                                  {"vae", GM_COMPONENT_IMAGE_DECODER, gm__component_vae},
                                                  {"clip", GM_COMPONENT_TEXT_ENCODER, gm__component_clip},
                                                  {"t5", GM_COMPONENT_TEXT_ENCODER, gm__component_t5},
                                                  {"whisper", GM_COMPONENT_SPEECH, gm__component_whisper}};
  out->cache = gm__component_range(0, 0, "");
  for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
    if (!families[i].estimate(view, run, out)) continue;
    snprintf(out->family, sizeof out->family, "%s", families[i].name);
    out->kind = families[i].kind;
    return &families[i];
  }
  static const char *const why[] = {
      "the operations of this denoiser are not counted", "the operations of this text encoder are not counted",
      "the operations of this image decoder are not counted", "the operations of this model of speech are not counted",
      "what this component computes is not known"};
  out->compute = gm__component_unknown(why[out->kind]);
  return NULL;
}

/* ---- names ---- */

/* Prefixes of the tensors in files that hold several components. `named`: the next part of the name belongs to it. */
static const struct {
  const char *prefix;
  gm_component_kind kind;
  bool named;
} component_prefixes[] = {{"model.diffusion_model.", GM_COMPONENT_DENOISER, false},
                          {"first_stage_model.", GM_COMPONENT_IMAGE_DECODER, false},
                          {"vae.", GM_COMPONENT_IMAGE_DECODER, false},
                          {"cond_stage_model.", GM_COMPONENT_TEXT_ENCODER, false},
                          {"conditioner.embedders.", GM_COMPONENT_TEXT_ENCODER, true},
                          {"text_encoders.", GM_COMPONENT_TEXT_ENCODER, true}};

static const char component_others[] = "others";

/* The component of a tensor: its name, and its kind. */
static void component_name(const char *tensor, char *out, gm_component_kind *kind) {
  snprintf(out, GM_COMPONENT_NAME_SIZE, "%s", component_others);
  *kind = GM_COMPONENT_OTHER;
  for (size_t i = 0; i < sizeof component_prefixes / sizeof *component_prefixes; i++) {
    const size_t begun = strlen(component_prefixes[i].prefix);
    if (strncmp(tensor, component_prefixes[i].prefix, begun) != 0) continue;
    const size_t length = component_prefixes[i].named ? begun + strcspn(tensor + begun, ".") : begun - 1;
    if (length >= GM_COMPONENT_NAME_SIZE || tensor[length] != '.') return;
    snprintf(out, GM_COMPONENT_NAME_SIZE, "%.*s", (int)length, tensor);
    *kind = component_prefixes[i].kind;
  }
}

typedef struct component_list {
  gm_component items[GM_COMPONENTS_MAX];
  bool computes[GM_COMPONENTS_MAX]; /* it has more than rows of numbers */
  uint32_t count;
} component_list;

/* The last place is for all that find no other. */
static uint32_t component_place(component_list *list, const char *name, gm_component_kind kind) {
  uint32_t i = 0;
  while (i < list->count && strcmp(list->items[i].name, name) != 0) i++;
  if (i < list->count) return i;
  if (i == GM_COMPONENTS_MAX) return i - 1;
  list->count++;
  list->items[i].kind = i + 1 < GM_COMPONENTS_MAX ? kind : GM_COMPONENT_OTHER;
  snprintf(list->items[i].name, sizeof list->items[i].name, "%s", i + 1 < GM_COMPONENTS_MAX ? name : component_others);
  return i;
}

static void component_add(component_list *list, uint32_t place, const gm_tensor_info *tensor) {
  gm_component *item = &list->items[place];
  uint64_t elements = 1;
  for (uint32_t i = 0; i < tensor->rank; i++) elements = gm__mul_sat(elements, tensor->shape[i]);
  item->parameters = gm__add_sat(item->parameters, elements);
  item->weight_bytes = gm__add_sat(item->weight_bytes, tensor->bytes);
  list->computes[place] = list->computes[place] || tensor->rank > 1;
}

/* Put every tensor into its component; with `whole` all into one. */
static void component_collect(const gm_model *model, bool whole, component_list *list) {
  gm_tensor_info tensor = {.struct_size = sizeof tensor};
  for (uint64_t i = 0; i < gm_model_tensor_count(model); i++) {
    char name[GM_COMPONENT_NAME_SIZE] = "";
    gm_component_kind kind = GM_COMPONENT_OTHER;
    if (gm_model_tensor(model, i, &tensor, NULL) != GM_OK) continue;
    if (!whole) component_name(tensor.name, name, &kind);
    component_add(list, component_place(list, name, kind), &tensor);
  }
}

/* ---- a file ---- */

static bool component_is_prefixed(const gm_model *model) {
  gm_tensor_info tensor = {.struct_size = sizeof tensor};
  const char *const prefix = component_prefixes[0].prefix;
  for (uint64_t i = 0; i < gm_model_tensor_count(model); i++) {
    if (gm_model_tensor(model, i, &tensor, NULL) == GM_OK && strncmp(tensor.name, prefix, strlen(prefix)) == 0) {
      return true;
    }
  }
  return false;
}

/* GGUF's names of denoisers. gm counts the operations of some. */
static bool component_is_denoiser(const gm_model *model) {
  static const char *const names[] = {"flux", "sd1", "sdxl",  "sd3",     "aura",   "hidream",   "cosmos",
                                      "ltxv", "wan", "hyvid", "lumina2", "chroma", "qwen_image"};
  gm_model_value value = {.struct_size = sizeof value};
  if (gm_model_find_value(model, "general.architecture", &value, NULL) != GM_OK || !value.string) return false;
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    if (strcmp(value.string, names[i]) == 0) return true;
  }
  return false;
}

/* Rows of numbers alone, as a schedule of noise, compute nothing. */
static void component_finish(const gm_model *model, const gm_component_settings *run, component_list *list) {
  for (uint32_t i = 0; i < list->count; i++) {
    gm_component *item = &list->items[i];
    char prefix[GM_COMPONENT_NAME_SIZE + 1];
    snprintf(prefix, sizeof prefix, "%s%s", item->name, item->name[0] ? "." : "");
    gm__component_recognise(&(gm__component_view){model, prefix}, run, item);
    if (!list->computes[i]) item->compute = gm__component_range(0, 0, "");
  }
}

void gm__component_whole(const gm_model *model, const gm_component_settings *run, gm_component *out) {
  component_list list = {.count = 0};
  component_collect(model, true, &list);
  out->parameters = list.items[0].parameters;
  out->weight_bytes = list.items[0].weight_bytes;
  gm__component_recognise(&(gm__component_view){model, ""}, run, out);
}

static void component_find(const gm_model *model, const gm_component_settings *run, component_list *list) {
  const bool prefixed = component_is_prefixed(model);
  if (prefixed) {
    component_collect(model, false, list);
    component_finish(model, run, list);
    return;
  }
  gm__component_whole(model, run, &list->items[0]);
  list->count = list->items[0].family[0] != '\0';
  if (list->count || !component_is_denoiser(model)) return;
  list->items[0].kind = GM_COMPONENT_DENOISER;
  gm__component_recognise(&(gm__component_view){model, ""}, run, &list->items[0]);
  list->count = 1;
}

/* ---- the call ---- */

gm_status gm__component_run(const char *op, const gm_component_settings *settings, gm_component_settings *out,
                            gm_error *err) {
  *out = (gm_component_settings){.struct_size = sizeof *out};
  const gm_status status = settings ? gm__sized_in(out, sizeof *out, settings, op, "settings", err) : GM_OK;
  if (status != GM_OK) return status;
  if (out->width > GM_IMAGE_SIDE_MAX || out->height > GM_IMAGE_SIDE_MAX) {
    return gm__bad_argument(err, op, "an image of %u by %u pixels: a side has at most %d", out->width, out->height,
                            (int)GM_IMAGE_SIDE_MAX);
  }
  if (!out->width) out->width = COMPONENT_PIXELS;
  if (!out->height) out->height = COMPONENT_PIXELS;
  if (!out->images) out->images = 1;
  return GM_OK;
}

gm_status gm_estimate_components(const gm_model *model, const gm_component_settings *settings, gm_component *out,
                                 uint32_t capacity, uint32_t *out_count, gm_error *err) {
  GM__UNCANCELLED();
  static const char op[] = "gm_estimate_components";
  gm_component_settings run;
  component_list list = {.count = 0};
  if (!model || !out || !out_count) {
    return gm__bad_argument(err, op, "`%s` is NULL", !model ? "model" : out ? "out_count" : "out");
  }
  const gm_status status = gm__component_run(op, settings, &run, err);
  if (status != GM_OK) return status;
  component_find(model, &run, &list);
  if (list.count > capacity) {
    return gm__bad_argument(err, op, "`capacity` is %u, for %u components", capacity, list.count);
  }
  memcpy(out, list.items, list.count * sizeof *out);
  *out_count = list.count;
  return GM_OK;
}

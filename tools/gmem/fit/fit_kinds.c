#include "tools/gmem/fit/fit_kinds.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* The name of a layer, by what it keeps. */
static void kind_name_cache(char *text, size_t size, const gm_layer_kind *kind) {
  const bool attends = (kind->flags & GM_LAYER_ATTENDS) != 0, recurs = (kind->flags & GM_LAYER_RECURRENT) != 0;
  if (attends && recurs) {
    snprintf(text, size, "attention and state");
  } else if (recurs) {
    snprintf(text, size, "recurrent");
  } else if (kind->flags & GM_LAYER_SHARES) {
    snprintf(text, size, "shared cache");
  } else if (!attends) {
    snprintf(text, size, "no cache");
  } else if (kind->flags & GM_LAYER_COMPRESSED) {
    snprintf(text, size, "compressed cache");
  } else if (kind->window) {
    snprintf(text, size, "window %" PRIu64, kind->window);
  } else {
    snprintf(text, size, "full attention");
  }
}

static void kind_name(char *text, size_t size, const fit_question *self, uint32_t layer) {
  const gm_model_config *config = &self->config;
  if (layer == config->layers) {
    snprintf(text, size, "output");
    return;
  }
  const gm_layer_kind *kind = &config->kinds[config->kind_of[layer]];
  if (kind->flags & GM_LAYER_UNUSED) {
    snprintf(text, size, "not loaded");
    return;
  }
  kind_name_cache(text, size, kind);
  if (kind->flags & GM_LAYER_EXPERTS) strncat(text, ", experts", size - strlen(text) - 1);
}

static fit_kind *kind_of_name(fit_kind *kinds, uint32_t *count, const char *name) {
  for (uint32_t i = 0; i < *count; i++) {
    if (strcmp(kinds[i].name, name) == 0) return &kinds[i];
  }
  if (*count == FIT_KINDS) {
    snprintf(kinds[FIT_KINDS - 1].name, FIT_KIND_NAME, "others");
    return &kinds[FIT_KINDS - 1];
  }
  fit_kind *kind = &kinds[(*count)++];
  *kind = (fit_kind){.layers = 0};
  snprintf(kind->name, sizeof kind->name, "%s", name);
  return kind;
}

/* Tensors that were asked to be on the host, in a row of their own. */
static void kind_moved(const fit_question *self, fit_kind *out, uint32_t *count) {
  fit_kind *kind = NULL;
  for (uint32_t i = 0; i < fit_layer_count(self); i++) {
    if (!self->moved[i]) continue;
    if (!kind) kind = kind_of_name(out, count, "on the host, as asked");
    kind->layers++;
    *(self->overrides ? &kind->weight_bytes : &kind->expert_bytes) += self->moved[i];
  }
}

uint32_t fit_kinds(const fit_question *self, fit_kind *out) {
  uint32_t count = 0;
  char name[FIT_KIND_NAME];
  for (uint32_t i = 0; i < fit_layer_count(self); i++) {
    const gm_fit_layer *layer = &self->layers[i];
    kind_name(name, sizeof name, self, i);
    fit_kind *kind = kind_of_name(out, &count, name);
    kind->layers++;
    kind->weight_bytes += layer->weight_bytes;
    kind->expert_bytes += layer->expert_bytes;
    kind->kv_bytes += layer->kv_bytes;
  }
  kind_moved(self, out, &count);
  return count;
}

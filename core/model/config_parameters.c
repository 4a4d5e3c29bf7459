/* Invariants: either all counts are those of the family's class, or none is given and the reason is. */
#include "core/model/model_config.h"

#include <stdio.h>
#include <string.h>

#include "core/model/config_families.h"
#include "core/model/config_formula.h"
#include "core/model/config_key.h"
#include "core/model/model_memory.h"

/* The counts of one file, and what they are made with. */
typedef struct parameters_reader {
  gm__config_values values;
  gm__formula formula;
  gm_layer_kind kinds[GM_LAYER_KINDS_MAX];
  uint32_t kind_count;
  uint8_t kind_of[GM_MODEL_LAYERS_MAX];
} parameters_reader;

static void parameters_unknown(gm_model_config *out, const char *why) {
  snprintf(out->uncounted, sizeof out->uncounted, "%s", why);
}

/* Nobody has looked at all keys, and one of them may say what gm does not know. */
static void parameters_unseen(gm_model_config *out, const char *why) {
  parameters_unknown(out, why);
  if (!out->unsure[0]) snprintf(out->unsure, sizeof out->unsure, "%s", why);
}

static const char *parameters_text(const parameters_reader *reader, const char *key) {
  const gm__config_value *value = gm__config_values_find(&reader->values, key, strlen(key));
  return value && value->is.form == GM__CONFIG_TEXT ? value->is.text : "";
}

/* The type of the whole, and that of its language model. */
static bool parameters_begin(parameters_reader *reader, gm_model_config *out) {
  const char *type = parameters_text(reader, "model_type"), *whole = parameters_text(reader, ".model_type");
  const char *rules = gm__family_rules(type), *around = "";
  if (rules && strcmp(type, whole) != 0 && whole[0]) around = gm__family_around(whole);
  if (rules && around) {
    gm__formula_init(&reader->values, around, rules, gm__family_general(), &reader->formula);
    return true;
  }
  snprintf(out->uncounted, sizeof out->uncounted, "gm does not know how parameters of the family \"%.40s\" are counted",
           rules ? whole : type);
  return false;
}

/* The kinds that the layers had, told apart by their parameters too. */
static bool parameters_place(parameters_reader *reader, const gm_model_config *config, uint64_t layer) {
  gm_layer_kind kind = config->kinds[config->kind_of[layer]];
  uint32_t at = 0;
  kind.parameters = gm__formula_value(&reader->formula, "layer", layer);
  kind.expert_parameters = gm__formula_value(&reader->formula, "experts", layer);
  while (at < reader->kind_count && memcmp(&reader->kinds[at], &kind, sizeof kind) != 0) at++;
  if (at == GM_LAYER_KINDS_MAX) return false;
  if (at == reader->kind_count) reader->kinds[reader->kind_count++] = kind;
  reader->kind_of[layer] = (uint8_t)at;
  return true;
}

static void parameters_count(parameters_reader *reader, gm_model_config *out) {
  gm__formula *formula = &reader->formula;
  const uint64_t layers = gm__formula_value(formula, "L", 0);
  if (!formula->problem[0] && layers != out->layers) {
    parameters_unknown(out, "the file states two different numbers of layers");
    return;
  }
  const uint64_t embedding = gm__formula_value(formula, "embed", 0), output = gm__formula_value(formula, "head", 0);
  const uint64_t other = gm__formula_value(formula, "other", 0);
  for (uint64_t layer = 0; layer < out->layers && !formula->problem[0]; layer++) {
    if (parameters_place(reader, out, layer)) continue;
    parameters_unknown(out, "there are too many kinds of layers");
    return;
  }
  if (formula->problem[0]) {
    parameters_unknown(out, formula->problem);
    return;
  }
  out->parameters_counted = true;
  out->embedding_parameters = embedding;
  out->output_parameters = output;
  out->other_parameters = other;
  out->kind_count = reader->kind_count;
  memcpy(out->kinds, reader->kinds, sizeof out->kinds);
  memcpy(out->kind_of, reader->kind_of, sizeof out->kind_of);
}

gm_status gm__config_parameters(const gm_services *services, char *text, uint64_t length, gm_model_config *out,
                                gm_error *err) {
  void *room = NULL;
  if (length > GM__PARAMETERS_JSON_MAX) {
    parameters_unseen(out, "the file is larger than that of any model");
    return GM_OK;
  }
  gm_status status = gm__model_alloc(services, 1, sizeof(parameters_reader), &room, err);
  if (status != GM_OK) return status;
  parameters_reader *reader = room;
  if (!gm__config_values_read(text, length, &reader->values) || reader->values.overflowed) {
    parameters_unseen(out, "the file has more keys and lists than any model's");
  } else {
    gm__config_doubts(&reader->values, out);
    if (parameters_begin(reader, out)) parameters_count(reader, out);
  }
  gm__model_release(services, room, 1, sizeof(parameters_reader));
  return GM_OK;
}

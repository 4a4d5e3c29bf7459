/* A model's dimensions from a config.json: one row per key. Invariants: a key that gm knows holds a number, a bool or
 * null, and is there once in its object. A key of an inner object (text_config) counts more than one of an outer
 * object, and an earlier row more than a later one. It reads over keys that gm does not know. */
#include <stdio.h>
#include <string.h>

#include "core/base/error.h"
#include "core/base/input_file.h"
#include "core/model/config_architecture.h"
#include "core/model/config_json_keys.h"
#include "core/model/config_quantised.h"
#include "core/model/json_scan.h"
#include "core/model/model_config.h"
#include "core/model/model_memory.h"

/* Objects inside the outermost one whose keys are the language model's. */
static const char *const json_inner[] = {"text_config", "llm_config", "language_config", "ffn_config", "attn_config"};

typedef struct json_config {
  gm__json_scan scan;
  gm__json_names names;
  gm__dimensions config;
  uint32_t rank[GM__DIM_FIELDS]; /* of the key that stated a field: the larger counts more */
  bool type_seen_inside;
  gm__quantised quantisation;
  bool quantised; /* then the type is that of the arithmetic, not of the weights */
  bool lists_attending, attends[GM_MODEL_LAYERS_MAX];
  uint32_t blocks; /* layers that are one part each: which, as letters of Nemotron-H: M, E, * and - */
  char block[GM_MODEL_LAYERS_MAX];
} json_config;

/* ---- one value ---- */

static int json_first(json_config *reader) {
  uint64_t at = gm__json_next_at(&reader->scan);
  return at < reader->scan.length ? (unsigned char)reader->scan.text[at] : -1;
}

/* A number or a bool. Null and what comes in its place where a field does not apply is not stated. */
static bool json_number(json_config *reader, bool *out_stated, uint64_t *out) {
  gm__json_scan *scan = &reader->scan;
  int first = json_first(reader);
  uint64_t at = scan->at;
  *out_stated = first != 'n';
  if (first == 'n') return gm__json_skip(scan);
  *out = first == 't';
  if (first == 't' || first == 'f') return gm__json_skip(scan);
  if (!gm__json_integer(scan, out)) return false;
  return *out <= GM__DIM_VALUE_MAX || gm__json_problem(scan, at, "a number above 2^40 where a dimension belongs");
}

/* The list that a field has a number in for each layer; GM__LISTS: none. */
static gm__layer_list json_list_of(gm__dimension field) {
  if (field == GM__DIM_HEADS) return GM__LIST_HEADS;
  if (field == GM__DIM_KV_HEADS) return GM__LIST_KV_HEADS;
  return field == GM__DIM_INTERMEDIATE ? GM__LIST_INTERMEDIATE : GM__LISTS;
}

/* True says something of these; elsewhere it is a mistake, and not the number 1. */
static bool json_may_be_true(gm__dimension field) {
  static const gm__dimension flags[] = {GM__DIM_TIED,        GM__DIM_USE_WINDOW,   GM__DIM_ENCODER_DECODER,
                                        GM__DIM_MULTI_QUERY, GM__DIM_NEW_DECODER,  GM__DIM_FORWARD_ADJUSTED,
                                        GM__DIM_CAUSAL,      GM__DIM_WINDOW_PERIOD};
  for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
    if (flags[i] == field) return true;
  }
  return false;
}

/* Read a list with a number for each layer, and give the largest. */
static bool json_list(json_config *reader, gm__layer_list which, uint64_t *out_largest) {
  gm__json_scan *scan = &reader->scan;
  uint32_t count = 0;
  *out_largest = 0;
  gm__json_array_begin(scan);
  while (gm__json_array_next(scan)) {
    const uint64_t at = gm__json_next_at(scan);
    bool stated = false;
    uint64_t number = 0;
    if (!json_number(reader, &stated, &number)) return false;
    if (number > *out_largest) *out_largest = number;
    if (which == GM__LISTS) continue;
    if (scan->text[at] == 't') return gm__json_problem(scan, at, "an integer is expected");
    if (count == GM_MODEL_LAYERS_MAX) return gm__json_problem(scan, at, "more than 512 layers");
    if (!gm__dimensions_list(&reader->config, which, count++, number)) {
      return gm__json_problem(scan, at, "a number of a layer is too large");
    }
  }
  if (which != GM__LISTS) reader->config.listed[which] = count;
  return !scan->problem;
}

/* "LLLG" in place of a number: three layers with a window, then one that attends to everything. Other letters say
 * nothing. */
static bool json_window_letters(json_config *reader, bool *out_stated, uint64_t *out) {
  gm__json_text letters;
  if (!gm__json_string(&reader->scan, &letters)) return false;
  const size_t windows = strspn(letters.text, "L");
  *out_stated = strcmp(letters.text + windows, "G") == 0;
  *out = windows + 1;
  return true;
}

/* Two names of one object must agree where nothing but the dimension itself can be meant. A number beside a list is
 * that of layers in general. */
static bool json_contradicts(const json_config *reader, gm__dimension field, bool inside, uint64_t number) {
  const bool guarded = field == GM__DIM_HIDDEN || field == GM__DIM_LAYERS || field == GM__DIM_HEADS ||
                       field == GM__DIM_KV_HEADS || field == GM__DIM_EXPERTS || field == GM__DIM_EXPERTS_USED ||
                       field == GM__DIM_EXPERT_INTERMEDIATE;
  const gm__layer_list list = json_list_of(field);
  if (list != GM__LISTS && reader->config.listed[list] > 0) return false;
  const bool same_object = reader->rank[field] > 0 && (reader->rank[field] > GM__JSON_KEYS) == inside;
  return guarded && same_object && reader->config.value[field] != number;
}

static bool json_take(json_config *reader, uint32_t row, bool inside) {
  gm__dimension field = gm__json_keys[row].field;
  const bool letters = field == GM__DIM_WINDOW_PERIOD && json_first(reader) == '"';
  uint32_t rank = (inside ? 2 * GM__JSON_KEYS : GM__JSON_KEYS) - row;
  bool stated = false;
  uint64_t number = 0;
  const uint64_t at = gm__json_next_at(&reader->scan);
  const int first = json_first(reader);
  if (first == 't' && !json_may_be_true(field)) {
    return gm__json_problem(&reader->scan, at, "an integer is expected");
  }
  if (first == '[') {
    stated = true;
    if (!json_list(reader, json_list_of(field), &number)) return false;
  } else if (!(letters ? json_window_letters : json_number)(reader, &stated, &number)) {
    return false;
  }
  if (!stated) return true;
  if (json_contradicts(reader, field, inside, number)) {
    return gm__json_problem(&reader->scan, at, "another name of the same dimension has another value");
  }
  if (rank < reader->rank[field]) return true;
  reader->rank[field] = rank;
  gm__dimensions_state(&reader->config, field, number);
  return true;
}

/* ---- keys with a reader of their own ---- */

static bool json_model_type(json_config *reader, bool inside) {
  gm__json_text type;
  uint64_t at = gm__json_next_at(&reader->scan);
  if (!gm__json_string(&reader->scan, &type)) return false;
  char *to = reader->config.architecture;
  const char *name = gm__architecture_of_type(type.text);
  if (strlen(name) >= sizeof reader->config.architecture) {
    return gm__json_problem(&reader->scan, at, "a model_type of more than 31 bytes");
  }
  if (name[0] == '\0' || (reader->type_seen_inside && !inside)) return true;
  memcpy(to, name, strlen(name) + 1);
  reader->type_seen_inside = inside;
  return true;
}

static bool json_is_recurrent(const gm__json_text *type) {
  static const char *const names[] = {"linear_attention", "mamba", "mamba2", "conv", "recurrent", "linear"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    if (gm__json_text_is(type, names[i])) return true;
  }
  return false;
}

static bool json_layer_types(json_config *reader) {
  gm__json_text type;
  if (json_first(reader) == 'n') return gm__json_skip(&reader->scan);
  gm__json_array_begin(&reader->scan);
  uint32_t count = 0;
  while (gm__json_array_next(&reader->scan) && gm__json_string(&reader->scan, &type)) {
    bool windowed = gm__json_text_is(&type, "sliding_attention") || gm__json_text_is(&type, "chunked_attention");
    if (count == GM_MODEL_LAYERS_MAX) return gm__json_problem(&reader->scan, type.at, "more than 512 layers");
    gm__dimensions_list(&reader->config, GM__LIST_WINDOWED, count, windowed);
    gm__dimensions_list(&reader->config, GM__LIST_RECURRENT, count, !windowed && json_is_recurrent(&type));
    count++;
  }
  reader->config.listed[GM__LIST_WINDOWED] = reader->config.listed[GM__LIST_RECURRENT] = count;
  return !reader->scan.problem;
}

static bool json_block(json_config *reader, uint64_t at, char block) {
  if (reader->blocks == GM_MODEL_LAYERS_MAX) return gm__json_problem(&reader->scan, at, "more than 512 layers");
  reader->block[reader->blocks++] = block;
  return true;
}

/* Layers that are one part each: as a text of letters, or as a list of names. */
static bool json_blocks(json_config *reader) {
  gm__json_text text;
  const int first = json_first(reader);
  if (first == '"') {
    if (!gm__json_string(&reader->scan, &text)) return false;
    for (const char *letter = text.text; *letter; letter++) {
      if (!json_block(reader, text.at, *letter)) return false;
    }
    return true;
  }
  if (first != '[') return gm__json_skip(&reader->scan);
  gm__json_array_begin(&reader->scan);
  while (gm__json_array_next(&reader->scan) && gm__json_string(&reader->scan, &text)) {
    const bool attends = gm__json_text_is(&text, "full_attention") || gm__json_text_is(&text, "attention");
    const char other = gm__json_text_is(&text, "moe") ? 'E' : gm__json_text_is(&text, "mlp") ? '-' : 'M';
    if (!json_block(reader, text.at, attends ? '*' : other)) return false;
  }
  return !reader->scan.problem;
}

/* The numbers of the layers that attend; the others are recurrent. */
static bool json_attending(json_config *reader) {
  uint64_t layer = 0;
  if (json_first(reader) == 'n') return gm__json_skip(&reader->scan);
  gm__json_array_begin(&reader->scan);
  while (gm__json_array_next(&reader->scan)) {
    const uint64_t at = gm__json_next_at(&reader->scan);
    if (!gm__json_integer(&reader->scan, &layer)) return false;
    if (layer >= GM_MODEL_LAYERS_MAX) return gm__json_problem(&reader->scan, at, "a layer beyond the 512th");
    reader->attends[layer] = true;
  }
  reader->lists_attending = true;
  return !reader->scan.problem;
}

/* A type that gm does not know says nothing. The first one in a file counts; the two keys of one object must agree.
 * `of_object` is GM_DTYPE_F64 until one of them is read. */
static bool json_weight_type(json_config *reader, gm_dtype *of_object) {
  static const struct {
    const char *name;
    gm_dtype type;
  } types[] = {{"float32", GM_DTYPE_F32}, {"float16", GM_DTYPE_F16}, {"bfloat16", GM_DTYPE_BF16}};
  gm__json_text name;
  if (json_first(reader) != '"') return gm__json_skip(&reader->scan);
  if (!gm__json_string(&reader->scan, &name)) return false;
  const char *plain = strncmp(name.text, "torch.", 6) == 0 ? name.text + 6 : name.text;
  for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
    if (strcmp(plain, types[i].name) != 0) continue;
    if (*of_object != GM_DTYPE_F64 && *of_object != types[i].type) {
      return gm__json_problem(&reader->scan, name.at, "\"dtype\" and \"torch_dtype\" have different values");
    }
    *of_object = types[i].type;
    if (reader->config.weight_type == GM_DTYPE_F64) reader->config.weight_type = types[i].type;
  }
  return true;
}

/* ---- objects ---- */

typedef struct json_seen {
  bool row[GM__JSON_KEYS];
  bool type, layers, torch_dtype, dtype, attending, blocks;
  gm_dtype weights; /* GM_DTYPE_F64: not stated */
} json_seen;

/* Notes that a key is there; false when it already was. */
static bool json_once(json_config *reader, const gm__json_text *key, bool *seen) {
  if (*seen) return gm__json_problem(&reader->scan, key->at, "a key is there twice");
  *seen = true;
  return true;
}

static bool json_is_inner(json_config *reader, const gm__json_text *key) {
  for (size_t i = 0; i < sizeof json_inner / sizeof *json_inner; i++) {
    if (gm__json_text_is(key, json_inner[i])) return json_first(reader) == '{';
  }
  return false;
}

static bool json_key(json_config *reader, const gm__json_text *key, json_seen *seen, bool inside) {
  if (gm__json_text_is(key, "model_type")) {
    return json_once(reader, key, &seen->type) && json_model_type(reader, inside);
  }
  if (gm__json_text_is(key, "layer_types")) return json_once(reader, key, &seen->layers) && json_layer_types(reader);
  if (gm__json_text_is(key, "full_attn_idxs"))
    return json_once(reader, key, &seen->attending) && json_attending(reader);
  if (gm__json_text_is(key, "hybrid_override_pattern") || gm__json_text_is(key, "layers_block_type")) {
    return json_once(reader, key, &seen->blocks) && json_blocks(reader);
  }
  if (gm__json_text_is(key, "torch_dtype")) {
    return json_once(reader, key, &seen->torch_dtype) && json_weight_type(reader, &seen->weights);
  }
  if (gm__json_text_is(key, "dtype")) {
    return json_once(reader, key, &seen->dtype) && json_weight_type(reader, &seen->weights);
  }
  if (gm__json_text_is(key, "quantization_config") && json_first(reader) == '{') {
    return json_once(reader, key, &reader->quantised) && gm__quantised_read(&reader->scan, &reader->quantisation);
  }
  const uint32_t row = gm__json_names_find(&reader->names, key);
  if (row == GM__JSON_KEYS) return gm__json_skip(&reader->scan);
  return json_once(reader, key, &seen->row[row]) && json_take(reader, row, inside);
}

static bool json_inner_object(json_config *reader) {
  json_seen seen = {0};
  gm__json_text key;
  gm__json_object_begin(&reader->scan);
  while (gm__json_object_next(&reader->scan, &key)) {
    if (!json_key(reader, &key, &seen, true)) return false;
  }
  return !reader->scan.problem;
}

static bool json_object(json_config *reader) {
  json_seen seen = {0};
  gm__json_text key;
  gm__json_object_begin(&reader->scan);
  while (gm__json_object_next(&reader->scan, &key)) {
    bool inner = json_is_inner(reader, &key);
    if (!(inner ? json_inner_object(reader) : json_key(reader, &key, &seen, false))) return false;
  }
  return gm__json_end(&reader->scan);
}

/* ---- the calls ---- */

/* Those that a model needs, by the name that is tried first. */
static const char *const json_needed[GM__DIM_FIELDS] = {
    [GM__DIM_HIDDEN] = "hidden_size",
    [GM__DIM_LAYERS] = "num_hidden_layers",
    [GM__DIM_HEADS] = "num_attention_heads",
};

/* A layer with a width only feeds forward; the others of these models have none. */
static void json_finish_blocks(json_config *reader) {
  gm__dimensions *config = &reader->config;
  const uint64_t dense = config->value[GM__DIM_INTERMEDIATE], expert = config->value[GM__DIM_EXPERT_INTERMEDIATE];
  if (!config->stated[GM__DIM_LAYERS]) gm__dimensions_state(config, GM__DIM_LAYERS, reader->blocks);
  for (uint32_t i = 0; i < reader->blocks; i++) {
    const char block = reader->block[i];
    gm__dimensions_list(config, GM__LIST_RECURRENT, i, block == 'M');
    gm__dimensions_list(config, GM__LIST_SPARSE, i, block == 'E');
    gm__dimensions_list(config, GM__LIST_INTERMEDIATE, i, block == '-' ? dense : block == 'E' ? expert : 0);
  }
  config->listed[GM__LIST_RECURRENT] = config->listed[GM__LIST_INTERMEDIATE] = reader->blocks;
  config->listed[GM__LIST_SPARSE] = reader->blocks;
}

/* Some lists go on behind the layers of the model, for a few layers that predict further tokens. */
static void json_finish_lists(json_config *reader) {
  enum { PREDICTING = 4 };
  gm__dimensions *config = &reader->config;
  if (!config->stated[GM__DIM_LAYERS] && config->stated[GM__DIM_DECODER_LAYERS]) {
    gm__dimensions_state(config, GM__DIM_LAYERS, config->value[GM__DIM_DECODER_LAYERS]);
  }
  if (reader->blocks > 0) json_finish_blocks(reader);
  const uint64_t layers = config->value[GM__DIM_LAYERS];
  for (uint64_t i = 0; reader->lists_attending && i < layers && i < GM_MODEL_LAYERS_MAX; i++) {
    gm__dimensions_list(config, GM__LIST_RECURRENT, i, !reader->attends[i]);
    config->listed[GM__LIST_RECURRENT] = (uint32_t)(i + 1);
  }
  for (int which = 0; which < GM__LISTS; which++) {
    const bool goes_on = layers > 0 && config->listed[which] > layers;
    if (goes_on && config->listed[which] <= layers + PREDICTING) config->listed[which] = (uint32_t)layers;
  }
}

gm_status gm__model_config_parse_json(char *text, uint64_t length, const char *path, const char *op,
                                      gm_model_config *out, gm_error *err) {
  const gm__dimensions_names names = {"", json_needed};
  json_config reader = {0};
  gm__json_names_init(&reader.names);
  gm__json_scan_init(&reader.scan, text, length);
  reader.scan.python_numbers = true;
  if (!json_object(&reader)) {
    size_t shown = strlen(path);
    return gm__fail(err, GM_ERR_FORMAT, op, "%s: byte %llu: %s", shown > 180 ? path + (shown - 180) : path,
                    (unsigned long long)reader.scan.problem_at, reader.scan.problem);
  }
  if (reader.quantised) reader.config.weight_type = GM_DTYPE_F64;
  reader.config.matrix_bits = gm__quantised_bits(&reader.quantisation, &reader.config.experts_quantised);
  json_finish_lists(&reader);
  gm__architecture_defaults(&reader.config);
  return gm__dimensions_finish(&reader.config, &names, op, path, out, err);
}

static gm_status json_read_text(const gm_services *services, const gm__input_file *file, const char *path,
                                const char *op, char **out, gm_error *err) {
  void *text = NULL;
  if (file->bytes > GM__MODEL_CONFIG_JSON_MAX) {
    return gm__fail(err, GM_ERR_FORMAT, op, "%.200s: %llu bytes, more than the %d of any config.json", path,
                    (unsigned long long)file->bytes, (int)GM__MODEL_CONFIG_JSON_MAX);
  }
  gm_status status = gm__model_alloc(services, file->bytes, 1, &text, err);
  if (status != GM_OK) return status;
  *out = text;
  return gm__input_file_read_at(file, path, 0, text, file->bytes, err);
}

/* Both readers write to the text: the one of the parameters has a copy, but of no text that it does not read. */
static gm_status json_parse(const gm_services *services, char *text, uint64_t length, const char *path, const char *op,
                            gm_model_config *out, gm_error *err) {
  const uint64_t copied = length > GM__PARAMETERS_JSON_MAX ? 0 : length;
  void *copy = NULL;
  gm_status status = gm__model_alloc(services, copied, 1, &copy, err);
  if (status != GM_OK) return status;
  if (copied) memcpy(copy, text, copied);
  status = gm__model_config_parse_json(text, length, path, op, out, err);
  if (status == GM_OK) status = gm__config_parameters(services, copy, length, out, err);
  gm__model_release(services, copy, copied, 1);
  return status;
}

gm_status gm__model_config_from_json(const gm_services *services, const char *path, const char *op,
                                     gm_model_config *out, gm_error *err) {
  gm__input_file file;
  char *text = NULL;
  gm_status status = gm__input_file_open(path, &file, err);
  if (status != GM_OK) return status;
  status = json_read_text(services, &file, path, op, &text, err);
  if (status == GM_OK) status = json_parse(services, text, file.bytes, path, op, out, err);
  gm__model_release(services, text, file.bytes, 1);
  gm__input_file_close(&file);
  return status;
}

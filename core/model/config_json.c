/* A model's dimensions from a config.json: one row per key. Invariants: a key that gm knows holds a number, a bool or
 * null, and is there once in its object. A key of an inner object (text_config) counts more than one of an outer
 * object, and an earlier row more than a later one. What gm does not know is read over. */
#include <stdio.h>
#include <string.h>

#include "core/base/error.h"
#include "core/base/input_file.h"
#include "core/model/config_architecture.h"
#include "core/model/config_quantised.h"
#include "core/model/json_scan.h"
#include "core/model/model_config.h"
#include "core/model/model_memory.h"

typedef struct json_row {
  const char *key;
  gm__dimension field;
} json_row;

/* Names of the same field in order of preference. */
static const json_row json_rows[] = {
    {"hidden_size", GM__DIM_HIDDEN},
    {"d_model", GM__DIM_HIDDEN},
    {"n_embd", GM__DIM_HIDDEN},
    {"dim", GM__DIM_HIDDEN},
    {"model_dim", GM__DIM_HIDDEN},
    {"intermediate_size", GM__DIM_INTERMEDIATE},
    {"ffn_hidden_size", GM__DIM_INTERMEDIATE},
    {"d_ff", GM__DIM_INTERMEDIATE},
    {"n_inner", GM__DIM_INTERMEDIATE},
    {"ffn_dim", GM__DIM_INTERMEDIATE},
    {"decoder_ffn_dim", GM__DIM_INTERMEDIATE},
    {"hidden_dim", GM__DIM_INTERMEDIATE},
    {"ff_intermediate_size", GM__DIM_INTERMEDIATE},
    {"block_ff_dim", GM__DIM_INTERMEDIATE},
    {"block_auto_adjust_ff_dim", GM__DIM_FORWARD_ADJUSTED},
    {"block_multiple_of", GM__DIM_FORWARD_MULTIPLE},
    {"intermediate_size_mlp", GM__DIM_DENSE_INTERMEDIATE},
    {"num_hidden_layers", GM__DIM_LAYERS},
    {"n_layer", GM__DIM_LAYERS},
    {"n_layers", GM__DIM_LAYERS},
    {"num_layers", GM__DIM_LAYERS},
    {"vocab_size", GM__DIM_VOCAB},
    {"padded_vocab_size", GM__DIM_VOCAB},
    {"num_attention_heads", GM__DIM_HEADS},
    {"n_head", GM__DIM_HEADS},
    {"n_heads", GM__DIM_HEADS},
    {"num_heads", GM__DIM_HEADS},
    {"decoder_attention_heads", GM__DIM_HEADS},
    {"num_key_value_heads", GM__DIM_KV_HEADS},
    {"num_kv_heads", GM__DIM_KV_HEADS},
    {"n_head_kv", GM__DIM_KV_HEADS},
    {"kv_n_heads", GM__DIM_KV_HEADS},
    {"multi_query_group_num", GM__DIM_KV_HEADS},
    {"head_dim", GM__DIM_HEAD_SIZE},
    {"d_kv", GM__DIM_HEAD_SIZE},
    {"attention_head_dim", GM__DIM_HEAD_SIZE},
    {"kv_channels", GM__DIM_HEAD_SIZE},
    {"max_position_embeddings", GM__DIM_CONTEXT},
    {"n_positions", GM__DIM_CONTEXT},
    {"max_sequence_length", GM__DIM_CONTEXT},
    {"max_seq_len", GM__DIM_CONTEXT},
    {"seq_length", GM__DIM_CONTEXT},
    {"n_ctx", GM__DIM_CONTEXT},
    {"sliding_window", GM__DIM_WINDOW},
    {"sliding_window_size", GM__DIM_WINDOW},
    {"local_attention", GM__DIM_WINDOW},
    {"attention_chunk_size", GM__DIM_WINDOW},
    {"sliding_window_pattern", GM__DIM_WINDOW_PERIOD},
    {"_sliding_window_pattern", GM__DIM_WINDOW_PERIOD},
    {"global_attn_every_n_layers", GM__DIM_WINDOW_PERIOD},
    {"use_sliding_window", GM__DIM_USE_WINDOW},
    {"num_local_experts", GM__DIM_EXPERTS},
    {"num_experts", GM__DIM_EXPERTS},
    {"n_routed_experts", GM__DIM_EXPERTS},
    {"moe_num_experts", GM__DIM_EXPERTS},
    {"num_experts_per_tok", GM__DIM_EXPERTS_USED},
    {"num_experts_per_token", GM__DIM_EXPERTS_USED},
    {"experts_per_token", GM__DIM_EXPERTS_USED},
    {"moe_top_k", GM__DIM_EXPERTS_USED},
    {"moe_topk", GM__DIM_EXPERTS_USED},
    {"moe_intermediate_size", GM__DIM_EXPERT_INTERMEDIATE},
    {"expert_ffn_hidden_size", GM__DIM_EXPERT_INTERMEDIATE},
    {"n_shared_experts", GM__DIM_EXPERTS_SHARED},
    {"num_shared_experts", GM__DIM_EXPERTS_SHARED},
    {"num_shared_expert", GM__DIM_EXPERTS_SHARED},
    {"shared_expert_intermediate_size", GM__DIM_SHARED_INTERMEDIATE},
    {"shared_intermediate_size", GM__DIM_SHARED_INTERMEDIATE},
    {"first_k_dense_replace", GM__DIM_LEADING_DENSE},
    {"num_dense_layers", GM__DIM_LEADING_DENSE},
    {"kv_lora_rank", GM__DIM_KV_LORA_RANK},
    {"q_lora_rank", GM__DIM_Q_LORA_RANK},
    {"qk_rope_head_dim", GM__DIM_ROPE_SIZE},
    {"qk_nope_head_dim", GM__DIM_NOPE_SIZE},
    {"v_head_dim", GM__DIM_MLA_VALUE_SIZE},
    {"conv_kernel", GM__DIM_CONV_KERNEL},
    {"d_conv", GM__DIM_CONV_KERNEL},
    {"mamba_d_conv", GM__DIM_CONV_KERNEL},
    {"linear_conv_kernel_dim", GM__DIM_CONV_KERNEL},
    {"state_size", GM__DIM_STATE_SIZE},
    {"d_state", GM__DIM_STATE_SIZE},
    {"mamba_d_state", GM__DIM_STATE_SIZE},
    {"ssm_state_size", GM__DIM_STATE_SIZE},
    {"linear_key_head_dim", GM__DIM_STATE_SIZE},
    {"linear_num_key_heads", GM__DIM_GROUPS},
    {"mamba_n_groups", GM__DIM_GROUPS},
    {"n_groups", GM__DIM_GROUPS},
    {"linear_num_value_heads", GM__DIM_STATE_HEADS},
    {"mamba_n_heads", GM__DIM_STATE_HEADS},
    {"mamba_num_heads", GM__DIM_STATE_HEADS},
    {"linear_value_head_dim", GM__DIM_STATE_HEAD_SIZE},
    {"mamba_d_head", GM__DIM_STATE_HEAD_SIZE},
    {"mamba_head_dim", GM__DIM_STATE_HEAD_SIZE},
    {"conv_L_cache", GM__DIM_SHORT_CONV},
    {"full_attention_interval", GM__DIM_FULL_INTERVAL},
    {"attn_layer_period", GM__DIM_ATTENTION_PERIOD},
    {"attn_layer_offset", GM__DIM_ATTENTION_OFFSET},
    {"expert_layer_period", GM__DIM_EXPERT_PERIOD},
    {"expert_layer_offset", GM__DIM_EXPERT_OFFSET},
    {"interleave_moe_layer_step", GM__DIM_EXPERT_STEP},
    {"num_kv_shared_layers", GM__DIM_SHARED_KV_LAYERS},
    {"index_head_dim", GM__DIM_INDEXER_SIZE},
    {"d_inner", GM__DIM_INNER_SIZE},
    {"mamba_d_ssm", GM__DIM_INNER_SIZE},
    {"expand", GM__DIM_EXPAND},
    {"mamba_expand", GM__DIM_EXPAND},
    {"encoder_layers", GM__DIM_ENCODER_LAYERS},
    {"num_decoder_layers", GM__DIM_DECODER_LAYERS},
    {"decoder_layers", GM__DIM_DECODER_LAYERS},
    {"is_encoder_decoder", GM__DIM_ENCODER_DECODER},
    {"multi_query", GM__DIM_MULTI_QUERY},
    {"new_decoder_architecture", GM__DIM_NEW_DECODER},
    {"tie_word_embeddings", GM__DIM_TIED},
    {"tie_embedding", GM__DIM_TIED},
};

enum { JSON_ROWS = sizeof json_rows / sizeof *json_rows };

/* Objects inside the outermost one whose keys are the language model's. */
static const char *const json_inner[] = {"text_config", "llm_config", "language_config", "ffn_config", "attn_config"};

typedef struct json_config {
  gm__json_scan scan;
  gm__dimensions config;
  uint32_t rank[GM__DIM_FIELDS]; /* of the key that stated a field: the larger counts more */
  bool type_seen_inside;
  gm__quantised quantisation;
  bool quantised; /* then the type is that of the arithmetic, not of the weights */
  bool lists_attending, attends[GM_MODEL_LAYERS_MAX];
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

/* Read a number, or the largest of a list with a number for each layer. */
static bool json_largest(json_config *reader, bool *out_stated, uint64_t *out) {
  if (json_first(reader) != '[') return json_number(reader, out_stated, out);
  *out = 0;
  *out_stated = true;
  gm__json_array_begin(&reader->scan);
  while (gm__json_array_next(&reader->scan)) {
    bool stated = false;
    uint64_t number = 0;
    if (!json_number(reader, &stated, &number)) return false;
    if (stated && number > *out) *out = number;
  }
  return !reader->scan.problem;
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

static bool json_take(json_config *reader, uint32_t row, bool inside) {
  gm__dimension field = json_rows[row].field;
  const bool letters = field == GM__DIM_WINDOW_PERIOD && json_first(reader) == '"';
  uint32_t rank = (inside ? 2 * JSON_ROWS : JSON_ROWS) - row;
  bool stated = false;
  uint64_t number = 0;
  if (!(letters ? json_window_letters : json_largest)(reader, &stated, &number)) return false;
  if (!stated || rank < reader->rank[field]) return true;
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

/* A type that gm does not know says nothing. The first one in a file counts: transformers writes both keys alike. */
static bool json_weight_type(json_config *reader) {
  static const struct {
    const char *name;
    gm_dtype type;
  } types[] = {{"float32", GM_DTYPE_F32}, {"float16", GM_DTYPE_F16}, {"bfloat16", GM_DTYPE_BF16}};
  gm__json_text name;
  if (json_first(reader) != '"') return gm__json_skip(&reader->scan);
  if (!gm__json_string(&reader->scan, &name)) return false;
  const char *plain = strncmp(name.text, "torch.", 6) == 0 ? name.text + 6 : name.text;
  for (size_t i = 0; i < sizeof types / sizeof *types && reader->config.weight_type == GM_DTYPE_F64; i++) {
    if (strcmp(plain, types[i].name) == 0) reader->config.weight_type = types[i].type;
  }
  return true;
}

/* ---- objects ---- */

typedef struct json_seen {
  bool row[JSON_ROWS];
  bool type, layers, torch_dtype, dtype, attending;
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
  if (gm__json_text_is(key, "torch_dtype")) {
    return json_once(reader, key, &seen->torch_dtype) && json_weight_type(reader);
  }
  if (gm__json_text_is(key, "dtype")) return json_once(reader, key, &seen->dtype) && json_weight_type(reader);
  if (gm__json_text_is(key, "quantization_config") && json_first(reader) == '{') {
    return json_once(reader, key, &reader->quantised) && gm__quantised_read(&reader->scan, &reader->quantisation);
  }
  for (uint32_t row = 0; row < JSON_ROWS; row++) {
    if (!gm__json_text_is(key, json_rows[row].key)) continue;
    return json_once(reader, key, &seen->row[row]) && json_take(reader, row, inside);
  }
  return gm__json_skip(&reader->scan);
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

/* Some lists go on behind the layers of the model, for layers that predict further tokens. */
static void json_finish_lists(json_config *reader) {
  gm__dimensions *config = &reader->config;
  const uint64_t layers = config->value[GM__DIM_LAYERS];
  for (uint64_t i = 0; reader->lists_attending && i < layers && i < GM_MODEL_LAYERS_MAX; i++) {
    gm__dimensions_list(config, GM__LIST_RECURRENT, i, !reader->attends[i]);
    config->listed[GM__LIST_RECURRENT] = (uint32_t)(i + 1);
  }
  for (int which = 0; which < GM__LISTS; which++) {
    if (config->listed[which] > layers && layers > 0) config->listed[which] = (uint32_t)layers;
  }
}

gm_status gm__model_config_parse_json(char *text, uint64_t length, const char *path, const char *op,
                                      gm_model_config *out, gm_error *err) {
  const gm__dimensions_names names = {"", json_needed};
  json_config reader = {0};
  gm__json_scan_init(&reader.scan, text, length);
  reader.scan.python_numbers = true;
  if (!json_object(&reader)) {
    size_t shown = strlen(path);
    return gm__fail(err, GM_ERR_FORMAT, 0, op, "%s: byte %llu: %s", shown > 180 ? path + (shown - 180) : path,
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
    return gm__fail(err, GM_ERR_FORMAT, 0, op, "%.200s: %llu bytes, more than the %d of any config.json", path,
                    (unsigned long long)file->bytes, (int)GM__MODEL_CONFIG_JSON_MAX);
  }
  gm_status status = gm__model_alloc(services, file->bytes, 1, &text, err);
  if (status != GM_OK) return status;
  *out = text;
  return gm__input_file_read_at(file, path, 0, text, file->bytes, err);
}

gm_status gm__model_config_from_json(const gm_services *services, const char *path, const char *op,
                                     gm_model_config *out, gm_error *err) {
  gm__input_file file;
  char *text = NULL;
  gm_status status = gm__input_file_open(path, &file, err);
  if (status != GM_OK) return status;
  status = json_read_text(services, &file, path, op, &text, err);
  if (status == GM_OK) status = gm__model_config_parse_json(text, file.bytes, path, op, out, err);
  gm__model_release(services, text, file.bytes, 1);
  gm__input_file_close(&file);
  return status;
}

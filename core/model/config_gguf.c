/* A model's dimensions from GGUF: one row per key. Invariants: a value of another kind than its key's is refused, not
 * read over. The rows of the embedding are the vocabulary, whatever a key says. */
#include <stdio.h>
#include <string.h>

#include "core/base/error.h"
#include "core/model/config_architecture.h"
#include "core/model/config_key.h"
#include "core/model/gguf_values.h"
#include "core/model/model.h"
#include "core/model/model_config.h"

static const char config_op[] = "gm_model_read_config";

enum { CONFIG_KEY_MAX = 160 };

/* Behind "ARCHITECTURE.", by field; NULL where GGUF has no key. In a list of numbers, one for each layer, the largest
 * counts. */
static const char *const gguf_keys[GM__DIM_FIELDS] = {
    [GM__DIM_HIDDEN] = "embedding_length",
    [GM__DIM_INTERMEDIATE] = "feed_forward_length",
    [GM__DIM_LAYERS] = "block_count",
    [GM__DIM_VOCAB] = "vocab_size",
    [GM__DIM_HEADS] = "attention.head_count",
    [GM__DIM_KV_HEADS] = "attention.head_count_kv",
    [GM__DIM_HEAD_SIZE] = "attention.key_length",
    [GM__DIM_VALUE_HEAD_SIZE] = "attention.value_length",
    [GM__DIM_CONTEXT] = "context_length",
    [GM__DIM_WINDOW] = "attention.sliding_window",
    [GM__DIM_WINDOW_PERIOD] = "attention.sliding_window_pattern",
    [GM__DIM_EXPERTS] = "expert_count",
    [GM__DIM_EXPERTS_USED] = "expert_used_count",
    [GM__DIM_EXPERT_INTERMEDIATE] = "expert_feed_forward_length",
    [GM__DIM_EXPERTS_SHARED] = "expert_shared_count",
    [GM__DIM_SHARED_INTERMEDIATE] = "expert_shared_feed_forward_length",
    [GM__DIM_LEADING_DENSE] = "leading_dense_block_count",
    [GM__DIM_EXPERT_STEP] = "interleave_moe_layer_step",
    [GM__DIM_KV_LORA_RANK] = "attention.kv_lora_rank",
    [GM__DIM_Q_LORA_RANK] = "attention.q_lora_rank",
    [GM__DIM_ROPE_SIZE] = "rope.dimension_count",
    [GM__DIM_MLA_HEAD_SIZE] = "attention.key_length_mla",
    [GM__DIM_MLA_VALUE_SIZE] = "attention.value_length_mla",
    [GM__DIM_CONV_KERNEL] = "ssm.conv_kernel",
    [GM__DIM_STATE_SIZE] = "ssm.state_size",
    [GM__DIM_INNER_SIZE] = "ssm.inner_size",
    [GM__DIM_DECODER_LAYERS] = "decoder_block_count",
    [GM__DIM_CAUSAL] = "attention.causal",
    [GM__DIM_WINDOW_KEY_SIZE] = "attention.key_length_swa",
    [GM__DIM_WINDOW_VALUE_SIZE] = "attention.value_length_swa",
    [GM__DIM_SHARED_KV_LAYERS] = "attention.shared_kv_layers",
    [GM__DIM_PREDICTION_LAYERS] = "nextn_predict_layers",
    [GM__DIM_FULL_INTERVAL] = "full_attention_interval",
    [GM__DIM_INDEXER_SIZE] = "attention.indexer.key_length",
    [GM__DIM_SHORT_CONV] = "shortconv.l_cache",
    [GM__DIM_GROUPS] = "ssm.group_count",
    [GM__DIM_PER_LAYER] = "embedding_length_per_layer_input",
    [GM__DIM_KDA_HEAD] = "kda.head_dim",
    [GM__DIM_WKV_HEAD] = "wkv.head_size",
    [GM__DIM_TOKEN_SHIFT] = "token_shift_count",
    [GM__DIM_INDEXER_TOP] = "attention.indexer.top_k",
    [GM__DIM_WINDOW_KV_RANK] = "attention.kv_lora_rank_swa",
    [GM__DIM_WINDOW_MLA_HEAD_SIZE] = "attention.key_length_mla_swa",
    [GM__DIM_WINDOW_MLA_VALUE_SIZE] = "attention.value_length_mla_swa",
    [GM__DIM_INDEXER_BLOCK] = "attention.indexer.block_size",
    [GM__DIM_STREAMS] = "hyper_connection.count",
    [GM__DIM_RESIDUAL_PERIOD] = "attn_res.block_size",
    [GM__DIM_EXPERT_LATENT] = "expert_latent_length",
    [GM__DIM_MOE_LATENT] = "moe_latent_size",
};

/* Behind "ARCHITECTURE.", by list; NULL where GGUF has no key. */
static const char *const gguf_lists[GM__LISTS] = {
    [GM__LIST_HEADS] = "attention.head_count",           [GM__LIST_KV_HEADS] = "attention.head_count_kv",
    [GM__LIST_INTERMEDIATE] = "feed_forward_length",     [GM__LIST_WINDOWED] = "attention.sliding_window_pattern",
    [GM__LIST_RECURRENT] = "attention.recurrent_layers", [GM__LIST_INDEXED] = "attention.indexer.types",
};

typedef struct gguf_config {
  const gm_model *model;
  const gm__contents *contents;
  char prefix[CONFIG_KEY_MAX]; /* "llama." */
  gm__dimensions config;
} gguf_config;

static gm_status gguf_config_fail(const gguf_config *reader, const gm__value *value, const char *wanted,
                                  gm_error *err) {
  const char *path = reader->model->shards[0].path;
  size_t length = strlen(path);
  return gm__fail(err, GM_ERR_FORMAT, config_op, "%s: byte %llu: \"%.100s\" is not %s",
                  length > 180 ? path + (length - 180) : path, (unsigned long long)value->key.at, value->key.text,
                  wanted);
}

static gm_status gguf_config_architecture(gguf_config *reader, gm_error *err) {
  const gm__value *value = gm__contents_find_value(reader->contents, "general.architecture");
  if (!value) {
    return gm__fail(err, GM_ERR_NOT_FOUND, config_op, "%.200s: \"general.architecture\" is not stated",
                    reader->model->shards[0].path);
  }
  gm__dimensions *config = &reader->config;
  if (value->type != GM__GGUF_STRING || value->count == 0 || value->count >= sizeof config->architecture) {
    return gguf_config_fail(reader, value, "a name of 1 to 31 bytes", err);
  }
  snprintf(config->architecture, sizeof config->architecture, "%s", gm__value_string(reader->contents, value, 0).text);
  snprintf(reader->prefix, sizeof reader->prefix, "%s.", config->architecture);
  return GM_OK;
}

/* The largest of its numbers, of which one that is no array has one. */
static bool gguf_config_largest(const gguf_config *reader, const gm__value *value, uint64_t *out) {
  uint64_t count = value->type == GM__GGUF_ARRAY ? value->count : 1;
  *out = 0;
  for (uint64_t i = 0; i < count; i++) {
    uint64_t number = 0;
    if (!gm__value_u64(reader->contents, value, i, &number) || number > GM__DIM_VALUE_MAX) return false;
    if (number > *out) *out = number;
  }
  return true;
}

static bool gguf_config_take(gguf_config *reader, gm__dimension field, const gm__value *value) {
  bool list = value->type == GM__GGUF_ARRAY && value->element_type == GM__GGUF_BOOL;
  uint64_t number = 0;
  if (list && field == GM__DIM_WINDOW_PERIOD) return true; /* no period: gguf_config_lists reads it */
  if (!gguf_config_largest(reader, value, &number)) return false;
  gm__dimensions_state(&reader->config, field, number);
  return true;
}

static gm_status gguf_config_keys(gguf_config *reader, gm_error *err) {
  for (int field = 0; field < GM__DIM_FIELDS; field++) {
    char key[CONFIG_KEY_MAX];
    if (!gguf_keys[field]) continue;
    snprintf(key, sizeof key, "%.40s%s", reader->prefix, gguf_keys[field]);
    const gm__value *value = gm__contents_find_value(reader->contents, key);
    if (value && !gguf_config_take(reader, (gm__dimension)field, value)) {
      return gguf_config_fail(reader, value, "a number from 0 to 2^40", err);
    }
  }
  return GM_OK;
}

/* An array of numbers or bools, one for each layer. */
static bool gguf_config_list(gguf_config *reader, gm__layer_list which, const gm__value *value) {
  gm__dimensions *config = &reader->config;
  if (value->count > GM_MODEL_LAYERS_MAX) return false;
  for (uint64_t i = 0; i < value->count; i++) {
    uint64_t number = gm__value_bits(reader->contents, value, i);
    const bool is_bool = value->element_type == GM__GGUF_BOOL;
    if (!is_bool && !gm__value_u64(reader->contents, value, i, &number)) return false;
    if (!gm__dimensions_list(config, which, i, number)) return false;
  }
  config->listed[which] = (uint32_t)value->count;
  return true;
}

static gm_status gguf_config_lists(gguf_config *reader, gm_error *err) {
  for (int which = 0; which < GM__LISTS; which++) {
    char key[CONFIG_KEY_MAX];
    if (!gguf_lists[which]) continue;
    snprintf(key, sizeof key, "%.40s%s", reader->prefix, gguf_lists[which]);
    const gm__value *value = gm__contents_find_value(reader->contents, key);
    if (!value || value->type != GM__GGUF_ARRAY || value->count == 0) continue;
    if (!gguf_config_list(reader, (gm__layer_list)which, value)) {
      return gguf_config_fail(reader, value, "a list of at most 512 numbers, one for each layer", err);
    }
  }
  return GM_OK;
}

/* ---- keys that gm does not read ---- */

static bool gguf_config_is_read(const char *rest) {
  for (int field = 0; field < GM__DIM_FIELDS; field++) {
    if (gguf_keys[field] && strcmp(rest, gguf_keys[field]) == 0) return true;
  }
  for (int which = 0; which < GM__LISTS; which++) {
    if (gguf_lists[which] && strcmp(rest, gguf_lists[which]) == 0) return true;
  }
  return false;
}

/* A list with a number for each layer, of whatever meaning. */
static bool gguf_config_is_list(const gguf_config *reader, const gm__value *value) {
  const uint64_t layers = reader->config.value[GM__DIM_LAYERS];
  return value->type == GM__GGUF_ARRAY && value->element_type != GM__GGUF_STRING && layers > 1 &&
         value->count == layers;
}

/* The first of the keys that may matter ends the answer. */
static void gguf_config_doubts(gguf_config *reader) {
  const size_t prefix = strlen(reader->prefix);
  for (uint64_t i = 0; i < reader->contents->value_count && !reader->config.unsure[0]; i++) {
    const gm__value *value = &reader->contents->values[i];
    if (strncmp(value->key.text, reader->prefix, prefix) != 0) continue;
    const char *rest = value->key.text + prefix;
    if (gguf_config_is_read(rest) || !gm__config_key_matters(rest, gguf_config_is_list(reader, value))) continue;
    snprintf(reader->config.unsure, sizeof reader->config.unsure, "gm does not know the key \"%.48s\"", rest);
  }
}

/* ---- what the tensors and the tokens say ---- */

static bool gguf_config_has(const gguf_config *reader, const char *tensor, gm_tensor_info *out) {
  uint64_t index = 0;
  out->struct_size = sizeof *out;
  return gm_model_find(reader->model, tensor, &index, NULL) == GM_OK &&
         gm_model_tensor(reader->model, index, out, NULL) == GM_OK;
}

/* Some architectures take another width of experts than their key says: the first such tensor knows. */
static void gguf_config_experts(gguf_config *reader) {
  gm_tensor_info info;
  char name[CONFIG_KEY_MAX];
  if (reader->config.value[GM__DIM_EXPERTS] == 0) return;
  for (uint64_t layer = 0; layer < reader->config.value[GM__DIM_LAYERS] && layer < GM_MODEL_LAYERS_MAX; layer++) {
    snprintf(name, sizeof name, "blk.%u.ffn_down_exps.weight", (unsigned)layer);
    if (!gguf_config_has(reader, name, &info)) continue;
    const bool usable = info.rank == 3 && info.shape[2] > 0 && info.shape[2] <= GM__DIM_VALUE_MAX;
    if (usable) gm__dimensions_state(&reader->config, GM__DIM_EXPERT_INTERMEDIATE, info.shape[2]);
    return;
  }
}

static void gguf_config_embedding(gguf_config *reader) {
  gm_tensor_info info;
  gm__dimensions *config = &reader->config;
  const gm__value *tokens = gm__contents_find_value(reader->contents, "tokenizer.ggml.tokens");
  if (gguf_config_has(reader, "token_embd.weight", &info) && info.rank == 2 && info.shape[0] <= GM__DIM_VALUE_MAX) {
    gm__dimensions_state(config, GM__DIM_VOCAB, info.shape[0]);
  } else if (!config->stated[GM__DIM_VOCAB] && tokens && tokens->type == GM__GGUF_ARRAY) {
    gm__dimensions_state(config, GM__DIM_VOCAB, tokens->count);
  }
  bool has_head = gguf_config_has(reader, "output.weight", &info);
  bool twice = gm__architecture_find(config->architecture)->head_twice;
  if (reader->model->tensor_count > 0) gm__dimensions_state(config, GM__DIM_TIED, !has_head || twice);
}

gm_status gm__model_config_from_gguf(const gm_model *model, gm_model_config *out, gm_error *err) {
  gguf_config reader = {.model = model, .contents = &model->shards[0].contents};
  gm_status status = gguf_config_architecture(&reader, err);
  if (status == GM_OK) status = gguf_config_keys(&reader, err);
  if (status == GM_OK) status = gguf_config_lists(&reader, err);
  if (status != GM_OK) return status;
  gguf_config_embedding(&reader);
  gguf_config_experts(&reader);
  gguf_config_doubts(&reader);
  const gm__dimensions_names names = {reader.prefix, gguf_keys};
  return gm__dimensions_finish(&reader.config, &names, config_op, model->shards[0].path, out, err);
}

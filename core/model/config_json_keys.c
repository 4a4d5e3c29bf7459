/* A table: a new name of a field is a row. Files may have millions of names, so a name is not held against each row. */
#include "core/model/config_json_keys.h"

#include <stdlib.h>
#include <string.h>

const gm__json_key gm__json_keys[GM__JSON_KEYS] = {
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
    {"attention_heads", GM__DIM_HEADS},
    {"num_attention_heads_per_layer", GM__DIM_HEADS},
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
    {"moe_k", GM__DIM_EXPERTS_USED},
    {"moe_intermediate_size", GM__DIM_EXPERT_INTERMEDIATE},
    {"expert_ffn_hidden_size", GM__DIM_EXPERT_INTERMEDIATE},
    {"n_shared_experts", GM__DIM_EXPERTS_SHARED},
    {"num_shared_experts", GM__DIM_EXPERTS_SHARED},
    {"num_shared_expert", GM__DIM_EXPERTS_SHARED},
    {"moe_num_shared_experts", GM__DIM_EXPERTS_SHARED},
    {"shared_expert_intermediate_size", GM__DIM_SHARED_INTERMEDIATE},
    {"shared_intermediate_size", GM__DIM_SHARED_INTERMEDIATE},
    {"first_k_dense_replace", GM__DIM_LEADING_DENSE},
    {"num_dense_layers", GM__DIM_LEADING_DENSE},
    {"moe_layer_start_index", GM__DIM_LEADING_DENSE},
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

static int keys_order(const void *a, const void *b) {
  return strcmp(gm__json_keys[*(const uint8_t *)a].key, gm__json_keys[*(const uint8_t *)b].key);
}

void gm__json_names_init(gm__json_names *out) {
  for (uint32_t i = 0; i < GM__JSON_KEYS; i++) out->row[i] = (uint8_t)i;
  qsort(out->row, GM__JSON_KEYS, sizeof *out->row, keys_order);
}

uint32_t gm__json_names_find(const gm__json_names *names, const gm__json_text *key) {
  uint32_t low = 0, high = GM__JSON_KEYS;
  while (low < high) {
    const uint32_t middle = (low + high) / 2, row = names->row[middle];
    const int order = gm__json_text_order(key, gm__json_keys[row].key);
    if (order == 0) return row;
    if (order < 0) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return GM__JSON_KEYS;
}

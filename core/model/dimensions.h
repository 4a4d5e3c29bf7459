/* Dimensions of a model as a file states them, before defaults: one number for each field, from whatever key. */
#ifndef GM_CORE_MODEL_DIMENSIONS_H
#define GM_CORE_MODEL_DIMENSIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "gm/model_config.h"

/* A field of a model that files state. */
typedef enum gm__dimension {
  GM__DIM_HIDDEN,
  GM__DIM_INTERMEDIATE,
  GM__DIM_LAYERS,
  GM__DIM_VOCAB,
  GM__DIM_HEADS,
  GM__DIM_KV_HEADS,
  GM__DIM_HEAD_SIZE,
  GM__DIM_VALUE_HEAD_SIZE,
  GM__DIM_CONTEXT,
  GM__DIM_WINDOW,
  GM__DIM_WINDOW_PERIOD,
  GM__DIM_USE_WINDOW,
  GM__DIM_EXPERTS,
  GM__DIM_EXPERTS_USED,
  GM__DIM_EXPERT_INTERMEDIATE,
  GM__DIM_EXPERTS_SHARED,
  GM__DIM_SHARED_INTERMEDIATE,
  GM__DIM_LEADING_DENSE,
  GM__DIM_KV_LORA_RANK,
  GM__DIM_ROPE_SIZE,
  GM__DIM_NOPE_SIZE,
  GM__DIM_MLA_HEAD_SIZE,
  GM__DIM_MLA_VALUE_SIZE,
  GM__DIM_CONV_KERNEL,
  GM__DIM_STATE_SIZE,
  GM__DIM_INNER_SIZE,
  GM__DIM_EXPAND,
  GM__DIM_ENCODER_LAYERS,
  GM__DIM_DECODER_LAYERS,
  GM__DIM_ENCODER_DECODER,
  GM__DIM_CAUSAL,
  GM__DIM_MULTI_QUERY,
  GM__DIM_NEW_DECODER,
  GM__DIM_TIED,
  GM__DIM_WINDOW_KEY_SIZE,
  GM__DIM_WINDOW_VALUE_SIZE,
  GM__DIM_SHARED_KV_LAYERS,
  GM__DIM_PREDICTION_LAYERS,
  GM__DIM_FULL_INTERVAL,
  GM__DIM_INDEXER_SIZE,
  GM__DIM_SHORT_CONV,
  GM__DIM_GROUPS,
  GM__DIM_STATE_HEADS, /* recurrent: heads of values, and elements of each */
  GM__DIM_STATE_HEAD_SIZE,
  GM__DIM_ATTENTION_PERIOD, /* one of so many layers attends, from an offset on; the others are recurrent */
  GM__DIM_ATTENTION_OFFSET,
  GM__DIM_EXPERT_PERIOD, /* one of so many layers has experts, from an offset on */
  GM__DIM_EXPERT_OFFSET,
  GM__DIM_EXPERT_STEP, /* the last of so many layers has experts */
  GM__DIM_DENSE_INTERMEDIATE,
  GM__DIM_FORWARD_ADJUSTED,
  GM__DIM_Q_LORA_RANK,
  GM__DIM_FORWARD_MULTIPLE,
  GM__DIM_KDA_HEAD,       /* recurrent, gated delta attention: width of a head */
  GM__DIM_WKV_HEAD,       /* recurrent, RWKV: width of a head */
  GM__DIM_TOKEN_SHIFT,    /* RWKV: rows that a layer remembers */
  GM__DIM_PER_LAYER,      /* width of embeddings that each layer has of its own */
  GM__DIM_INDEXER_TOP,    /* positions that an indexer chooses; 0: there is none */
  GM__DIM_WINDOW_KV_RANK, /* compressed layers with a window; likewise below */
  GM__DIM_WINDOW_MLA_HEAD_SIZE,
  GM__DIM_WINDOW_MLA_VALUE_SIZE,
  GM__DIM_INDEXER_BLOCK,   /* ... which it chooses so many at a time */
  GM__DIM_STREAMS,         /* of the residual, which hyper-connections mix */
  GM__DIM_RESIDUAL_PERIOD, /* one of so many layers keeps the residual */
  GM__DIM_EXPERT_LATENT,   /* width that experts read and write; two keys have it */
  GM__DIM_MOE_LATENT,
  GM__DIM_FIELDS
} gm__dimension;

/* No dimension of a model comes near it, and products of three still fit 128 bits, of one and 4 bytes 64. */
#define GM__DIM_VALUE_MAX ((uint64_t)1 << 40)

/* Lists of files, with a number for each layer. */
typedef enum gm__layer_list {
  GM__LIST_HEADS,
  GM__LIST_KV_HEADS,
  GM__LIST_INTERMEDIATE,
  GM__LIST_WINDOWED,
  GM__LIST_RECURRENT,
  GM__LIST_INDEXED, /* layers with an indexer of their own */
  GM__LIST_SPARSE,  /* layers with experts */
  GM__LISTS
} gm__layer_list;

typedef struct gm__dimensions {
  char architecture[sizeof((gm_model_config *)0)->architecture];
  uint64_t value[GM__DIM_FIELDS];
  bool stated[GM__DIM_FIELDS];
  gm_dtype weight_type; /* GM_DTYPE_F64: not stated */
  double matrix_bits;
  bool experts_quantised;
  char unsure[GM_MODEL_UNSURE_SIZE]; /* as in gm_model_config */
  uint32_t listed[GM__LISTS];        /* how many layers a list has; 0: there is none */
  /* The lists, as small as their numbers are: readers have all of this on their stack. Only functions below read it. */
  uint32_t wide[GM_MODEL_LAYERS_MAX];
  uint16_t heads[2][GM_MODEL_LAYERS_MAX];
  uint8_t flags[GM_MODEL_LAYERS_MAX]; /* a bit for each list */
} gm__dimensions;

static inline void gm__dimensions_state(gm__dimensions *config, gm__dimension field, uint64_t value) {
  config->value[field] = value;
  config->stated[field] = true;
}

/* Note a layer's number in a list. False: it is too large for one. REQUIRES: `layer` is below GM_MODEL_LAYERS_MAX. */
static inline bool gm__dimensions_list(gm__dimensions *config, gm__layer_list which, uint64_t layer, uint64_t number) {
  const uint8_t bit = (uint8_t)(1U << which);
  switch (which) {
    case GM__LIST_HEADS:
    case GM__LIST_KV_HEADS: config->heads[which][layer] = (uint16_t)number; return number <= UINT16_MAX;
    case GM__LIST_INTERMEDIATE: config->wide[layer] = (uint32_t)number; return number <= UINT32_MAX;
    default: config->flags[layer] = (uint8_t)((config->flags[layer] & ~bit) | (number ? bit : 0)); return true;
  }
}

static inline uint32_t gm__dimensions_listed(const gm__dimensions *config, gm__layer_list which, uint64_t layer) {
  switch (which) {
    case GM__LIST_HEADS:
    case GM__LIST_KV_HEADS: return config->heads[which][layer];
    case GM__LIST_INTERMEDIATE: return config->wide[layer];
    default: return config->flags[layer] >> which & 1;
  }
}

#endif

/* Traits of an architecture on which the order of its operations depends, one row each. The walker reads nothing
 * else. Results that the engine writes in an operand's place take no memory and have no column: biases, scales, soft
 * caps, RMS norms after a projection. */
#ifndef GM_CORE_FIT_OP_ROWS_H
#define GM_CORE_FIT_OP_ROWS_H

#include <stdbool.h>
#include <stdint.h>

#include "gm/model.h"

/* The order of a layer whose attention and feed-forward layer read the same; 0: they do not. */
typedef enum gm__op_parallel {
  GM__OP_PARALLEL_FEED = 1,  /* feed-forward layer, projection of attention, their sum, residual */
  GM__OP_PARALLEL_ATTENTION, /* projection of attention, feed-forward layer, their sum, residual */
  GM__OP_PARALLEL_RESIDUAL,  /* feed-forward layer, residual, projection of attention */
  GM__OP_PARALLEL_SUM        /* feed-forward layer, projection of attention, its sum with the residual, sum of both */
} gm__op_parallel;

/* A gate on the result of attention; 0: none. */
typedef enum gm__op_gate {
  GM__OP_GATE_WIDE = 1, /* a factor for each element */
  GM__OP_GATE_HEADS     /* a factor for each head */
} gm__op_gate;

/* The work of a recurrent layer; 0: there is none. */
typedef enum gm__op_mixer {
  GM__OP_MIXER_NONE,
  GM__OP_MIXER_CONV,   /* a short convolution alone */
  GM__OP_MIXER_SCAN,   /* Mamba, the first one */
  GM__OP_MIXER_SCAN_2, /* ... the second one */
  GM__OP_MIXER_DELTA,  /* the gated delta rule */
  GM__OP_MIXER_KDA,    /* ... with a convolution each for queries, keys and values, and a decay for each element */
  GM__OP_MIXER_LINEAR  /* linear attention, whose tokens look at each other with a decay by their distance */
} gm__op_mixer;

typedef struct gm__op_row {
  const char *architecture;
  const char *has,
      *lacks;         /* a tensor of the first layer by which models of one architecture differ; NULL: they do not */
  bool loose;         /* the sizes of some small tensors are taken by rule: buffers are not exact */
  uint8_t loose_rows; /* so many activations of the residual stream may live beside */
  bool compressed;    /* its order is that of models with compressed keys and values */
  uint16_t layer_embedding; /* width of what each layer embeds, where files do not say it */
  uint8_t streams;          /* of the residual, which each layer predicts and corrects; 0: one */
  bool banked;              /* some layers keep the residual, which later ones look back at */
  bool tokens_alone;        /* it never gets embeddings in place of tokens */
  bool index_unturned;      /* indexers do not rotate what they keep */
  bool single;              /* a layer is attention, recurrence or a feed-forward layer alone */
  bool unordered;           /* the order of its operations is not known: only the traits below count */
  const char *unbounded;    /* why no formula bounds its compute buffers; NULL: one does */
  bool scores_cacheless;    /* it keeps a cache, and computes without it */
  bool biased;              /* scores get a bias, which flash attention does not do */
  bool no_flash;            /* engines turn flash attention off */
  bool host_head;           /* logits are computed with the embedding itself, which is on the host */
  bool layer_norm;          /* norms cannot be written in place */
  bool no_pre_norm;         /* attention and feed-forward layer read the residual itself */
  bool head_norm;           /* queries and keys are normalised head by head */
  bool low_rank;            /* queries, keys and values pass narrow matrices; keys share the part that has positions */
  bool block_sparse;        /* an indexer chooses blocks of positions, where flash attention and the cache allow it */
  bool value_norm;          /* ... and values, too */
  bool second_experts;      /* the chosen experts' result passes smaller ones, which the same odds choose anew */
  bool fused_qkv;           /* one projection, seen through views */
  bool added_positions;     /* positions are added to the embeddings, and nothing is rotated */
  bool no_positions;        /* positions change scores alone */
  bool rope_windows;        /* layers with a window are rotated, others not */
  bool rope_leads;          /* ... and those before the first one with experts */
  uint8_t rope_step;        /* one of so many layers, the last of them, is not rotated; 0: all are */
  uint8_t rope_layers;      /* only a model of so many layers is rotated; 0: any is */
  bool temperature;         /* queries that are not rotated get a factor by their position */
  bool embedding_norm;      /* embeddings have a norm that cannot be written in place */
  bool embedding_skip;      /* each layer adds the embeddings again */
  gm__op_gate gate;
  gm__op_mixer mixer;
  bool repeated_keys; /* ... whose queries and keys are repeated for all heads of the state */
  bool adapters;      /* each matrix has small ones beside it, which a layer of one head chooses for each token */
  bool joined_gate;   /* queries and the gate are one projection */
  bool result_norm;   /* the result of attention has a norm before its projection */
  bool sections;      /* a token has four positions, as those of pictures have */
  gm__op_parallel parallel;
  bool parallel_norm;    /* ... and has a norm of its own */
  bool second_norm;      /* ... for all tokens, also where a few of them are wanted */
  bool plain;            /* one matrix up, no gate */
  bool halved;           /* feed-forward layers are half as wide as files say */
  bool fused_gate;       /* gate and up are one matrix */
  bool gate_first;       /* the gate is computed to its end before the other matrix, and its result written over */
  bool residual_first;   /* the last sum of a layer is written over the residual */
  bool attention_last;   /* the sum after attention is written over the residual, which is reduced first */
  bool outputs_at_end;   /* reduced to the wanted tokens after the last layer, not in it */
  bool keeps_last;       /* ... and what they were chosen from stays */
  bool outputs_normed;   /* ... and after the last norm */
  bool no_choice;        /* all tokens have logits */
  uint16_t fewer_logits; /* the output matrix has so many rows; other tokens get a constant; 0: it has all */
  bool masked_logits;    /* a row of constants is written into a copy of the logits */
  bool router_first;     /* the odds of experts are computed from the residual, before the projection of attention */
  bool choice_first;     /* experts are chosen by what the router says, before it becomes odds */
  bool weights_first;    /* the weights of experts come before the experts */
  bool late_softmax;     /* experts are chosen before their weights are normalised */
  bool raw_weights;      /* the weights of chosen experts are not divided by their sum */
  bool biased_choice;    /* experts are chosen by their odds and a bias */
  bool shared_experts;   /* some experts compute beside the chosen ones */
  bool shared_always;    /* ... where they have no matrices, the input itself */
  bool shared_gate;      /* ... and have a gate of their own */
  bool shared_gate_last; /* ... which is computed after them */
  bool windows;          /* has sliding-window layers; the others keep a full cache whatever the file says */
} gm__op_row;

/* Whether no input of the model has positions. */
bool gm__op_row_has_no_positions(const gm__op_row *row, uint64_t layers);

/* Never NULL: an architecture without a row is unordered, without traits. The first, where it has several. */
const gm__op_row *gm__op_row_find(const char *architecture);

/* The next row of the same architecture; NULL: there is none. */
const gm__op_row *gm__op_row_next(const gm__op_row *row);

/* Whether queries, keys and values of such a model may have one projection or three: only its tensors say it. */
bool gm__op_row_joins(const gm__op_row *row);

/* The tensors of a model say which of its rows holds. */
typedef struct gm__op_choice {
  const gm__op_row *row; /* never NULL */
  bool is_open;          /* there are other orders, and no tensor says which one is right */
  bool fused_qkv;        /* as in the row, unless the tensors say otherwise */
} gm__op_choice;

/* `model` may be NULL. */
gm__op_choice gm__op_choose(const char *architecture, const gm_model *model);

#endif

/* Traits of an architecture on which the order of its operations depends, one row each. The walker reads nothing
 * else. Results that the engine writes in an operand's place take no memory and have no column: biases, scales, soft
 * caps, RMS norms after a projection. */
#ifndef GM_CORE_FIT_OP_ROWS_H
#define GM_CORE_FIT_OP_ROWS_H

#include <stdbool.h>

typedef struct gm__op_row {
  const char *architecture;
  bool layer_norm;     /* norms cannot be written in place */
  bool no_pre_norm;    /* attention and feed-forward layer read the residual itself */
  bool head_norm;      /* queries and keys are normalised head by head */
  bool fused_qkv;      /* one projection, seen through views */
  bool no_rope;        /* positions are added to the embeddings instead */
  bool sections;       /* a token has four positions, as those of pictures have */
  bool parallel;       /* the feed-forward layer comes before the projection of attention */
  bool parallel_norm;  /* ... and has a norm of its own */
  bool plain;          /* one matrix up, no gate */
  bool fused_gate;     /* gate and up are one matrix */
  bool residual_first; /* the last sum of a layer is written over the residual */
  bool key_first;      /* keys before values */
  bool outputs_at_end; /* reduced to the wanted tokens after the last layer, not in it */
  bool late_softmax;   /* experts are chosen before their weights are normalised */
  bool raw_weights;    /* the weights of chosen experts are not divided by their sum */
  bool biased_choice;  /* experts are chosen by their odds and a bias */
  bool shared_experts; /* some experts compute beside the chosen ones */
  bool shared_gate;    /* ... and have a gate of their own */
  bool windows;        /* has sliding-window layers; the others keep a full cache whatever the file says */
} gm__op_row;

/* NULL: none. */
const gm__op_row *gm__op_row_find(const char *architecture);

#endif

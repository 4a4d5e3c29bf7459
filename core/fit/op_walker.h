/* The parts of a walk over a decoder's operations: what it knows, and what each part adds to the list. Sizes are bytes
 * of f32 activations. Only what takes memory, reads a tensor for the last time or orders these is there. */
#ifndef GM_CORE_FIT_OP_WALKER_H
#define GM_CORE_FIT_OP_WALKER_H

#include "core/fit/estimate_parts.h"
#include "core/fit/op_list.h"

enum { GM__OP_CACHES = 2 };

/* The inputs of one cache: of window layers, and of the others. */
typedef struct gm__op_cache {
  uint64_t cells;
  gm__op_tensor key_rotation, value_rotation, key_index, value_index, mask;
} gm__op_cache;

typedef struct gm__op_walker {
  gm__op_list ops;
  const gm__shape *shape;
  const gm__op_row *row;
  bool on_host;
  uint64_t row_bytes; /* of one activation of the residual stream */
  gm__op_cache caches[GM__OP_CACHES];
  gm__op_cache index;                       /* of an indexer's own cache */
  gm__op_tensor zeros[GM_MODEL_LAYERS_MAX]; /* and inputs: of each layer with an indexer, made before anything else */
  gm__op_tensor wide_mask;                  /* of blocks, as numbers of 4 bytes; 0: no layer has asked yet */
  gm__op_tensor positions, wanted, temperature; /* `wanted`: which tokens' outputs are */
  gm__op_tensor embedding;                      /* as each layer adds it again; 0: none does */
  gm__op_tensor residual, logit_mask, constants;
  gm__op_tensor embedding_rows, layer_copies, layer_rows; /* what layers add of their own, and what it is made of */
  gm__op_tensor sequences, gathered; /* recurrent layers: whose states they are, and what the next one remembers */
  gm__op_tensor mixed[3];            /* ... and what its last part reads */
  gm__op_tensor decays[3];           /* linear attention: of queries, of keys, and between any two tokens */
  /* of the layer at hand */
  uint64_t layer;
  const gm_layer_kind *kind;
  const gm__op_cache *cache;
  uint64_t width;                                             /* of the feed-forward layer, or of an expert */
  uint64_t query_bytes, key_bytes, value_bytes, result_bytes; /* of all tokens */
  gm__op_tensor query, key, value;                            /* as attention gets them */
  gm__op_tensor joined;                                       /* queries and their gate */
  gm__op_tensor normed;                                       /* what the projections of attention read */
  gm__op_tensor routed, adapters;                             /* what chooses adapters, and their numbers */
  gm__op_tensor chosen, weights;                              /* experts: their numbers, and what they count */
  gm__op_tensor rows;                                         /* what the last indexer has chosen */
  gm__op_tensor connections, copied; /* hyper-connections: what the streams of the residual count, and their copy */
  gm__op_tensor bank, kept;          /* of the residual: what earlier layers have kept, and what the last one has */
  uint64_t bank_count;
} gm__op_walker;

#define GM__OP(self, bytes, ...) gm__op_add(&(self)->ops, (bytes), (gm__op_operands){__VA_ARGS__})

/* An operation that only reads; 0 is no operand. */
static inline gm__op_tensor gm__op_read(gm__op_walker *self, uint64_t bytes, gm__op_tensor first,
                                        gm__op_tensor second) {
  return GM__OP(self, bytes, .reads = {first, second});
}

/* ---- attention ---- */

/* The result of all heads; `input` is the layer's, normalised. */
gm__op_tensor gm__op_attend(gm__op_walker *self, gm__op_tensor input);

/* Its result where keys and values are compressed. */
gm__op_tensor gm__op_attend_compressed(gm__op_walker *self, gm__op_tensor input);

/* Where an indexer chooses blocks of positions: its inputs, its key of a layer, and attention to the blocks. `copies`
 * are bytes that attention makes beside its result. These do nothing for other layers; 0: the layer is another one. */
void gm__op_sparse_inputs(gm__op_walker *self);
void gm__op_sparse_key(gm__op_walker *self, gm__op_tensor input);
gm__op_tensor gm__op_attend_sparse(gm__op_walker *self, gm__op_tensor input, uint64_t copies);

/* Attention with the walker's query, key and value alone. */
gm__op_tensor gm__op_look(gm__op_walker *self, uint64_t copies);

/* The layer that chooses adapters; it comes first. `signals`: its inputs for query, value and key. */
void gm__op_choose_adapters(gm__op_walker *self, const gm__op_tensor *signals);

/* A matrix, with its adapters where the model has them. `wide` are the bytes of the result; `made`: what the matrix
 * itself has made, or 0. */
gm__op_tensor gm__op_multiply(gm__op_walker *self, gm__op_tensor made, gm__op_tensor input, uint64_t wide,
                              uint64_t tokens);

/* The gate on that result, and its projection. */
gm__op_tensor gm__op_project(gm__op_walker *self, gm__op_tensor result, gm__op_tensor input);

/* ---- hyper-connections ---- */

/* All streams of the residual, from the embeddings. */
void gm__op_hyper_begin(gm__op_walker *self);

/* The mix of all streams that a part of a layer reads. It has `factors` numbers for each stream and token. */
gm__op_tensor gm__op_hyper_mix(gm__op_walker *self, uint64_t tokens, uint64_t factors);

/* The result of a part goes into each stream of a copy of the residual. The copy is made before the part's end; where
 * the residual has no streams it is none. */
void gm__op_hyper_copy(gm__op_walker *self);
void gm__op_hyper_spread(gm__op_walker *self, gm__op_tensor result);

/* ---- a residual with checkpoints ---- */

/* The mix of the residual and of what was kept of it; the residual itself where nothing was. */
gm__op_tensor gm__op_bank_mix(gm__op_walker *self, gm__op_tensor residual);

/* Whether the layer keeps the residual as it comes in. */
bool gm__op_bank_keep(gm__op_walker *self);

/* ---- recurrence ---- */

/* The rows that a recurrent layer remembers of the tokens before these; nothing for another layer. */
void gm__op_gather(gm__op_walker *self, uint64_t layer);

/* Engines order the first operation of a recurrent layer before the rest of the one before it. */
void gm__op_look_ahead(gm__op_walker *self);

/* A recurrent layer up to where it keeps its state, and its result. */
void gm__op_recur(gm__op_walker *self, gm__op_tensor input);
gm__op_tensor gm__op_recurred(gm__op_walker *self);

/* ---- feed-forward ---- */

gm__op_tensor gm__op_feed(gm__op_walker *self, gm__op_tensor input, uint64_t tokens);

/* The choice of experts before the feed-forward layer, for all tokens, or for `tokens` of them that `wanted` names. */
void gm__op_route(gm__op_walker *self, gm__op_tensor input, uint64_t tokens, gm__op_tensor wanted);

#endif

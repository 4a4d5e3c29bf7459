/* The sizes that every rule of an estimate speaks of, from a model's dimensions and the settings of a run. */
#ifndef GM_CORE_FIT_ESTIMATE_SHAPE_H
#define GM_CORE_FIT_ESTIMATE_SHAPE_H

#include "core/fit/op_rows.h"
#include "gm/estimate.h"

/* Numbers are bounded such that no product of the compute rules passes 2^63; those of weights and caches saturate. */
typedef struct gm__shape {
  const gm_model_config *config; /* borrowed; its kinds of layers are there */
  const gm__op_row *row;         /* NULL: an architecture whose operations gm does not know in their order */
  const gm__op_row *traits;      /* of the architecture, also without an order; never NULL */
  bool row_is_open;              /* the architecture has other orders, and nothing says which one is right */
  bool fused_qkv;                /* queries, keys and values have one projection */
  uint64_t hidden, layers, vocab;
  uint64_t heads, head, value_head; /* of the widest layer; likewise below */
  uint64_t intermediate, experts, experts_used, expert_width, window;
  bool has_dense_layers; /* beside those with experts */
  bool mla, encoder_only, encoder_decoder, recurrent;
  uint64_t layer_embedding;        /* width of what each layer embeds of its own */
  uint64_t residual_streams;       /* which hyper-connections mix; 0: there are none */
  uint64_t residual_period;        /* one of so many layers keeps the residual; 0: none does */
  uint64_t expert_latent;          /* width that experts read and write; 0: the residual's */
  uint64_t widest_values;          /* of all layers: without flash attention engines keep as much for each */
  bool uncached;                   /* layers attend to the tokens at hand alone */
  bool mixes;                      /* layers that attend, and recurrent ones */
  uint64_t key_width, value_width; /* of all key heads; MLA: one compressed row and none */
  uint64_t tokens;                 /* of a micro-batch, rounded up to the sequences */
  uint64_t outputs;                /* of them with logits */
  uint64_t context, cells, window_cells, streams, sequences; /* window_cells 0: no layer has a window */
  bool flash;
  gm_dtype key_type, value_type;
  uint64_t window_key_rotation;          /* of layers with a window; likewise */
  uint64_t key_rotation, value_rotation; /* sides of the matrices that turn quantised caches; 0: none */
  uint64_t key_copies, value_copies;     /* per cell, of the f16 copies that attention makes */
  uint64_t alignment;                    /* of the device */
} gm__shape;

enum { GM__ESTIMATE_HOST_ALIGNMENT = 32, GM__ESTIMATE_DEVICE_ALIGNMENT = 128, GM__ESTIMATE_QUANT_ROW = 512 };

/* `model` may be NULL. GM_ERR_INVALID_ARGUMENT: a number is missing or out of range; GM_ERR_NOT_SUPPORTED: this cache
 * type does not go with this head size. */
gm_status gm__shape_make(const gm_model_config *config, const gm_model *model, const gm_estimate_settings *settings,
                         gm__shape *out, gm_error *err);

/* True when the layer attends to a window only. */
bool gm__shape_has_window(const gm__shape *shape, uint64_t layer);

/* The width of an indexer's keys; 0: no layer has an indexer of its own cache. */
uint64_t gm__shape_indexer(const gm__shape *shape);

/* The bytes that linear attention has for any two tokens, in each head; 0: no layer has it. All tokens are of one
 * sequence, where these are most. */
uint64_t gm__shape_decay_bytes(const gm__shape *shape);

/* The width of the blocks that an indexer chooses, and the narrowest that they may be: another one where a file does
 * not state it. */
uint64_t gm__shape_block(const gm__shape *shape);
uint64_t gm__shape_narrowest_block(const gm__shape *shape);

/* The positions that an engine plans for where an indexer chooses blocks of them: later ones make it plan anew. */
uint64_t gm__shape_block_positions(const gm__shape *shape);

/* Whether an indexer chooses blocks of positions: with flash attention, for one sequence or separate ones. */
bool gm__shape_is_sparse(const gm__shape *shape);

/* The masks and maps of `positions` in blocks of `wide`; 0: no indexer chooses blocks. */
uint64_t gm__shape_blocks_bytes(const gm__shape *shape, uint64_t positions, uint64_t wide);

/* So many layers compute: engines leave out those that predict further tokens. */
uint64_t gm__shape_walked(const gm__shape *shape);

/* The kind of a layer. */
const gm_layer_kind *gm__shape_layer(const gm__shape *shape, uint64_t layer);

#endif

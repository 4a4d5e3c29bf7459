/* The dimensions of a model, as its file or its config.json states them. Estimates are made of them. */
#ifndef GM_MODEL_CONFIG_H
#define GM_MODEL_CONFIG_H

#include <stdbool.h>

#include "gm/model.h"

GM_BEGIN_DECLS

enum { GM_MODEL_LAYERS_MAX = 512, GM_LAYER_KINDS_MAX = 48, GM_MODEL_UNSURE_SIZE = 96 };

typedef enum gm_layer_flags {
  GM_LAYER_ATTENDS = 1,    /* it keeps keys and values of its own */
  GM_LAYER_SHARES = 2,     /* it attends with the keys and values of another layer, and keeps none */
  GM_LAYER_COMPRESSED = 4, /* MLA: one row stands for the keys and values of all heads */
  GM_LAYER_RECURRENT = 8,  /* it keeps a state for each sequence */
  GM_LAYER_EXPERTS = 16,   /* its feed-forward part has experts */
  GM_LAYER_UNUSED = 32,    /* engines load it for multi-token prediction alone, and not otherwise */
  GM_LAYER_UNCACHED = 64   /* it attends to the tokens at hand alone, and keeps nothing of them */
} gm_layer_flags;

/* The kind of one layer, or of several alike. 0: it does not apply, or is not stated. Plain data. Never grows. */
typedef struct gm_layer_kind {
  uint32_t flags; /* gm_layer_flags */
  uint32_t heads, kv_heads;
  uint32_t key_size, value_size;    /* elements that it keeps of one head; compressed: of the row, and 0 */
  uint32_t query_size, result_size; /* elements of one head of queries and of attention's result; 0: as key_size and
                                       value_size */
  uint32_t query_rank;              /* compressed: width of compressed queries; 0: queries are not compressed */
  uint32_t rotated_size;            /* compressed: elements of the row that carry the position */
  uint32_t indexer_size;            /* elements that an indexer keeps for each position; 0: there is none */
  uint32_t indexer_value_size;      /* elements that the indexer keeps beside them, in the type of values */
  uint32_t experts, experts_used;   /* all of its experts, and those that one token passes */
  uint32_t conv_kernel, state_size; /* recurrent: taps of the convolution, and width of the state */
  uint32_t indexer_top;             /* positions that its indexer chooses, or an earlier layer's; 0: not stated */
  uint64_t inner_size;              /* recurrent: width between its projections */
  uint64_t window;                  /* positions that it sees; 0: all */
  uint64_t intermediate;            /* width of the feed-forward part that has no experts; 0: there is none */
  uint64_t expert_intermediate;     /* width of one expert */
  uint64_t shared_intermediate;     /* width of all experts together that every token passes */
  uint64_t conv_elements;           /* recurrent: of the convolution's memory, for each sequence, in f32 */
  uint64_t state_elements;          /* recurrent: of the state, likewise */
  uint64_t parameters;              /* of the layer beside its experts, where parameters_counted says so */
  uint64_t expert_parameters;       /* of all its experts together, likewise */
} gm_layer_kind;

/* Dimensions of a model, as counts, not bytes. `kinds` alone has the members in which layers differ:
 * gm_model_widest_layer sums them up. The caller sets struct_size before a call. 0: it does not apply, or is not
 * stated. Plain data.
 *
 * A program may put a model together itself: architecture, hidden, layers, vocab, and at least one kind. Without more,
 * all layers are of the first kind. */
typedef struct gm_model_config {
  uint32_t struct_size;
  uint32_t kind_count;   /* of `kinds` */
  char architecture[32]; /* GGUF's name: "llama", "gemma2", "qwen3moe"; of a config.json, the name that corresponds
                            to it */
  uint64_t hidden;       /* width of the residual stream */
  uint64_t layers;
  uint64_t vocab;          /* rows of the embedding */
  uint64_t context;        /* positions that the model was trained for */
  uint64_t encoder_layers; /* layers of the encoder of an encoder-decoder, as wide as the widest of `kinds` */
  bool encoder_only, tied_embeddings;
  bool parameters_counted; /* of a config.json: gm knows how the class of its family makes a model. The kinds of layers
                              and the three below then have each parameter once. */
  bool experts_quantised;  /* of what is quantised as matrix_bits says: only the matrices of experts are */
  gm_dtype weight_type;    /* of unquantised weights, as a config.json says ("torch_dtype"); GM_DTYPE_F64: it says none,
                              or that the weights are quantised */
  uint64_t embedding_parameters; /* tables that are looked up */
  uint64_t output_parameters;    /* behind the layers: norms, and the output matrix unless it is the embedding */
  uint64_t other_parameters;     /* encoders of text, images and sound, and what connects them */
  double matrix_bits; /* of each element of quantised matrices, with their scales, as a config.json says; 0: no matrix
                         is quantised, or gm does not know how */
  uint64_t layer_embedding;             /* width of an embedding that each layer has of its own */
  char uncounted[GM_MODEL_UNSURE_SIZE]; /* why parameters are not counted; "": they are, or it is no config.json */
  char unsure[GM_MODEL_UNSURE_SIZE];    /* why figures of this model are unknown: an architecture, or a key of its file,
                                           whose rules gm does not know; "": gm knows them */
  gm_layer_kind kinds[GM_LAYER_KINDS_MAX]; /* each kind of layer once */
  uint8_t kind_of[GM_MODEL_LAYERS_MAX];    /* of each layer, its place in `kinds` */
  uint64_t indexer_block;                  /* positions that an indexer chooses together; 0: not stated */
  uint64_t residual_streams;               /* of the residual, which hyper-connections mix; 0: not stated */
  uint64_t residual_period;                /* one of so many layers keeps the residual for later ones; 0: not stated */
  uint64_t expert_latent;                  /* width that experts read and write; 0: the width of the residual */
} gm_model_config;

/* Reads the dimensions of an open model: of GGUF from its metadata, of safetensors from the config.json in its folder.
 * A dimension that neither states gets the default of its architecture, where gm knows one. An unknown architecture
 * keeps its name, and what the usual keys say. Thread-safe.
 *
 * Errors: IO, OUT_OF_HOST_MEMORY. NOT_FOUND: there is no config.json; or width, layers or heads are not stated, and the
 * message names the key. FORMAT: a value does not suit its key, or a key comes twice; the message has the byte.
 * INVALID_ARGUMENT: an argument is NULL, or gm does not know struct_size. NOT_SUPPORTED: more layers than
 * GM_MODEL_LAYERS_MAX, or more kinds than GM_LAYER_KINDS_MAX. */
GM_API gm_status gm_model_read_config(const gm_model *model, gm_model_config *out, gm_error *err);

/* Reads the dimensions from a config.json alone, of up to 16 MB. `services` may be NULL. Errors: those of
 * gm_model_read_config. Thread-safe. */
GM_API gm_status gm_model_config_load(const gm_services *services, const char *path, gm_model_config *out,
                                      gm_error *err);

/* Returns the largest of each member over the kinds of layers that engines load, and the flags of all of them. All are
 * 0 where `config` is NULL, or gm does not know its struct_size. Thread-safe. */
GM_API gm_layer_kind gm_model_widest_layer(const gm_model_config *config);

/* Counts the elements of all tensors: `out_stored` those that the files store, `out_unique` those of parameters that
 * differ. Either may be NULL. Both stop at 2^64 - 1.
 *
 * A head that is tied to the embedding, and is stored all the same, counts once in `out_unique`. Whether it is tied,
 * the architecture says (GGUF), or the config.json beside the file (safetensors). Without a config.json it is not tied.
 * Tables of positions and masks, such as rope_freqs and inv_freq, are no parameters and do not count there.
 *
 * INVALID_ARGUMENT: `model` is NULL. Thread-safe. */
GM_API gm_status gm_model_parameter_count(const gm_model *model, uint64_t *out_stored, uint64_t *out_unique,
                                          gm_error *err);

GM_END_DECLS

#endif

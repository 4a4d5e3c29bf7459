/* Estimates of what a model will take: weights, caches and compute buffers, in an engine that works like llama.cpp.
 * docs/fit.md has the rules, their origin, and how far each can be trusted. "Rule 2" is its section of that number.
 * Every function is pure and thread-safe. */
#ifndef GM_ESTIMATE_H
#define GM_ESTIMATE_H

#include "gm/dtype.h"
#include "gm/fit.h"
#include "gm/model_config.h"

GM_BEGIN_DECLS

/* ---- from a few dimensions ---- */

/* Dimensions of a decoder. It has gated feed-forward layers, grouped-query attention, RMS norms and an output matrix of
 * its own. Never grows. */
typedef struct gm_model_dims {
  uint64_t hidden;       /* width of the residual stream */
  uint64_t intermediate; /* width of the feed-forward layers */
  uint64_t layers;
  uint64_t vocab;
  uint64_t heads;
  uint64_t kv_heads; /* 0: as `heads` */
} gm_model_dims;

/* Memory that a model of given dimensions takes. Never grows. */
typedef struct gm_inference_memory {
  uint64_t model_bytes;
  uint64_t kv_cache_bytes;
  uint64_t activation_bytes;
  uint64_t total_bytes;
} gm_inference_memory;

/* Returns the parameters of a model (rule 1): 7,241,732,096 for Mistral 7B (4096, 14336, 32, 32000, 32, 8). A number
 * above 64 bits is UINT64_MAX. 0: `dims` is NULL, or `heads` is 0. */
GM_API uint64_t gm_estimate_parameters(const gm_model_dims *dims);

/* Returns the bytes of a model's parameters, `element_bytes` each. */
GM_API uint64_t gm_estimate_model_memory(const gm_model_dims *dims, uint32_t element_bytes);

/* Returns the bytes of keys and values of `context` positions (rule 2), for one sequence and before rounding. They are
 * 2 * layers * kv_heads * head_size * context * element_bytes. */
GM_API uint64_t gm_estimate_kv_cache_memory(uint64_t layers, uint64_t kv_heads, uint64_t head_size, uint64_t context,
                                            uint32_t element_bytes);

/* Returns weights, cache, activations and their sum. The activations are those of one micro-batch of up to 512 tokens
 * with flash attention (rule 5, the largest of its three stages). All are zero when `dims` is NULL or `heads` is 0. */
GM_API gm_inference_memory gm_estimate_inference_memory(const gm_model_dims *dims, uint64_t context,
                                                        uint32_t element_bytes);

/* ---- from a model file or its dimensions ---- */

typedef enum gm_estimate_place {
  GM_ESTIMATE_DEVICE = 0, /* every layer on a device */
  GM_ESTIMATE_SPLIT = 1,  /* the output matrix and the last device_layers - 1 layers on the device; 0 layers: nothing */
  GM_ESTIMATE_HOST = 2    /* there is no device */
} gm_estimate_place;

/* How the engine will run. Zero-initialised with struct_size set, it is a plain run of one sequence. */
typedef struct gm_estimate_settings {
  uint32_t struct_size;
  gm_estimate_place place;
  uint32_t device_layers; /* with GM_ESTIMATE_SPLIT; the output matrix counts as one */
  uint32_t sequences;     /* sequences at once; 0: 1 */
  uint64_t context;       /* positions of all sequences together; 0: 4096, or what the model was trained for if that
                             is less */
  uint64_t batch;         /* tokens handed over at once; 0: 2048 */
  uint64_t micro_batch;   /* tokens computed at once; 0: 512 */
  uint64_t outputs;       /* tokens of a batch whose logits the caller wants; 0: all */
  gm_dtype key_type, value_type; /* types of the cache; 0 (f64, which no cache has): f16 */
  gm_dtype weight_type;          /* where no model file tells it; 0: that of the config.json, or f16 */
  bool separate_sequences;       /* each sequence has a cache of its own */
  bool plain_attention;          /* no flash attention */
  bool full_windows;             /* sliding-window layers keep every position */
  bool embeddings;               /* the caller wants embeddings, too */
  bool kv_on_host;
  bool kv_copies;            /* attention kernels of the device work on f16 copies of other cache types, as those of
                                CUDA do */
  uint32_t device_alignment; /* of tensors; 0: 128 */
} gm_estimate_settings;

/* How the size of the compute buffer was found. */
typedef enum gm_estimate_method {
  GM_ESTIMATE_EXACT = 0,   /* rule 5a: the engine's plan, operation by operation */
  GM_ESTIMATE_FORMULA = 1, /* rule 5b */
  GM_ESTIMATE_INTERVAL = 2 /* gm does not know the architecture well enough: trust low and high only */
} gm_estimate_method;

/* A number of bytes, and how far it can be trusted. Never grows. */
typedef struct gm_memory_range {
  uint64_t bytes; /* the expected number */
  uint64_t low, high;
} gm_memory_range;

typedef enum gm_estimate_part_kind {
  GM_ESTIMATE_WEIGHTS = 0,
  GM_ESTIMATE_CACHE = 1, /* keys and values */
  GM_ESTIMATE_STATE = 2, /* of recurrent layers */
  GM_ESTIMATE_COMPUTE = 3,
  GM_ESTIMATE_PARTS = 4
} gm_estimate_part_kind;

/* One part of an estimate, in all places together. Never grows. */
typedef struct gm_estimate_part {
  gm_standing standing;
  gm_memory_range range;             /* exact: low and high are `bytes`; unknown: 0 to 2^64 - 1, with `bytes` 0 */
  char reason[GM_MODEL_UNSURE_SIZE]; /* why it is not exact; "": it is */
} gm_estimate_part;

/* Estimated bytes of each buffer. The total is weights, cache and compute buffers. The output buffer comes on top.
 *
 * Where the standing of a part is unknown, its figures are 0, and its ranges are 0 to 2^64 - 1. The total is that of
 * the other parts then, up to 2^64 - 1: the engine takes at least so much. */
typedef struct gm_memory_estimate {
  uint32_t struct_size;
  gm_estimate_method method;
  bool weights_exact; /* read from tensors; else counted from dimensions */
  uint64_t parameters;
  uint64_t host_weights, device_weights;
  uint64_t host_kv, device_kv;
  gm_memory_range host_compute, device_compute;
  uint64_t output; /* logits and embeddings, in host memory; grows when the caller wants more of them */
  gm_memory_range total;
  /* Values as used, after the engine's rounding. */
  uint64_t context, cells, window_cells, streams, micro_batch;
  gm_standing standing;                      /* the worst of `parts` */
  gm_estimate_part parts[GM_ESTIMATE_PARTS]; /* by gm_estimate_part_kind */
  uint64_t tied_weights; /* of device_weights: the copy of an embedding that is the output matrix, too */
} gm_memory_estimate;

/* Estimates the memory of a model. With `model` NULL the weights are counted from the dimensions, in
 * settings->weight_type. `settings` may be NULL. The call takes host memory through `services` (may be NULL), about 100
 * KB for 32 layers, and gives it back.
 *
 * Errors: OUT_OF_HOST_MEMORY. INVALID_ARGUMENT: `out` or `config` is NULL, gm does not know a struct_size, or a
 * dimension or setting is missing or out of range. The message names it. `model` holds no tensors, as a vocabulary.
 *
 * NOT_SUPPORTED: the engine refuses the cache types. With flash attention the blocks of a quantised type must divide
 * the head. Without it they must divide the row of all key heads, and values cannot be quantised. Keys and values that
 * are compressed together (MLA) have one type. */
GM_API gm_status gm_estimate_memory(const gm_services *services, const gm_model_config *config, const gm_model *model,
                                    const gm_estimate_settings *settings, gm_memory_estimate *out, gm_error *err);

/* Computes figures for gm_place_layers (gm/fit.h). It fills in the layers, host_fixed_bytes, partial_bytes and standing
 * of `out`, and leaves its other members. A figure that nobody knows is 0, and the standing is unknown then.
 * out->layers is then `layers`. `layers` has room for `capacity` entries. The call needs config->layers + 1 of them;
 * the last is the output layer. The settings are those of a run with all layers on devices: settings->place is ignored.
 *
 * Errors: those of gm_estimate_memory. INVALID_ARGUMENT also: `layers` or `out` is NULL, or `capacity` is too small. */
GM_API gm_status gm_estimate_layers(const gm_services *services, const gm_model_config *config, const gm_model *model,
                                    const gm_estimate_settings *settings, gm_fit_layer *layers, uint32_t capacity,
                                    gm_fit_request *out, gm_error *err);

GM_END_DECLS

#endif

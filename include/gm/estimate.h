/* What a model will take: weights, caches, compute buffers, for an engine that works like llama.cpp. The rules, where
 * they come from and how far each can be trusted: docs/fit.md; "rule 2" below is its section. Pure and thread-safe. */
#ifndef GM_ESTIMATE_H
#define GM_ESTIMATE_H

#include "gm/dtype.h"
#include "gm/fit.h"
#include "gm/model_config.h"

GM_BEGIN_DECLS

/* ---- from a few dimensions ---- */

/* A decoder with gated feed-forward layers, grouped-query attention, RMS norms and an output matrix of its own. Never
 * grows. */
typedef struct gm_model_dims {
  uint64_t hidden;       /* width of the residual stream */
  uint64_t intermediate; /* width of the feed-forward layers */
  uint64_t layers;
  uint64_t vocab;
  uint64_t heads;
  uint64_t kv_heads; /* 0: heads */
} gm_model_dims;

/* What such a model takes. Never grows. */
typedef struct gm_inference_memory {
  uint64_t model_bytes;
  uint64_t kv_cache_bytes;
  uint64_t activation_bytes;
  uint64_t total_bytes;
} gm_inference_memory;

/* Parameters of that model (rule 1): 7,241,732,096 for Mistral 7B (4096, 14336, 32, 32000, 32, 8). What does not fit in
 * 64 bits is UINT64_MAX; 0 when dims is NULL or heads is 0. */
GM_API uint64_t gm_estimate_parameters(const gm_model_dims *dims);

/* Their bytes, `element_bytes` each. */
GM_API uint64_t gm_estimate_model_memory(const gm_model_dims *dims, uint32_t element_bytes);

/* Keys and values of `context` positions (rule 2, one sequence, before rounding): 2 * layers * kv_heads * head_size *
 * context * element_bytes. */
GM_API uint64_t gm_estimate_kv_cache_memory(uint64_t layers, uint64_t kv_heads, uint64_t head_size, uint64_t context,
                                            uint32_t element_bytes);

/* Weights, cache and the activations of one micro-batch of up to 512 tokens with flash attention (rule 5, the larger of
 * its three stages), and their sum. All zero when dims is NULL or heads is 0. */
GM_API gm_inference_memory gm_estimate_inference_memory(const gm_model_dims *dims, uint64_t context,
                                                        uint32_t element_bytes);

/* ---- from a model file or its dimensions ---- */

typedef enum gm_estimate_place {
  GM_ESTIMATE_DEVICE = 0, /* every layer on a device */
  GM_ESTIMATE_SPLIT = 1,  /* the output matrix and the last device_layers - 1 layers on the device; 0: nothing */
  GM_ESTIMATE_HOST = 2    /* no device at all */
} gm_estimate_place;

/* How the engine will be run. All zero but struct_size is a plain run of one sequence. */
typedef struct gm_estimate_settings {
  uint32_t struct_size;
  gm_estimate_place place;
  uint32_t device_layers; /* with GM_ESTIMATE_SPLIT; the output matrix counts as one */
  uint32_t sequences;     /* at once; 0: 1 */
  uint64_t context;       /* positions, of all sequences together; 0: 4096, or what the model was trained for if less */
  uint64_t batch;         /* tokens handed over at once; 0: 2048 */
  uint64_t micro_batch;   /* tokens computed at once; 0: 512 */
  uint64_t outputs;       /* tokens of a batch whose logits are wanted; 0: all */
  gm_dtype key_type, value_type; /* of the cache; 0 (f64, which no cache has): f16 */
  gm_dtype weight_type;          /* where there is no model file to read it from; 0: f16 */
  bool separate_sequences;       /* each has a cache of its own */
  bool plain_attention;          /* no flash attention */
  bool full_windows;             /* sliding-window layers keep every position */
  bool embeddings;               /* wanted, too */
  bool kv_on_host;
  bool kv_copies;            /* the device's attention kernels work on f16 copies of other cache types, as CUDA's do */
  uint32_t device_alignment; /* of tensors; 0: 128 */
} gm_estimate_settings;

/* How the compute buffer was found. */
typedef enum gm_estimate_method {
  GM_ESTIMATE_EXACT = 0,   /* rule 5a: the engine's plan, operation by operation */
  GM_ESTIMATE_FORMULA = 1, /* rule 5b */
  GM_ESTIMATE_INTERVAL = 2 /* the architecture is not known well enough: trust low and high, not the value between */
} gm_estimate_method;

/* Bytes, and how far they can be trusted. Never grows. */
typedef struct gm_memory_range {
  uint64_t bytes; /* what is expected */
  uint64_t low, high;
} gm_memory_range;

/* Bytes per buffer. The total is weights, cache and compute buffers; the output buffer comes on top. */
typedef struct gm_memory_estimate {
  uint32_t struct_size;
  gm_estimate_method method;
  bool weights_exact; /* read from tensors; else counted from dimensions */
  uint64_t parameters;
  uint64_t host_weights, device_weights;
  uint64_t host_kv, device_kv;
  gm_memory_range host_compute, device_compute;
  uint64_t output; /* logits and embeddings, in host memory; it grows when more are asked for */
  gm_memory_range total;
  /* As used, after the engine's rounding. */
  uint64_t context, cells, window_cells, streams, micro_batch;
} gm_memory_estimate;

/* Estimate. `model` may be NULL: then weights are counted from the dimensions, in settings->weight_type. `settings` may
 * be NULL. Host memory is taken for the time of the call, through `services` (may be NULL), about 100 KB for 32 layers.
 * GM_ERR_INVALID_ARGUMENT: out or config is NULL, a struct_size is unknown, a dimension or setting is missing or out of
 * range, by name; GM_ERR_NOT_SUPPORTED: the engine refuses the cache types. With flash attention
 * a quantised type's blocks must divide the head, without it they must divide the row of all key heads, and values
 * cannot be quantised; keys and values that are compressed together (MLA) have one type. GM_ERR_OUT_OF_HOST_MEMORY. */
GM_API gm_status gm_estimate_memory(const gm_services *services, const gm_model_config *config, const gm_model *model,
                                    const gm_estimate_settings *settings, gm_memory_estimate *out, gm_error *err);

/* Figures for gm_place_layers (gm/fit.h): fills the layers, host_fixed_bytes and partial_bytes of `out` and leaves the
 * rest of it; out->layers is `layers` then. `layers` has room for `capacity`, of which config->layers + 1 are needed:
 * the last is the output layer. Settings are those of a run with all layers on devices; settings->place is not read.
 * GM_ERR_INVALID_ARGUMENT also when `layers` or `out` is NULL or `capacity` too small; else as gm_estimate_memory. */
GM_API gm_status gm_estimate_layers(const gm_services *services, const gm_model_config *config, const gm_model *model,
                                    const gm_estimate_settings *settings, gm_fit_layer *layers, uint32_t capacity,
                                    gm_fit_request *out, gm_error *err);

GM_END_DECLS

#endif

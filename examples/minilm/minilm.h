/* A small engine of our own: sentence embeddings of a BERT encoder such as all-MiniLM-L6-v2.
 *
 * Weights, activations and scratch are memory of gm. The engine itself allocates nothing. One thread at a time uses a
 * minilm. A failed call gives back what it took, and fills `err`, which may be NULL. */
#ifndef GM_EXAMPLES_MINILM_H
#define GM_EXAMPLES_MINILM_H

#include "backend.h"
#include "gm/model_all.h"

enum { MINILM_MAX_LAYERS = 24, MINILM_MAX_WIDTH = 1024 };

/* The tensors of a layer: each weight is followed by its bias. */
enum minilm_layer_tensor {
  MINILM_QUERY = 0,
  MINILM_KEY = 2,
  MINILM_VALUE = 4,
  MINILM_PROJECT = 6,
  MINILM_PROJECT_NORM = 8,
  MINILM_EXPAND = 10,
  MINILM_REDUCE = 12,
  MINILM_REDUCE_NORM = 14,
  MINILM_LAYER_TENSORS = 16
};

typedef struct minilm_dims {
  uint32_t layers, width, inner, heads, words, positions, types;
} minilm_dims;

typedef struct minilm_weights {
  minilm_tensor words, positions, types, norm[2];
  minilm_tensor layers[MINILM_MAX_LAYERS][MINILM_LAYER_TENSORS];
} minilm_weights;

typedef struct minilm_params {
  const char *model;           /* a safetensors file, with or without a config.json beside it */
  const char *backend;         /* "cpu"; "opencl": the engine makes the device; "opencl-gm": gm opens it */
  const char *platform;        /* OpenCL: a part of the platform's name; NULL: any */
  uint64_t weights_max_bytes;  /* caps of the two pools; 0: by configuration */
  uint64_t work_max_bytes;     /* of activations and scratch */
  const gm_services *services; /* of gm's host memory; NULL: the C library's */
} minilm_params;

typedef struct minilm {
  minilm_dims dims;
  minilm_weights weights;
  minilm_backend backend;
  gm_context *ctx;
  gm_pool *weights_pool, *work_pool;
  uint32_t activations; /* a tag */
  gm_loaded_model *loaded;
} minilm;

/* Opens a device and loads the model. The caller closes *m; after a failure there is nothing to close.
 *
 * FORMAT: the model is no BERT encoder of 32-bit floats. UNAVAILABLE, NOT_SUPPORTED: the backend is not there.
 * Otherwise gm's answers. */
gm_status minilm_open(minilm *m, const minilm_params *params, gm_error *err);

/* Writes the embedding of one sentence, `dims.width` numbers of length 1, into `out`. INVALID_ARGUMENT: there is no
 * token, there are more than `dims.positions`, or an id is no row of the vocabulary. Otherwise gm's answers. */
gm_status minilm_embed(minilm *m, const int32_t *ids, uint32_t count, float *out, gm_error *err);

/* Closes everything. It answers the first failure, and goes on. */
gm_status minilm_close(minilm *m, gm_error *err);

/* ---- inside the engine ---- */

/* Reads the dimensions from the tensors' shapes, and compares the shape of every tensor. */
gm_status minilm_weights_check(minilm *m, const gm_model *model, gm_error *err);
/* Finds the tensors of a loaded model that minilm_weights_check accepted. */
gm_status minilm_weights_bind(minilm *m, const gm_model *model, gm_error *err);

#endif

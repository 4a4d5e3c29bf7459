/* Bounds first, then the engine's rounding: rules 2 and 5 of docs/fit.md. */
#include "core/fit/estimate_shape.h"

#include <string.h>

#include "core/base/error.h"
#include "core/base/saturate.h"
#include "core/model/layers.h"

enum { SHAPE_CELLS = 256, SHAPE_CONTEXT = 4096, SHAPE_BATCH = 2048, SHAPE_MICRO_BATCH = 512, SHAPE_ROTATION = 64 };

const gm_layer_kind *gm__shape_layer(const gm__shape *shape, uint64_t layer) {
  return gm__layer_at(shape->config, layer);
}

bool gm__shape_has_window(const gm__shape *shape, uint64_t layer) {
  return shape->window_cells && gm__shape_layer(shape, layer)->window > 0;
}

/* ---- bounds ---- */

typedef struct shape_bound {
  const char *name;
  uint64_t value, low, high;
} shape_bound;

static gm_status shape_check(const shape_bound *bounds, size_t count, gm_error *err) {
  for (size_t i = 0; i < count; i++) {
    const shape_bound *bound = &bounds[i];
    if (bound->value >= bound->low && bound->value <= bound->high) continue;
    return gm__bad_argument(err, "gm_estimate_memory", "`%s` must be %llu to %llu, is %llu", bound->name,
                            (unsigned long long)bound->low, (unsigned long long)bound->high,
                            (unsigned long long)bound->value);
  }
  return GM_OK;
}

static gm_status shape_check_config(const gm_model_config *config, gm_error *err) {
  uint64_t attends = config->inner_size ? 0 : 1;
  const shape_bound bounds[] = {
      {"hidden", config->hidden, 1, 1u << 20},
      {"layers", config->layers, 1, GM_MODEL_LAYERS_MAX},
      {"vocab", config->vocab, 1, 1u << 26},
      {"heads", config->heads, attends, 4096},
      {"kv_heads", config->kv_heads, 0, 4096},
      {"head_size", config->head_size, 0, 1u << 16},
      {"value_head_size", config->value_head_size, 0, 1u << 16},
      {"intermediate", config->intermediate, 0, 1u << 24},
      {"experts", config->experts, 0, 1u << 16},
      {"experts_used", config->experts_used, 0, 1u << 10},
      {"expert_intermediate", config->expert_intermediate, 0, 1u << 24},
      {"experts_shared", config->experts_shared, 0, 1u << 10},
      {"window", config->window, 0, 1u << 28},
      {"window_period", config->window_period, 0, 4096},
      {"kv_lora_rank", config->kv_lora_rank, 0, 1u << 16},
      {"rope_size", config->rope_size, 0, 1u << 16},
      {"layer_embedding", config->layer_embedding, 0, 1u << 16},
      {"conv_kernel", config->conv_kernel, 0, 1u << 16},
      {"state_size", config->state_size, 0, 1u << 16},
      {"inner_size", config->inner_size, 0, 1u << 20},
  };
  return shape_check(bounds, sizeof bounds / sizeof *bounds, err);
}

static gm_status shape_check_run(const gm__shape *shape, uint64_t batch, uint64_t micro_batch, gm_error *err) {
  const shape_bound bounds[] = {
      {"context", shape->context, 1, 1u << 28},
      {"sequences", shape->sequences, 1, 1u << 12},
      {"batch", batch, 1, 1u << 28},
      {"micro_batch", micro_batch, 1, 1u << 18},
      {"device_alignment", shape->alignment, 1, 1u << 20},
  };
  return shape_check(bounds, sizeof bounds / sizeof *bounds, err);
}

/* ---- dimensions ---- */

/* Architectures without a row of operations whose feed-forward layers are two matrices. */
static bool shape_is_plain(const char *architecture) {
  static const char *const names[] = {"bert", "bloom", "gptj", "mpt", "opt", "phi2", "starcoder"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    if (strcmp(names[i], architecture) == 0) return true;
  }
  return false;
}

/* Engines of one architecture compute logits with the embedding itself, where it is; encoders make none. */
static bool shape_copies_embedding(const gm_model_config *config) {
  return !config->encoder_only && strcmp(config->architecture, "bitnet") != 0;
}

/* Engines keep a cache for these encoders, and compute without it. */
static bool shape_ignores_cache(const char *architecture) {
  return strcmp(architecture, "t5encoder") == 0 || strcmp(architecture, "llama-embed") == 0;
}

static void shape_take_layers(gm__shape *shape, const gm_model_config *config) {
  bool cached = false, attends = false;
  for (uint32_t i = 0; i < config->kind_count; i++) {
    const gm_layer_kind *kind = &config->kinds[i];
    cached = cached || kind->flags & (GM_LAYER_ATTENDS | GM_LAYER_SHARES);
    attends = attends || kind->flags & GM_LAYER_UNCACHED;
    shape->mixes = shape->mixes || kind->flags & GM_LAYER_RECURRENT;
    shape->widest_values = gm__max(shape->widest_values, gm__mul_sat(kind->kv_heads, kind->value_size));
  }
  shape->uncached = (attends && !cached) || shape_ignores_cache(config->architecture);
}

static void shape_take_model(gm__shape *shape, const gm_model_config *config) {
  shape->row = gm__op_row_find(config->architecture);
  shape->plain = shape->row ? shape->row->plain : shape_is_plain(config->architecture);
  shape->hidden = config->hidden;
  shape->layers = config->layers;
  shape->vocab = config->vocab;
  shape->heads = config->heads;
  shape->key_heads = config->kv_heads ? config->kv_heads : config->heads;
  shape->head = config->head_size || !config->heads ? config->head_size : config->hidden / config->heads;
  shape->value_head = config->value_head_size ? config->value_head_size : shape->head;
  shape->intermediate = config->intermediate;
  shape->experts = config->experts;
  shape->experts_used = config->experts_used;
  shape->expert_width = config->expert_intermediate ? config->expert_intermediate : config->intermediate;
  shape->shared_experts = config->experts_shared;
  shape->has_dense_layers = config->leading_dense_layers > 0;
  shape->mla = config->kv_lora_rank > 0;
  shape->encoder_only = config->encoder_only;
  shape->encoder_decoder = config->encoder_layers > 0;
  shape->biased = shape->encoder_decoder || strcmp(config->architecture, "t5encoder") == 0;
  shape->copies_embedding = shape_copies_embedding(config);
  shape_take_layers(shape, config);
  shape->recurrent = config->inner_size > 0 && config->heads == 0;
  shape->key_width = shape->mla ? config->kv_lora_rank + config->rope_size : shape->key_heads * shape->head;
  shape->value_width = shape->mla ? 0 : shape->key_heads * shape->value_head;
  if (shape->mla || shape->encoder_only || shape->uncached || shape->encoder_decoder || shape->recurrent)
    shape->row = NULL;
  bool windows = config->window && config->window_period > 1 && (!shape->row || shape->row->windows);
  shape->window_period = windows ? config->window_period : 0;
}

/* Rule 2: rounding of the context, and the cells of window layers. */
static void shape_take_cells(gm__shape *shape, const gm_model_config *config, const gm_estimate_settings *settings,
                             uint64_t micro_batch) {
  uint64_t rounded = gm__round_up(shape->context, SHAPE_CELLS);
  bool separate = settings->separate_sequences;
  shape->streams = separate ? shape->sequences : 1;
  shape->cells = separate ? gm__round_up(rounded / shape->sequences, SHAPE_CELLS) : rounded;
  if (shape->cells == 0) shape->cells = SHAPE_CELLS;
  if (!shape->window_period) return;
  uint64_t windows = separate ? 1 : shape->sequences;
  uint64_t wanted = gm__round_up(config->window * windows + micro_batch, SHAPE_CELLS);
  shape->window_cells = settings->full_windows ? shape->cells : gm__min(shape->cells, wanted);
}

/* ---- cache types ---- */

static bool shape_is_quantised(gm_dtype type) {
  uint32_t elements = 1;
  return gm_dtype_block(type, &elements, NULL) == GM_OK && elements > 1;
}

/* The side of the matrix that turns a quantised cache: the largest power of two that divides the head. */
static uint64_t shape_rotation(gm_dtype type, uint64_t head, bool mla) {
  if (mla || !head || head % SHAPE_ROTATION != 0 || !shape_is_quantised(type)) return 0;
  return head & (~head + 1);
}

/* Rule 5c. */
static uint64_t shape_copies(const gm_estimate_settings *settings, gm_dtype type, uint64_t width) {
  bool copies = settings->kv_copies && type != GM_DTYPE_F16 && type != GM_DTYPE_F32;
  return copies ? 2 * width : 0;
}

static gm_status shape_check_type(gm_dtype type, uint64_t width, const char *what, gm_error *err) {
  uint32_t elements = 0;
  if (gm_dtype_block(type, &elements, NULL) != GM_OK) {
    return gm__bad_argument(err, "gm_estimate_memory", "%d is no type of a cache", (int)type);
  }
  if (width % elements == 0) return GM_OK;
  return gm__fail(err, GM_ERR_NOT_SUPPORTED, 0, "gm_estimate_memory",
                  "a cache of type %s needs %s of a multiple of %u; these have %llu", gm_dtype_name(type), what,
                  elements, (unsigned long long)width);
}

/* Flash attention reads a cache head by head, other kernels row by row, and values the other way round. */
static gm_status shape_check_types(const gm__shape *shape, gm_error *err) {
  bool by_head = shape->flash && !shape->mla;
  uint64_t keys = by_head ? shape->head : shape->key_width, values = by_head ? shape->value_head : 0;
  const char *what = by_head ? "heads" : "rows";
  gm_status status = shape_check_type(shape->key_type, keys, what, err);
  if (status == GM_OK) status = shape_check_type(shape->value_type, values, what, err);
  if (status != GM_OK) return status;
  if (shape->mla && shape->key_type != shape->value_type) {
    return gm__fail(err, GM_ERR_NOT_SUPPORTED, 0, "gm_estimate_memory",
                    "this model keeps keys and values together, in one type, not in %s and %s",
                    gm_dtype_name(shape->key_type), gm_dtype_name(shape->value_type));
  }
  if (!shape->flash && shape_is_quantised(shape->value_type)) {
    return gm__fail(err, GM_ERR_NOT_SUPPORTED, 0, "gm_estimate_memory",
                    "values of type %s need flash attention; keys do not", gm_dtype_name(shape->value_type));
  }
  return GM_OK;
}

static gm_status shape_take_types(gm__shape *shape, const gm_estimate_settings *settings, gm_error *err) {
  shape->key_type = settings->key_type == GM_DTYPE_F64 ? GM_DTYPE_F16 : settings->key_type;
  shape->value_type = settings->value_type == GM_DTYPE_F64 ? GM_DTYPE_F16 : settings->value_type;
  /* Engines turn flash attention off for this architecture. */
  shape->flash = !settings->plain_attention && strcmp(shape->config->architecture, "grok") != 0;
  if (shape->encoder_decoder && settings->separate_sequences && shape->sequences > 1) {
    return gm__fail(err, GM_ERR_NOT_SUPPORTED, 0, "gm_estimate_memory",
                    "an encoder-decoder has one cache for all sequences");
  }
  gm_status status = shape_check_types(shape, err);
  if (status != GM_OK) return status;
  shape->key_rotation = shape_rotation(shape->key_type, shape->head, shape->mla);
  shape->value_rotation = shape_rotation(shape->value_type, shape->value_head, shape->mla) ? SHAPE_ROTATION : 0;
  shape->key_copies = shape_copies(settings, shape->key_type, shape->key_width);
  shape->value_copies = shape_copies(settings, shape->value_type, shape->value_width);
  return GM_OK;
}

gm_status gm__shape_make(const gm_model_config *config, const gm_estimate_settings *settings, gm__shape *out,
                         gm_error *err) {
  *out = (gm__shape){.row = NULL};
  gm_status status = shape_check_config(config, err);
  if (status != GM_OK) return status;
  shape_take_model(out, config);
  out->config = config;
  uint64_t trained = config->context ? gm__min(config->context, SHAPE_CONTEXT) : SHAPE_CONTEXT;
  uint64_t batch = settings->batch ? settings->batch : SHAPE_BATCH;
  uint64_t micro_batch = settings->micro_batch ? settings->micro_batch : SHAPE_MICRO_BATCH;
  out->context = settings->context ? settings->context : trained;
  out->sequences = settings->sequences ? settings->sequences : 1;
  out->alignment = settings->device_alignment ? settings->device_alignment : GM__ESTIMATE_DEVICE_ALIGNMENT;
  micro_batch = gm__min(micro_batch, batch);
  status = shape_check_run(out, batch, micro_batch, err);
  if (status != GM_OK) return status;
  uint64_t seen = gm__min(micro_batch, out->context);
  shape_take_cells(out, config, settings, seen);
  /* Without a cache the rounded context counts. */
  if (out->uncached) seen = gm__min(micro_batch, out->cells * out->streams);
  out->tokens = gm__round_up(seen, out->sequences);
  out->outputs = gm__min(out->tokens, settings->outputs ? settings->outputs : batch);
  return shape_take_types(out, settings, err);
}

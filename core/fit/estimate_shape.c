/* Bounds first, then the engine's rounding: rules 2 and 5 of docs/fit.md. */
#include "core/fit/estimate_shape.h"

#include <stdio.h>

#include "core/base/error.h"
#include "core/base/saturate.h"
#include "core/model/layers.h"

enum { SHAPE_BLOCK = 128, SHAPE_NARROWEST_BLOCK = 32, SHAPE_BLOCK_POSITIONS = 256 };
enum { SHAPE_CELLS = 256, SHAPE_CONTEXT = 4096, SHAPE_BATCH = 2048, SHAPE_MICRO_BATCH = 512, SHAPE_ROTATION = 64 };

#define SHAPE_NO_KIND UINT32_MAX

const gm_layer_kind *gm__shape_layer(const gm__shape *shape, uint64_t layer) {
  return gm__layer_at(shape->config, layer);
}

uint64_t gm__shape_indexer(const gm__shape *shape) {
  uint64_t widest = 0;
  for (uint32_t i = 0; i < shape->config->kind_count; i++) {
    const gm_layer_kind *kind = &shape->config->kinds[i];
    if (kind->flags & GM_LAYER_COMPRESSED) widest = gm__max(widest, gm__min(kind->indexer_size, 1u << 16));
  }
  return widest;
}

uint64_t gm__shape_walked(const gm__shape *shape) {
  uint64_t layers = shape->layers;
  while (layers > 0 && gm__shape_layer(shape, layers - 1)->flags & GM_LAYER_UNUSED) layers--;
  return layers;
}

uint64_t gm__shape_decay_bytes(const gm__shape *shape) {
  const bool has = shape->mixes && shape->traits->mixer == GM__OP_MIXER_LINEAR;
  return has ? 4 * shape->heads * shape->tokens * shape->tokens : 0;
}

bool gm__shape_is_sparse(const gm__shape *shape) {
  return shape->traits->block_sparse && shape->flash && shape->streams == shape->sequences;
}

uint64_t gm__shape_block(const gm__shape *shape) {
  return shape->config->indexer_block ? shape->config->indexer_block : SHAPE_BLOCK;
}

uint64_t gm__shape_narrowest_block(const gm__shape *shape) {
  return shape->config->indexer_block ? shape->config->indexer_block : SHAPE_NARROWEST_BLOCK;
}

/* Rounds as engines do, whether it is a power of two or not. */
uint64_t gm__shape_block_positions(const gm__shape *shape) {
  const uint64_t rest = gm__shape_block(shape) - 1;
  return (SHAPE_BLOCK_POSITIONS + rest) & ~rest;
}

uint64_t gm__shape_blocks_bytes(const gm__shape *shape, uint64_t positions, uint64_t wide) {
  const uint64_t blocks = gm__max(1, positions / wide);
  if (!gm__shape_is_sparse(shape)) return 0;
  return 4 * shape->tokens * (positions + blocks) + 4 * shape->streams * (positions + shape->cells);
}

bool gm__shape_has_window(const gm__shape *shape, uint64_t layer) {
  return shape->window_cells && gm__shape_layer(shape, layer)->window > 0;
}

/* ---- bounds ---- */

typedef struct shape_bound {
  const char *name;
  uint64_t value, low, high;
} shape_bound;

static gm_status shape_check(const shape_bound *bounds, size_t count, uint32_t kind, gm_error *err) {
  char of[32] = "";
  if (kind != SHAPE_NO_KIND) snprintf(of, sizeof of, "kinds[%u].", (unsigned)kind);
  for (size_t i = 0; i < count; i++) {
    const shape_bound *bound = &bounds[i];
    if (bound->value >= bound->low && bound->value <= bound->high) continue;
    return gm__bad_argument(err, "gm_estimate_memory", "`%s%s` must be %llu to %llu, is %llu", of, bound->name,
                            (unsigned long long)bound->low, (unsigned long long)bound->high,
                            (unsigned long long)bound->value);
  }
  return GM_OK;
}

static gm_status shape_check_kind(const gm_layer_kind *kind, uint32_t number, gm_error *err) {
  const bool attends = kind->flags & (GM_LAYER_ATTENDS | GM_LAYER_SHARES | GM_LAYER_UNCACHED);
  const shape_bound bounds[] = {
      {"heads", kind->heads, attends, 4096},
      {"kv_heads", kind->kv_heads, 0, 4096},
      {"key_size", kind->key_size, 0, 1u << 17},
      {"value_size", kind->value_size, 0, 1u << 16},
      {"query_size", kind->query_size, 0, 1u << 16},
      {"result_size", kind->result_size, 0, 1u << 16},
      {"query_rank", kind->query_rank, 0, 1u << 24},
      {"rotated_size", kind->rotated_size, 0, 1u << 16},
      {"experts", kind->experts, 0, 1u << 16},
      {"experts_used", kind->experts_used, 0, 1u << 10},
      {"conv_kernel", kind->conv_kernel, 0, 1u << 16},
      {"state_size", kind->state_size, 0, 1u << 16},
      {"inner_size", kind->inner_size, 0, 1u << 20},
      {"window", kind->window, 0, 1u << 28},
      {"intermediate", kind->intermediate, 0, 1u << 24},
      {"expert_intermediate", kind->expert_intermediate, 0, 1u << 24},
      {"shared_intermediate", kind->shared_intermediate, 0, 1u << 26},
  };
  return shape_check(bounds, sizeof bounds / sizeof *bounds, number, err);
}

static gm_status shape_check_config(const gm_model_config *config, gm_error *err) {
  const shape_bound bounds[] = {
      {"hidden", config->hidden, 1, 1u << 20},
      {"layers", config->layers, 1, GM_MODEL_LAYERS_MAX},
      {"vocab", config->vocab, 1, 1u << 26},
      {"layer_embedding", config->layer_embedding, 0, 1u << 16},
      {"indexer_block", config->indexer_block, 0, 1u << 20},
      {"residual_streams", config->residual_streams, 0, 16},
      {"residual_period", config->residual_period, 0, GM_MODEL_LAYERS_MAX},
      {"expert_latent", config->expert_latent, 0, 1u << 20},
      {"kind_count", config->kind_count, 1, GM_LAYER_KINDS_MAX},
  };
  gm_status status = shape_check(bounds, sizeof bounds / sizeof *bounds, SHAPE_NO_KIND, err);
  for (uint32_t i = 0; status == GM_OK && i < config->kind_count; i++) {
    status = shape_check_kind(&config->kinds[i], i, err);
  }
  for (uint64_t i = 0; status == GM_OK && i < config->layers; i++) {
    if (config->kind_of[i] < config->kind_count) continue;
    status = gm__bad_argument(err, "gm_estimate_memory", "`kind_of[%llu]` must be below `kind_count`, %u, is %u",
                              (unsigned long long)i, config->kind_count, config->kind_of[i]);
  }
  return status;
}

static gm_status shape_check_run(const gm__shape *shape, uint64_t batch, uint64_t micro_batch, gm_error *err) {
  const shape_bound bounds[] = {
      {"context", shape->context, 1, 1u << 28},
      {"sequences", shape->sequences, 1, 1u << 12},
      {"batch", batch, 1, 1u << 28},
      {"micro_batch", micro_batch, 1, 1u << 18},
      {"device_alignment", shape->alignment, 1, 1u << 20},
  };
  return shape_check(bounds, sizeof bounds / sizeof *bounds, SHAPE_NO_KIND, err);
}

/* ---- dimensions ---- */

/* The widest layer stands for all: the largest stage of one of them decides. */
static void shape_take_layers(gm__shape *shape, const gm_model_config *config, const gm_layer_kind *widest) {
  const bool cached = widest->flags & (GM_LAYER_ATTENDS | GM_LAYER_SHARES), attends = widest->flags & GM_LAYER_UNCACHED;
  shape->heads = widest->heads;
  shape->head = gm__layer_query_size(widest);
  shape->value_head = gm__layer_result_size(widest);
  shape->intermediate = widest->intermediate / (shape->traits->halved ? 2 : 1);
  shape->experts = widest->experts;
  shape->experts_used = widest->experts_used;
  shape->expert_width = widest->expert_intermediate;
  shape->has_dense_layers = widest->intermediate > 0;
  shape->mla = widest->flags & GM_LAYER_COMPRESSED;
  shape->mixes = widest->flags & GM_LAYER_RECURRENT;
  shape->recurrent = shape->mixes && !cached && !attends;
  shape->uncached = (attends && !cached) || shape->traits->scores_cacheless;
  shape->key_width = shape->mla ? widest->key_size : (uint64_t)widest->kv_heads * widest->key_size;
  shape->value_width = shape->mla ? 0 : (uint64_t)widest->kv_heads * widest->value_size;
  for (uint32_t i = 0; i < config->kind_count; i++) {
    const gm_layer_kind *kind = &config->kinds[i];
    shape->widest_values = gm__max(shape->widest_values, gm__mul_sat(kind->kv_heads, kind->value_size));
  }
}

static void shape_take_model(gm__shape *shape, const gm_model_config *config, const gm_model *model) {
  const gm_layer_kind widest = gm_model_widest_layer(config);
  const gm__op_choice choice = gm__op_choose(config->architecture, model);
  shape->traits = choice.row;
  shape->row = choice.row->unordered ? NULL : choice.row;
  shape->row_is_open = choice.is_open;
  shape->fused_qkv = choice.fused_qkv;
  shape->hidden = config->hidden;
  shape->layers = config->layers;
  shape->vocab = config->vocab;
  shape->layer_embedding = config->layer_embedding ? config->layer_embedding : shape->traits->layer_embedding;
  shape->residual_streams = config->residual_streams;
  shape->residual_period = shape->traits->banked ? config->residual_period : 0;
  shape->expert_latent = config->expert_latent;
  shape->encoder_only = config->encoder_only;
  shape->encoder_decoder = config->encoder_layers > 0;
  shape_take_layers(shape, config, &widest);
  if (shape->traits->value_norm && shape->experts > 0) shape->row = NULL;
  if (shape->mla != shape->traits->compressed || shape->encoder_only || shape->uncached || shape->encoder_decoder ||
      shape->recurrent)
    shape->row = NULL;
  shape->window = !shape->row || shape->row->windows ? widest.window : 0;
}

/* Rule 2: rounding of the context, and the cells of window layers. */
static void shape_take_cells(gm__shape *shape, const gm_estimate_settings *settings, uint64_t micro_batch) {
  uint64_t rounded = gm__round_up(shape->context, SHAPE_CELLS);
  bool separate = settings->separate_sequences;
  shape->streams = separate ? shape->sequences : 1;
  shape->cells = separate ? gm__round_up(rounded / shape->sequences, SHAPE_CELLS) : rounded;
  if (shape->cells == 0) shape->cells = SHAPE_CELLS;
  if (!shape->window) return;
  uint64_t windows = separate ? 1 : shape->sequences;
  uint64_t wanted = gm__round_up(shape->window * windows + micro_batch, SHAPE_CELLS);
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

/* The widest key of the layers with a window, or of those without. */
static uint64_t shape_key(const gm__shape *shape, bool window) {
  uint64_t widest = 0;
  for (uint32_t i = 0; i < shape->config->kind_count; i++) {
    const gm_layer_kind *kind = &shape->config->kinds[i];
    if (kind->flags & GM_LAYER_ATTENDS && (kind->window > 0) == window) widest = gm__max(widest, kind->key_size);
  }
  return widest ? widest : shape->head;
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
  return gm__fail(err, GM_ERR_NOT_SUPPORTED, "gm_estimate_memory",
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
    return gm__fail(err, GM_ERR_NOT_SUPPORTED, "gm_estimate_memory",
                    "this model keeps keys and values together, in one type, not in %s and %s",
                    gm_dtype_name(shape->key_type), gm_dtype_name(shape->value_type));
  }
  if (!shape->flash && shape_is_quantised(shape->value_type)) {
    return gm__fail(err, GM_ERR_NOT_SUPPORTED, "gm_estimate_memory",
                    "values of type %s need flash attention; keys do not", gm_dtype_name(shape->value_type));
  }
  return GM_OK;
}

static gm_status shape_take_types(gm__shape *shape, const gm_estimate_settings *settings, gm_error *err) {
  shape->key_type = settings->key_type == GM_DTYPE_F64 ? GM_DTYPE_F16 : settings->key_type;
  shape->value_type = settings->value_type == GM_DTYPE_F64 ? GM_DTYPE_F16 : settings->value_type;
  shape->flash = !settings->plain_attention && !shape->traits->no_flash;
  if (shape->encoder_decoder && settings->separate_sequences && shape->sequences > 1) {
    return gm__fail(err, GM_ERR_NOT_SUPPORTED, "gm_estimate_memory",
                    "an encoder-decoder has one cache for all sequences");
  }
  gm_status status = shape_check_types(shape, err);
  if (status != GM_OK) return status;
  const bool windows = shape->window_cells > 0;
  const uint64_t key = windows ? shape_key(shape, false) : shape->head;
  shape->key_rotation = shape_rotation(shape->key_type, key, shape->mla);
  if (windows) shape->window_key_rotation = shape_rotation(shape->key_type, shape_key(shape, true), shape->mla);
  shape->value_rotation = shape_rotation(shape->value_type, shape->value_head, shape->mla) ? SHAPE_ROTATION : 0;
  shape->key_copies = shape_copies(settings, shape->key_type, shape->key_width);
  shape->value_copies = shape_copies(settings, shape->value_type, shape->value_width);
  return GM_OK;
}

gm_status gm__shape_make(const gm_model_config *config, const gm_model *model, const gm_estimate_settings *settings,
                         gm__shape *out, gm_error *err) {
  *out = (gm__shape){.row = NULL};
  gm_status status = shape_check_config(config, err);
  if (status != GM_OK) return status;
  shape_take_model(out, config, model);
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
  shape_take_cells(out, settings, seen);
  /* Without a cache the rounded context counts. */
  if (out->uncached) seen = gm__min(micro_batch, out->cells * out->streams);
  out->tokens = gm__round_up(seen, out->sequences);
  out->outputs = gm__min(out->tokens, settings->outputs ? settings->outputs : batch);
  return shape_take_types(out, settings, err);
}

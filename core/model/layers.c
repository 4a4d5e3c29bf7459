/* Invariants: every layer below `layers` has a kind, and no two kinds are alike. A list counts more than a number for
 * all layers, and that more than what gm knows of the architecture. */
#include "core/model/layers.h"

#include <stdio.h>
#include <string.h>

#include "core/base/error.h"
#include "core/base/saturate.h"
#include "core/model/model_config.h"

enum { LAYERS_FULL_INTERVAL = 4 };

typedef struct layers_reader {
  const gm__dimensions *stated;
  const gm__architecture *architecture;
  const gm__layer_sizes *sizes;
  const gm_model_config *config; /* of the whole model */
} layers_reader;

/* ---- one layer ---- */

static uint64_t layers_listed(const layers_reader *reader, gm__layer_list which, uint64_t layer, uint64_t otherwise) {
  const uint32_t count = reader->stated->listed[which];
  return layer < count ? gm__dimensions_listed(reader->stated, which, layer) : otherwise;
}

/* A number that is too large stays so: what reads the kinds refuses it. */
static uint32_t layers_small(uint64_t number) { return (uint32_t)gm__min(number, UINT32_MAX); }

static bool layers_has_window(const layers_reader *reader, uint64_t layer) {
  const gm__layer_sizes *sizes = reader->sizes;
  if (sizes->window == 0) return false;
  if (reader->stated->listed[GM__LIST_WINDOWED]) return layers_listed(reader, GM__LIST_WINDOWED, layer, 0) != 0;
  if (sizes->window_period == 0) return false;
  const uint64_t place = layer % sizes->window_period;
  return sizes->window_first ? place != sizes->window_period - 1 : place != 0;
}

/* A layer that is neither recurrent nor attends has a feed-forward part alone. */
static bool layers_only_feeds(const layers_reader *reader, uint64_t layer) {
  if (reader->architecture->mixes != GM__RECURRENT_NEITHER) return false;
  return layers_listed(reader, GM__LIST_INTERMEDIATE, layer, reader->sizes->intermediate) > 0;
}

static bool layers_is_recurrent(const layers_reader *reader, const gm_layer_kind *kind, uint64_t layer) {
  const uint64_t stated = reader->stated->value[GM__DIM_FULL_INTERVAL];
  const uint64_t known = reader->architecture->recurrent_interval;
  const uint64_t interval = stated ? stated : known ? known : LAYERS_FULL_INTERVAL;
  const uint64_t period = reader->stated->value[GM__DIM_ATTENTION_PERIOD];
  if (reader->architecture->recurrent) return true;
  if (reader->stated->listed[GM__LIST_RECURRENT]) return layers_listed(reader, GM__LIST_RECURRENT, layer, 0) != 0;
  if (period) return layer % period != reader->stated->value[GM__DIM_ATTENTION_OFFSET];
  switch (reader->architecture->mixes) {
    case GM__RECURRENT_NO_HEADS: return kind->kv_heads == 0;
    case GM__RECURRENT_NEITHER: return kind->kv_heads == 0 && !layers_only_feeds(reader, layer);
    case GM__RECURRENT_INTERVAL: return (layer + 1) % interval != 0;
    case GM__RECURRENT_BOTH: return true;
    case GM__RECURRENT_LISTED: break;
  }
  return false;
}

/* Mamba. A short convolution remembers rows of the residual stream. */
static void layers_state_space(const layers_reader *reader, gm_layer_kind *kind) {
  const gm__layer_sizes *sizes = reader->sizes;
  const uint64_t groups = reader->stated->value[GM__DIM_GROUPS], taps = reader->stated->value[GM__DIM_SHORT_CONV];
  const uint64_t mixed = gm__add_sat(sizes->inner_size, gm__mul_sat(2 * groups, sizes->state_size));
  if (taps > 0) {
    kind->conv_elements = gm__mul_sat(reader->config->hidden, taps - 1);
    return;
  }
  kind->conv_elements = gm__mul_sat(gm__sub_sat(sizes->conv_kernel, 1), mixed);
  kind->state_elements = gm__mul_sat(sizes->state_size, sizes->inner_size);
}

/* Engines take the heads of the first layer for those of all. */
static void layers_state(const layers_reader *reader, gm_layer_kind *kind) {
  const gm__layer_sizes *sizes = reader->sizes;
  const uint64_t hidden = reader->config->hidden;
  const uint64_t *value = reader->stated->value;
  const uint64_t heads = layers_listed(reader, GM__LIST_HEADS, 0, sizes->heads);
  const uint64_t kda = value[GM__DIM_KDA_HEAD], taps = sizes->conv_kernel ? sizes->conv_kernel - 1 : 3;
  const uint64_t shift = reader->stated->stated[GM__DIM_TOKEN_SHIFT] ? value[GM__DIM_TOKEN_SHIFT] : 2;
  kind->flags |= GM_LAYER_RECURRENT;
  kind->inner_size = sizes->inner_size;
  kind->state_size = layers_small(sizes->state_size);
  kind->conv_kernel = layers_small(sizes->conv_kernel);
  switch (reader->architecture->state) {
    case GM__STATE_SPACE: layers_state_space(reader, kind); break;
    case GM__STATE_WKV:
      kind->conv_elements = value[GM__DIM_WKV_HEAD] ? gm__mul_sat(shift, hidden) : 0;
      kind->state_elements = gm__mul_sat(hidden, value[GM__DIM_WKV_HEAD]);
      break;
    case GM__STATE_KDA:
      kind->conv_elements = gm__mul_sat(3 * taps, gm__mul_sat(heads, kda));
      kind->state_elements = gm__mul_sat(gm__mul_sat(kda, kda), heads);
      break;
    case GM__STATE_LINEAR:
      kind->inner_size = gm__mul_sat(sizes->head_size, heads);
      kind->state_elements = gm__mul_sat(sizes->head_size, kind->inner_size);
      break;
  }
}

static bool layers_has_indexer(const layers_reader *reader, uint64_t layer) {
  const gm__dimensions *stated = reader->stated;
  if (stated->stated[GM__DIM_INDEXER_TOP] && stated->value[GM__DIM_INDEXER_TOP] == 0) return false;
  switch (reader->architecture->indexer) {
    case GM__INDEXER_ALL: return true;
    case GM__INDEXER_SPARSE: return layer >= reader->stated->value[GM__DIM_LEADING_DENSE];
    case GM__INDEXER_LISTED: return layers_listed(reader, GM__LIST_INDEXED, layer, 1) != 0;
  }
  return true;
}

/* A layer of a list of indexers that has none reads what the one before it has chosen. */
static bool layers_shares_indexer(const layers_reader *reader, const gm_layer_kind *kind) {
  return reader->architecture->indexer == GM__INDEXER_LISTED && kind->window == 0 &&
         reader->stated->value[GM__DIM_INDEXER_SIZE] > 0;
}

/* A window layer's own numbers, where the file says them. */
static uint64_t layers_own(const layers_reader *reader, const gm_layer_kind *kind, gm__dimension field,
                           uint64_t otherwise) {
  return kind->window > 0 && reader->stated->stated[field] ? reader->stated->value[field] : otherwise;
}

/* One row stands for the keys and values of all heads. */
static void layers_compress(const layers_reader *reader, gm_layer_kind *kind) {
  const gm__layer_sizes *sizes = reader->sizes;
  const uint64_t rank = layers_own(reader, kind, GM__DIM_WINDOW_KV_RANK, sizes->kv_lora_rank);
  kind->flags |= GM_LAYER_COMPRESSED;
  kind->kv_heads = 1;
  kind->query_size = layers_small(layers_own(reader, kind, GM__DIM_WINDOW_MLA_HEAD_SIZE, sizes->head_size));
  kind->result_size = layers_small(layers_own(reader, kind, GM__DIM_WINDOW_MLA_VALUE_SIZE, sizes->value_head_size));
  kind->query_rank = layers_small(sizes->q_lora_rank);
  kind->rotated_size = layers_small(sizes->rope_size);
  kind->key_size = layers_small(rank + sizes->rope_size);
  kind->value_size = 0;
}

static void layers_attention(const layers_reader *reader, uint64_t layer, gm_layer_kind *kind) {
  const gm__layer_sizes *sizes = reader->sizes;
  const gm__dimensions *stated = reader->stated;
  kind->flags |= GM_LAYER_ATTENDS;
  kind->window = layers_has_window(reader, layer) ? sizes->window : 0;
  kind->key_size = layers_small(layers_own(reader, kind, GM__DIM_WINDOW_KEY_SIZE, sizes->head_size));
  kind->value_size = layers_small(layers_own(reader, kind, GM__DIM_WINDOW_VALUE_SIZE, sizes->value_head_size));
  if (layers_has_indexer(reader, layer)) kind->indexer_size = layers_small(stated->value[GM__DIM_INDEXER_SIZE]);
  if (kind->indexer_size || layers_shares_indexer(reader, kind)) {
    kind->indexer_top = layers_small(stated->value[GM__DIM_INDEXER_TOP]);
  }
  const bool indexes_values = kind->indexer_size && reader->architecture->indexer == GM__INDEXER_SPARSE;
  kind->indexer_value_size = indexes_values ? kind->value_size : 0;
  if (sizes->kv_lora_rank > 0) layers_compress(reader, kind);
}

static uint64_t layers_cached(const layers_reader *reader) {
  const uint64_t layers = reader->config->layers, shared = reader->stated->value[GM__DIM_SHARED_KV_LAYERS];
  const uint64_t known = reader->architecture->cached_layers;
  return known ? gm__min(known, layers) : gm__sub_sat(layers, shared);
}

static bool layers_keeps(const layers_reader *reader) {
  if (reader->architecture->uncached) return false;
  return !reader->config->encoder_only || reader->architecture->cached;
}

static bool layers_has_experts(const layers_reader *reader, uint64_t layer) {
  const uint64_t *value = reader->stated->value;
  const uint64_t period = value[GM__DIM_EXPERT_PERIOD], step = value[GM__DIM_EXPERT_STEP];
  if (!reader->sizes->experts || layer < reader->sizes->leading_dense_layers) return false;
  if (reader->stated->listed[GM__LIST_SPARSE]) return layers_listed(reader, GM__LIST_SPARSE, layer, 0) != 0;
  if (reader->architecture->mixes == GM__RECURRENT_NEITHER && reader->stated->listed[GM__LIST_INTERMEDIATE]) {
    return layers_only_feeds(reader, layer);
  }
  if (period) return layer % period == value[GM__DIM_EXPERT_OFFSET];
  return step ? (layer + 1) % step == 0 : true;
}

static void layers_feed(const layers_reader *reader, uint64_t layer, gm_layer_kind *kind) {
  const gm__layer_sizes *sizes = reader->sizes;
  const uint64_t dense = reader->stated->value[GM__DIM_DENSE_INTERMEDIATE];
  if (!layers_has_experts(reader, layer)) {
    kind->intermediate = dense ? dense : layers_listed(reader, GM__LIST_INTERMEDIATE, layer, sizes->intermediate);
    return;
  }
  kind->flags |= GM_LAYER_EXPERTS;
  kind->experts = layers_small(sizes->experts);
  kind->experts_used = layers_small(sizes->experts_used);
  kind->expert_intermediate = sizes->expert_intermediate;
  kind->shared_intermediate = sizes->shared_intermediate;
}

static gm_layer_kind layers_one(const layers_reader *reader, uint64_t layer) {
  const gm__layer_sizes *sizes = reader->sizes;
  gm_layer_kind kind = {.heads = layers_small(layers_listed(reader, GM__LIST_HEADS, layer, sizes->heads)),
                        .kv_heads = layers_small(layers_listed(reader, GM__LIST_KV_HEADS, layer, sizes->kv_heads))};
  layers_feed(reader, layer, &kind);
  if (layer >= gm__sub_sat(reader->config->layers, reader->stated->value[GM__DIM_PREDICTION_LAYERS])) {
    kind.flags |= GM_LAYER_UNUSED;
    return kind;
  }
  const bool recurrent = layers_is_recurrent(reader, &kind, layer);
  if (recurrent) layers_state(reader, &kind);
  if ((!recurrent || reader->architecture->mixes == GM__RECURRENT_BOTH) && kind.kv_heads > 0 &&
      !layers_only_feeds(reader, layer)) {
    layers_attention(reader, layer, &kind);
    if (!layers_keeps(reader)) kind.flags = (kind.flags & ~(uint32_t)GM_LAYER_ATTENDS) | GM_LAYER_UNCACHED;
    if (layer >= layers_cached(reader)) kind.flags = (kind.flags & ~(uint32_t)GM_LAYER_ATTENDS) | GM_LAYER_SHARES;
  }
  return kind;
}

static gm_layer_kind layers_router(const gm__layer_sizes *sizes) {
  return (gm_layer_kind){.flags = GM_LAYER_ATTENDS,
                         .heads = 1,
                         .kv_heads = 1,
                         .key_size = layers_small(sizes->head_size),
                         .value_size = layers_small(sizes->value_head_size)};
}

/* ---- all layers ---- */

void gm__layers_doubt(gm_model_config *config) {
  const gm__architecture *architecture = gm__architecture_find(config->architecture);
  const char *why = architecture->unsure;
  if (!why && config->residual_streams && !architecture->streams)
    why = "streams of its residual, which gm does not count";
  for (uint32_t i = 0; i < config->kind_count && !why; i++) {
    const gm_layer_kind *kind = &config->kinds[i];
    const bool sized = kind->conv_elements > 0 || kind->state_elements > 0;
    if (kind->flags & GM_LAYER_RECURRENT && !sized) why = "recurrent layers, of whose state no key gives the size";
  }
  if (why && !config->unsure[0]) snprintf(config->unsure, sizeof config->unsure, "%s", why);
}

/* The place of a kind; kind_count: there was no room for a new one. */
static uint32_t layers_place(gm_model_config *out, const gm_layer_kind *kind) {
  uint32_t at = 0;
  while (at < out->kind_count && memcmp(&out->kinds[at], kind, sizeof *kind) != 0) at++;
  if (at == out->kind_count && at < GM_LAYER_KINDS_MAX) out->kinds[out->kind_count++] = *kind;
  return at;
}

static gm_status layers_check_lists(const gm__dimensions *stated, const gm_model_config *config, const char *op,
                                    const char *path, gm_error *err) {
  for (int which = 0; which < GM__LISTS; which++) {
    const uint32_t count = stated->listed[which];
    if (count == 0 || count == config->layers) continue;
    return gm__fail(err, GM_ERR_FORMAT, op, "%.200s: a list of %u layers, and the model has %llu", path, count,
                    (unsigned long long)config->layers);
  }
  return GM_OK;
}

gm_status gm__layers_fill(const gm__dimensions *stated, const gm__layer_sizes *sizes, const char *op, const char *path,
                          gm_model_config *out, gm_error *err) {
  const gm__architecture *architecture = gm__architecture_find(out->architecture);
  const layers_reader reader = {.stated = stated, .architecture = architecture, .sizes = sizes, .config = out};
  gm_status status = layers_check_lists(stated, out, op, path, err);
  if (status) return status;
  const uint64_t own = out->layers;
  out->layers = gm__add_sat(own, architecture->router);
  if (out->layers > GM_MODEL_LAYERS_MAX) {
    return gm__fail(err, GM_ERR_NOT_SUPPORTED, op, "%.200s: %llu layers; gm reads models of at most %d", path,
                    (unsigned long long)out->layers, (int)GM_MODEL_LAYERS_MAX);
  }
  for (uint64_t layer = 0; layer < out->layers; layer++) {
    const gm_layer_kind kind = layer < own ? layers_one(&reader, layer) : layers_router(sizes);
    const uint32_t at = layers_place(out, &kind);
    if (at == GM_LAYER_KINDS_MAX) {
      return gm__fail(err, GM_ERR_NOT_SUPPORTED, op, "%.200s: more than %d kinds of layers", path,
                      (int)GM_LAYER_KINDS_MAX);
    }
    out->kind_of[layer] = (uint8_t)at;
  }
  snprintf(out->unsure, sizeof out->unsure, "%s", stated->unsure);
  gm__layers_doubt(out);
  return GM_OK;
}

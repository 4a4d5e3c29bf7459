/* One walker for all architectures: it reads the row, never the name. */
#include "core/base/saturate.h"
#include "core/fit/op_walker.h"
#include "core/model/layers.h"

enum { WALK_MASKED_LOGITS = 32768 };

/* ---- inputs ---- */

static uint64_t walk_index_bytes(const gm__shape *shape) {
  return shape->flash ? 8 * shape->tokens : 8 * shape->tokens * shape->widest_values;
}

static void walk_cache_inputs(gm__op_walker *self, gm__op_cache *cache, uint64_t cells) {
  const gm__shape *shape = self->shape;
  const bool window = cache == &self->caches[1];
  uint64_t key_side = window ? shape->window_key_rotation : shape->key_rotation, value_side = shape->value_rotation;
  cache->cells = cells;
  if (key_side) cache->key_rotation = gm__op_read(self, 4 * key_side * key_side, 0, 0);
  if (value_side) cache->value_rotation = gm__op_read(self, 4 * value_side * value_side, 0, 0);
  cache->key_index = gm__op_read(self, 8 * shape->tokens, 0, 0);
  if (!shape->mla) cache->value_index = gm__op_read(self, walk_index_bytes(shape), 0, 0);
  cache->mask = gm__op_read(self, cells * shape->tokens * (shape->flash ? 2 : 4), 0, 0);
}

/* Zeros that each layer with an indexer writes into its mask; engines make them before all else. */
static void walk_zeros(gm__op_walker *self) {
  const gm__shape *shape = self->shape;
  for (uint64_t layer = 0; layer < shape->layers; layer++) {
    const gm_layer_kind *kind = gm__shape_layer(shape, layer);
    const uint64_t rows = gm__min(kind->indexer_top, shape->cells);
    if (rows && kind->flags & GM_LAYER_COMPRESSED)
      self->zeros[layer] = gm__op_read(self, 4 * rows * shape->tokens, 0, 0);
  }
}

/* The inputs of an indexer's cache. */
static void walk_index_inputs(gm__op_walker *self) {
  const gm__shape *shape = self->shape;
  const uint64_t side = gm__shape_indexer(shape);
  if (!side) return;
  if (!self->row->index_unturned) self->index.key_rotation = gm__op_read(self, 4 * side * side, 0, 0);
  self->index.key_index = gm__op_read(self, 8 * shape->tokens, 0, 0);
  self->index.mask = gm__op_read(self, 2 * shape->cells * shape->tokens, 0, 0); /* in f16 always */
}

/* Those of the cache that the first layer reads come first. */
static void walk_caches(gm__op_walker *self) {
  const gm__shape *shape = self->shape;
  const bool first = gm__shape_has_window(shape, 0);
  if (shape->window_cells && first) walk_cache_inputs(self, &self->caches[1], shape->window_cells);
  if (self->row->temperature && first) self->temperature = gm__op_read(self, 4 * shape->tokens, 0, 0);
  walk_cache_inputs(self, &self->caches[0], shape->cells);
  if (shape->window_cells && !first) walk_cache_inputs(self, &self->caches[1], shape->window_cells);
}

/* Whether the first operation is that of a recurrent layer. */
static bool walk_gathers_first(const gm__op_walker *self) {
  const uint32_t flags = gm__shape_layer(self->shape, 0)->flags;
  if (self->row->mixer >= GM__OP_MIXER_DELTA) return false;
  return flags & GM_LAYER_RECURRENT && !(flags & GM_LAYER_ATTENDS);
}

/* Each head of linear attention has decays: one for each token, and one for each two tokens of a sequence. */
static void walk_decays(gm__op_walker *self) {
  const gm__shape *shape = self->shape;
  if (self->row->mixer != GM__OP_MIXER_LINEAR) return;
  gm__op_read(self, 0, gm__op_read(self, 4 * shape->heads, 0, 0), 0);
  for (int i = 0; i < 2; i++) self->decays[i] = gm__op_read(self, 4 * shape->heads * shape->tokens, 0, 0);
  self->decays[2] = gm__op_read(self, gm__shape_decay_bytes(shape), 0, 0);
}

static void walk_embedding(gm__op_walker *self, gm__op_tensor embedding, gm__op_tensor position_rows) {
  const uint64_t all = self->row_bytes * self->shape->tokens;
  self->residual = position_rows ? GM__OP(self, all, .over = {embedding, position_rows}) : embedding;
  if (self->row->embedding_norm) self->residual = gm__op_read(self, all, self->residual, 0);
  self->embedding_rows = self->residual;
  if (self->row->embedding_skip) self->embedding = self->residual;
}

static void walk_take_layer(gm__op_walker *self, uint64_t layer) {
  const gm__shape *shape = self->shape;
  const gm_layer_kind *kind = gm__shape_layer(shape, layer);
  self->layer = layer;
  self->kind = kind;
  self->width = kind->flags & GM_LAYER_EXPERTS ? kind->expert_intermediate : kind->intermediate;
  if (self->row->halved) self->width /= 2;
  self->cache = &self->caches[gm__shape_has_window(shape, layer) ? 1 : 0];
  self->query_bytes = 4 * shape->tokens * kind->heads * gm__layer_query_size(kind);
  self->key_bytes = 4 * shape->tokens * kind->kv_heads * kind->key_size;
  self->value_bytes = 4 * shape->tokens * kind->kv_heads * kind->value_size;
  self->result_bytes = 4 * shape->tokens * kind->heads * gm__layer_result_size(kind);
}

/* The layer that chooses adapters reads inputs of its own, and runs before the embeddings are looked up. */
static void walk_adapters(gm__op_walker *self) {
  const uint64_t bytes = 4 * self->shape->tokens;
  gm__op_tensor signals[3];
  if (!self->row->adapters) return;
  for (int i = 0; i < 3; i++) signals[i] = gm__op_read(self, bytes, 0, 0);
  walk_caches(self);
  walk_take_layer(self, self->shape->layers - 1);
  gm__op_choose_adapters(self, signals);
}

/* The device gets copies of the embeddings' rows; the host has tokens, and a tensor for embeddings that nobody reads.
 */
static void walk_inputs(gm__op_walker *self) {
  const gm__shape *shape = self->shape;
  uint64_t all = self->row_bytes * shape->tokens;
  gm__op_tensor tokens = self->on_host ? gm__op_read(self, 4 * shape->tokens, 0, 0) : 0;
  if (self->row->masked_logits) self->logit_mask = gm__op_read(self, WALK_MASKED_LOGITS, 0, 0);
  walk_zeros(self);
  const bool first = walk_gathers_first(self);
  if (first) self->sequences = gm__op_read(self, 4 * shape->sequences, 0, 0);
  const uint64_t layers = 4 * shape->tokens * shape->layers * shape->layer_embedding;
  if (layers) self->layer_copies = gm__op_read(self, layers, 0, 0);
  walk_adapters(self);
  gm__op_tensor embedding = gm__op_read(self, all, 0, 0), position_rows = 0;
  if (self->row->mixer && !first) self->sequences = gm__op_read(self, 4 * shape->sequences, 0, 0);
  bool adds = self->row->added_positions, has_none = gm__op_row_has_no_positions(self->row, shape->layers);
  if (adds && !self->on_host) position_rows = gm__op_read(self, all, 0, 0);
  if (!has_none && (!adds || self->on_host))
    self->positions = gm__op_read(self, (self->row->sections ? 16 : 4) * shape->tokens, 0, 0);
  walk_index_inputs(self);
  if (!self->row->adapters) walk_caches(self);
  gm__op_sparse_inputs(self);
  if (!self->row->no_choice) self->wanted = gm__op_read(self, 4 * shape->outputs, 0, 0);
  walk_decays(self);
  if (self->on_host) embedding = gm__op_read(self, all, tokens, 0);
  if (adds && self->on_host) position_rows = gm__op_read(self, all, self->positions, 0);
  walk_embedding(self, embedding, position_rows);
}

/* ---- layers ---- */

static gm__op_tensor walk_norm(gm__op_walker *self, gm__op_tensor input, uint64_t bytes) {
  if (self->row->layer_norm) return gm__op_read(self, bytes, input, 0);
  return GM__OP(self, bytes, .over = {input});
}

static gm__op_tensor walk_pre_norm(gm__op_walker *self, gm__op_tensor input, uint64_t bytes) {
  return self->row->no_pre_norm ? input : walk_norm(self, input, bytes);
}

static gm__op_tensor walk_wanted_rows(gm__op_walker *self, gm__op_tensor input) {
  return gm__op_read(self, self->row_bytes * self->shape->outputs, input, self->wanted);
}

/* Each layer adds the embedding, scaled. */
static void walk_skip(gm__op_walker *self, uint64_t bytes, bool reduces) {
  if (!self->embedding) return;
  gm__op_tensor skip = reduces ? walk_wanted_rows(self, self->embedding) : self->embedding;
  skip = GM__OP(self, bytes, .over = {skip});
  self->residual = GM__OP(self, bytes, .over = {self->residual, skip});
}

/* Attention, recurrence, or both: what is left to compute of the first is its projection, and all of the second's
 * result. */
static gm__op_tensor walk_mix(gm__op_walker *self, gm__op_tensor normed) {
  const bool recurs = self->kind->flags & GM_LAYER_RECURRENT,
             attends = self->kind->flags & (GM_LAYER_ATTENDS | GM_LAYER_SHARES);
  gm__op_tensor result = attends ? gm__op_attend(self, normed) : 0;
  if (recurs && attends) {
    gm__op_gather(self, self->layer);
    normed = walk_pre_norm(self, self->residual, self->row_bytes * self->shape->tokens);
  }
  if (recurs) gm__op_recur(self, normed);
  if (!(self->kind->flags & GM_LAYER_EXPERTS)) gm__op_look_ahead(self);
  return result;
}

/* Constants of the tokens that the output matrix has no rows for come right after the last attention. */
static void walk_constants(gm__op_walker *self) {
  const uint64_t fewer = self->row->fewer_logits, vocab = self->shape->vocab;
  if (!fewer || fewer >= vocab) return;
  gm__op_tensor one = gm__op_read(self, 4, 0, 0);
  self->constants = gm__op_read(self, 4 * (vocab - fewer) * self->shape->outputs, one, 0);
}

static gm__op_tensor walk_mixed(gm__op_walker *self, gm__op_tensor result, gm__op_tensor normed) {
  const uint64_t bytes = self->row_bytes * self->shape->tokens;
  if (self->kind->flags & (GM_LAYER_ATTENDS | GM_LAYER_SHARES)) result = gm__op_project(self, result, normed);
  if (!(self->kind->flags & GM_LAYER_RECURRENT)) return result;
  gm__op_tensor recurred = gm__op_recurred(self);
  return result ? GM__OP(self, bytes, .over = {result, recurred}) : recurred;
}

/* Rows that each layer has of its own: made from the embeddings once, behind the first layer's feed-forward part. */
static void walk_layer_rows(gm__op_walker *self) {
  const gm__shape *shape = self->shape;
  const uint64_t all = 4 * shape->tokens * shape->layers * shape->layer_embedding;
  if (self->layer_rows) return;
  gm__op_tensor rows = gm__op_read(self, all, gm__op_read(self, all, self->embedding_rows, 0), 0);
  rows = GM__OP(self, all, .over = {rows, self->layer_copies});
  self->layer_rows = gm__op_read(self, all, rows, 0);
}

static void walk_layer_embedding(gm__op_walker *self, uint64_t tokens) {
  const uint64_t narrow = 4 * tokens * self->shape->layer_embedding, bytes = self->row_bytes * tokens;
  if (!narrow) return;
  gm__op_tensor gate = gm__op_read(self, narrow, self->residual, 0);
  walk_layer_rows(self);
  gate = GM__OP(self, narrow, .over = {gate}, .reads = {self->layer_rows});
  gm__op_tensor result = gm__op_read(self, bytes, gate, 0);
  self->residual = GM__OP(self, bytes, .over = {self->residual, result});
}

static void walk_serial(gm__op_walker *self, bool reduces) {
  const bool swaps = self->row->attention_last;
  gm__op_tensor normed = walk_pre_norm(self, self->residual, self->row_bytes * self->shape->tokens);
  gm__op_tensor result = walk_mix(self, normed);
  uint64_t tokens = reduces ? self->shape->outputs : self->shape->tokens, bytes = self->row_bytes * tokens;
  if (reduces) walk_constants(self);
  if (self->row->router_first) gm__op_route(self, self->residual, tokens, reduces ? self->wanted : 0);
  if (reduces && swaps) self->residual = walk_wanted_rows(self, self->residual);
  result = walk_mixed(self, result, normed);
  if (reduces) result = walk_wanted_rows(self, result);
  if (reduces && !swaps) self->residual = walk_wanted_rows(self, self->residual);
  /* A result that is seen through a view cannot be written over. */
  const bool seen = self->row->mixer == GM__OP_MIXER_DELTA && self->kind->flags & GM_LAYER_RECURRENT && !reduces;
  gm__op_tensor first = swaps || seen ? self->residual : result, second = swaps ? result : self->residual;
  self->residual = GM__OP(self, bytes, .over = {first, second}, .reads = {result});
  result = gm__op_feed(self, walk_pre_norm(self, self->residual, bytes), tokens);
  first = self->row->residual_first ? self->residual : result;
  second = self->row->residual_first ? result : self->residual;
  self->residual = GM__OP(self, bytes, .over = {first, second});
  walk_skip(self, bytes, reduces);
  walk_layer_embedding(self, tokens);
}

/* A layer's own part goes into all streams but the first. */
static void walk_streams_end_layer(gm__op_walker *self, gm__op_tensor corrected) {
  const uint64_t row = self->row_bytes * self->shape->tokens, all = row * self->row->streams;
  const uint64_t narrow = 4 * self->shape->tokens * self->shape->layer_embedding;
  gm__op_tensor gate = gm__op_read(self, narrow, self->residual, 0);
  walk_layer_rows(self);
  gate = GM__OP(self, narrow, .over = {gate}, .reads = {self->layer_rows});
  gm__op_tensor result = gm__op_read(self, row, gate, 0);
  gm__op_tensor rest = gm__op_read(self, all - row, corrected, result);
  self->residual = gm__op_read(self, all, corrected, rest);
}

/* Several streams of the residual: a layer predicts all of them, computes one, and corrects all. */
static void walk_streams_begin(gm__op_walker *self) {
  const uint64_t row = self->row_bytes * self->shape->tokens, count = self->row->streams;
  gm__op_tensor others =
      gm__op_read(self, row * (count - 1), gm__op_read(self, row * (count - 1), self->residual, 0), 0);
  gm__op_tensor lengths = gm__op_read(self, row * (count - 1), others, 0);
  others = GM__OP(self, row * (count - 1), .over = {others}, .reads = {lengths});
  self->residual = gm__op_read(self, row * count, self->residual, others);
}

static void walk_streams(gm__op_walker *self) {
  const uint64_t row = self->row_bytes * self->shape->tokens, all = row * self->row->streams;
  gm__op_tensor turned = gm__op_read(self, all, self->residual, 0);
  gm__op_tensor router = gm__op_read(self, row, self->residual, 0);
  gm__op_tensor mixed = gm__op_read(self, all, turned, router);
  gm__op_tensor predicted = gm__op_read(self, all, mixed, 0);
  predicted = GM__OP(self, all, .over = {predicted, self->residual});
  gm__op_tensor normed = gm__op_read(self, row, predicted, 0);
  gm__op_tensor result = gm__op_project(self, gm__op_attend(self, normed), normed);
  result = GM__OP(self, row, .over = {result}, .reads = {predicted});
  gm__op_tensor side = gm__op_read(self, row, normed, 0);
  side = GM__OP(self, row, .over = {side}, .reads = {normed});
  self->residual = GM__OP(self, row, .over = {result, side});
  result = gm__op_feed(self, walk_norm(self, self->residual, row), self->shape->tokens);
  result = GM__OP(self, row, .over = {result, self->residual});
  gm__op_tensor news = gm__op_read(self, all, gm__op_read(self, row, result, predicted), 0);
  router = gm__op_read(self, row, result, 0);
  news = GM__OP(self, all, .over = {news}, .reads = {router});
  gm__op_tensor corrected = GM__OP(self, all, .over = {news, predicted});
  self->residual = gm__op_read(self, row, corrected, 0);
  walk_streams_end_layer(self, corrected);
}

/* Streams of the residual that hyper-connections mix. */
static void walk_hyper(gm__op_walker *self) {
  const uint64_t row = self->row_bytes * self->shape->tokens;
  gm__op_tensor normed = walk_norm(self, gm__op_hyper_mix(self, self->shape->tokens, 2), row);
  gm__op_tensor result = gm__op_attend(self, normed);
  gm__op_hyper_copy(self);
  gm__op_hyper_spread(self, gm__op_project(self, result, normed));
  normed = walk_norm(self, gm__op_hyper_mix(self, self->shape->tokens, 2), row);
  gm__op_hyper_spread(self, gm__op_feed(self, normed, self->shape->tokens));
}

/* A residual that some layers keep, and start anew. */
static void walk_banked(gm__op_walker *self) {
  const uint64_t row = self->row_bytes * self->shape->tokens;
  gm__op_tensor mix = gm__op_bank_mix(self, self->residual);
  const bool starts = gm__op_bank_keep(self);
  gm__op_tensor normed = walk_norm(self, mix, row);
  gm__op_tensor result = walk_mix(self, normed);
  result = walk_mixed(self, result, normed);
  self->residual = starts ? result : GM__OP(self, row, .over = {self->residual, result});
  normed = walk_norm(self, gm__op_bank_mix(self, self->residual), row);
  result = gm__op_feed(self, normed, self->shape->tokens);
  self->residual = GM__OP(self, row, .over = {self->residual, result});
}

/* A layer of one part. */
static void walk_single(gm__op_walker *self, bool reduces) {
  const bool mixes = self->kind->flags & (GM_LAYER_ATTENDS | GM_LAYER_SHARES | GM_LAYER_RECURRENT);
  uint64_t tokens = reduces ? self->shape->outputs : self->shape->tokens;
  gm__op_tensor normed = walk_pre_norm(self, self->residual, self->row_bytes * self->shape->tokens), result = 0;
  if (mixes) result = walk_mixed(self, walk_mix(self, normed), normed);
  if (!mixes) result = gm__op_feed(self, normed, self->shape->tokens);
  if (reduces) result = walk_wanted_rows(self, result);
  if (reduces) self->residual = walk_wanted_rows(self, self->residual);
  self->residual = GM__OP(self, self->row_bytes * tokens, .over = {result, self->residual});
}

/* Attention and the feed-forward layer read the same. Sums go in the row's order. */
static void walk_parallel(gm__op_walker *self, bool reduces) {
  gm__op_tensor normed = walk_pre_norm(self, self->residual, self->row_bytes * self->shape->tokens);
  gm__op_tensor result = gm__op_attend(self, normed), inner = 0;
  if (self->row->second_norm) normed = walk_norm(self, self->residual, self->row_bytes * self->shape->tokens);
  uint64_t tokens = reduces ? self->shape->outputs : self->shape->tokens, bytes = self->row_bytes * tokens;
  const bool own_norm = self->row->parallel_norm;
  const gm__op_parallel order = self->row->parallel;
  if (order == GM__OP_PARALLEL_ATTENTION) {
    result = gm__op_project(self, result, normed);
    if (reduces) result = walk_wanted_rows(self, result);
  }
  if (reduces && own_norm) self->residual = walk_wanted_rows(self, self->residual);
  if (reduces && !own_norm) normed = walk_wanted_rows(self, normed);
  if (own_norm) normed = walk_norm(self, self->residual, bytes);
  inner = gm__op_feed(self, normed, tokens);
  if (order == GM__OP_PARALLEL_RESIDUAL) {
    if (reduces && !own_norm) self->residual = walk_wanted_rows(self, self->residual);
    inner = GM__OP(self, bytes, .over = {inner, self->residual});
  }
  if (order != GM__OP_PARALLEL_ATTENTION) {
    result = gm__op_project(self, result, normed);
    if (reduces) result = walk_wanted_rows(self, result);
  }
  if (order == GM__OP_PARALLEL_RESIDUAL) {
    self->residual = GM__OP(self, bytes, .over = {inner, result});
    return;
  }
  if (reduces && !own_norm) self->residual = walk_wanted_rows(self, self->residual);
  if (order == GM__OP_PARALLEL_SUM) {
    result = GM__OP(self, bytes, .over = {result, self->residual});
    self->residual = GM__OP(self, bytes, .over = {inner, result});
    return;
  }
  gm__op_tensor first = order == GM__OP_PARALLEL_ATTENTION ? result : inner;
  gm__op_tensor second = order == GM__OP_PARALLEL_ATTENTION ? inner : result;
  inner = GM__OP(self, bytes, .over = {first, second});
  self->residual = GM__OP(self, bytes, .over = {inner, self->residual});
}

static void walk_streams_merge(gm__op_walker *self) {
  const uint64_t row = self->row_bytes * self->shape->tokens, others = row * (self->row->streams - 1);
  gm__op_tensor rest = gm__op_read(self, others, self->residual, 0);
  gm__op_tensor lengths = gm__op_read(self, row, self->residual, 0);
  lengths = gm__op_read(self, others, rest, lengths);
  rest = GM__OP(self, others, .over = {rest}, .reads = {lengths});
  self->residual = gm__op_read(self, row, self->residual, rest);
}

/* The streams of the wanted tokens become one. */
static void walk_hyper_end(gm__op_walker *self) {
  const uint64_t all = self->row_bytes * self->shape->outputs * self->shape->residual_streams;
  self->residual = gm__op_read(self, all, self->residual, self->wanted);
  self->residual = gm__op_hyper_mix(self, self->shape->outputs, 1);
}

static void walk_layers(gm__op_walker *self) {
  const gm__shape *shape = self->shape;
  const gm__op_row *row = self->row;
  if (row->streams) walk_streams_begin(self);
  if (shape->residual_streams) gm__op_hyper_begin(self);
  if (walk_gathers_first(self)) gm__op_gather(self, 0);
  const uint64_t layers = gm__shape_walked(shape) - (row->adapters ? 1 : 0);
  for (uint64_t layer = 0; layer < layers; layer++) {
    const bool late = row->outputs_at_end || row->outputs_normed || row->no_choice || shape->residual_streams;
    const bool reduces = layer + 1 == layers && !late;
    walk_take_layer(self, layer);
    if (row->streams) {
      walk_streams(self);
    } else if (shape->residual_streams) {
      walk_hyper(self);
    } else if (shape->residual_period) {
      walk_banked(self);
    } else if (row->parallel) {
      walk_parallel(self, reduces);
    } else if (row->single) {
      walk_single(self, reduces);
    } else {
      walk_serial(self, reduces);
    }
  }
}

static void walk_outputs(gm__op_walker *self) {
  const gm__shape *shape = self->shape;
  const gm__op_row *row = self->row;
  const uint64_t tokens = row->outputs_normed ? shape->tokens : shape->outputs;
  if (row->streams) walk_streams_merge(self);
  if (shape->residual_streams) walk_hyper_end(self);
  if (shape->residual_period) self->residual = gm__op_bank_mix(self, self->residual);
  gm__op_tensor last = self->residual;
  if (row->outputs_at_end) self->residual = walk_wanted_rows(self, last);
  gm__op_tensor normed = walk_norm(self, self->residual, self->row_bytes * tokens), rows = normed;
  if (row->outputs_normed) rows = walk_wanted_rows(self, normed);
  const uint64_t bytes = row->host_head && !self->on_host ? 0 : 4 * shape->vocab * shape->outputs;
  gm__op_tensor logits = gm__op_read(self, self->constants ? 4 * shape->outputs * row->fewer_logits : bytes, rows, 0);
  if (self->constants) logits = gm__op_read(self, bytes, self->constants, logits);
  if (row->masked_logits) logits = gm__op_read(self, bytes, logits, self->logit_mask);
  GM__OP(self, 0, .reads = {logits, normed, rows, row->keeps_last ? last : 0});
}

gm_status gm__op_walk(const gm_services *services, const gm__shape *shape, bool on_host, uint64_t *out, gm_error *err) {
  gm__op_row row = *shape->row;
  row.fused_qkv = shape->fused_qkv;
  gm__op_walker self = {.shape = shape, .row = &row, .on_host = on_host, .row_bytes = 4 * shape->hidden};
  gm__op_list_begin(&self.ops, services);
  walk_inputs(&self);
  walk_layers(&self);
  walk_outputs(&self);
  gm_status status = gm__op_list_plan(&self.ops, on_host ? GM__ESTIMATE_HOST_ALIGNMENT : shape->alignment, out, err);
  gm__op_list_end(&self.ops);
  return status;
}

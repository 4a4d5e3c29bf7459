/* One walker for all architectures: it reads the row, never the name. Sizes are bytes of f32 activations. Only what
 * takes memory, reads a tensor for the last time or orders these is here. */
#include "core/fit/estimate_parts.h"
#include "core/fit/op_list.h"

enum { WALK_CACHES = 2 };

/* The inputs of one cache: of window layers, and of the others. */
typedef struct walk_cache {
  uint64_t cells;
  gm__op_tensor key_rotation, value_rotation, key_index, value_index, mask;
} walk_cache;

typedef struct walk {
  gm__op_list ops;
  const gm__shape *shape;
  const gm__op_row *row;
  bool on_host;
  uint64_t row_bytes;   /* of one activation of the residual stream */
  uint64_t query_bytes; /* of all tokens' queries; likewise below */
  uint64_t key_bytes, value_bytes, result_bytes;
  walk_cache caches[WALK_CACHES];
  gm__op_tensor positions, wanted; /* `wanted`: which tokens' outputs are */
  gm__op_tensor residual;
  gm__op_tensor query, key, value; /* as attention gets them */
} walk;

#define WALK_OP(self, bytes, ...) gm__op_add(&(self)->ops, (bytes), (gm__op_operands){__VA_ARGS__})

static gm__op_tensor walk_read(walk *self, uint64_t bytes, gm__op_tensor first, gm__op_tensor second) {
  return WALK_OP(self, bytes, .reads = {first, second});
}

/* ---- inputs ---- */

static uint64_t walk_index_bytes(const gm__shape *shape) {
  return shape->flash ? 8 * shape->tokens : 8 * shape->tokens * shape->value_width;
}

static void walk_cache_inputs(walk *self, walk_cache *cache, uint64_t cells) {
  const gm__shape *shape = self->shape;
  uint64_t key_side = shape->key_rotation, value_side = shape->value_rotation;
  cache->cells = cells;
  if (key_side) cache->key_rotation = walk_read(self, 4 * key_side * key_side, 0, 0);
  if (value_side) cache->value_rotation = walk_read(self, 4 * value_side * value_side, 0, 0);
  cache->key_index = walk_read(self, 8 * shape->tokens, 0, 0);
  cache->value_index = walk_read(self, walk_index_bytes(shape), 0, 0);
  cache->mask = walk_read(self, cells * shape->tokens * (shape->flash ? 2 : 4), 0, 0);
}

/* The device gets copies of the embeddings' rows; the host has tokens, and a tensor for embeddings that nobody reads.
 */
static void walk_inputs(walk *self) {
  const gm__shape *shape = self->shape;
  uint64_t all = self->row_bytes * shape->tokens;
  gm__op_tensor tokens = self->on_host ? walk_read(self, 4 * shape->tokens, 0, 0) : 0;
  gm__op_tensor embedding = walk_read(self, all, 0, 0), position_rows = 0;
  bool adds_positions = self->row->no_rope;
  if (adds_positions && !self->on_host) position_rows = walk_read(self, all, 0, 0);
  if (!adds_positions || self->on_host)
    self->positions = walk_read(self, (self->row->sections ? 16 : 4) * shape->tokens, 0, 0);
  if (shape->window_cells) walk_cache_inputs(self, &self->caches[1], shape->window_cells);
  walk_cache_inputs(self, &self->caches[0], shape->cells);
  self->wanted = walk_read(self, 4 * shape->outputs, 0, 0);
  if (self->on_host) embedding = walk_read(self, all, tokens, 0);
  if (adds_positions && self->on_host) position_rows = walk_read(self, all, self->positions, 0);
  self->residual = adds_positions ? WALK_OP(self, all, .over = {embedding, position_rows}) : embedding;
}

/* ---- pieces ---- */

static gm__op_tensor walk_norm(walk *self, gm__op_tensor input, uint64_t bytes) {
  if (self->row->layer_norm) return walk_read(self, bytes, input, 0);
  return WALK_OP(self, bytes, .over = {input});
}

static gm__op_tensor walk_pre_norm(walk *self, gm__op_tensor input, uint64_t bytes) {
  return self->row->no_pre_norm ? input : walk_norm(self, input, bytes);
}

static gm__op_tensor walk_wanted_rows(walk *self, gm__op_tensor input) {
  return walk_read(self, self->row_bytes * self->shape->outputs, input, self->wanted);
}

/* ---- attention ---- */

/* A projection's heads are seen through a view, so the rotation of positions cannot be written over it. */
static gm__op_tensor walk_rope(walk *self, gm__op_tensor input, uint64_t bytes) {
  if (self->row->no_rope) return input;
  if (!self->row->head_norm) return walk_read(self, bytes, input, self->positions);
  gm__op_tensor normed = walk_read(self, bytes, input, 0);
  return WALK_OP(self, bytes, .over = {normed}, .reads = {self->positions});
}

/* Copy the part of a fused projection that no rope has made contiguous, then rotate it. */
static gm__op_tensor walk_rotate(walk *self, gm__op_tensor input, uint64_t bytes, gm__op_tensor matrix, bool is_part) {
  if (!matrix) return input;
  if (is_part) input = walk_read(self, bytes, input, 0);
  return walk_read(self, bytes, input, matrix);
}

static gm__op_tensor walk_query_or_key(walk *self, const walk_cache *cache, gm__op_tensor input, uint64_t bytes) {
  gm__op_tensor projected = self->row->fused_qkv ? input : walk_read(self, bytes, input, 0);
  gm__op_tensor placed = walk_rope(self, projected, bytes);
  return walk_rotate(self, placed, bytes, cache->key_rotation, self->row->fused_qkv && self->row->no_rope);
}

static gm__op_tensor walk_value(walk *self, const walk_cache *cache, gm__op_tensor input) {
  bool fused = self->row->fused_qkv;
  gm__op_tensor projected = fused ? input : walk_read(self, self->value_bytes, input, 0);
  return walk_rotate(self, projected, self->value_bytes, cache->value_rotation, fused);
}

static void walk_project(walk *self, const walk_cache *cache, gm__op_tensor input) {
  uint64_t all = self->query_bytes + self->key_bytes + self->value_bytes;
  if (self->row->fused_qkv) input = walk_read(self, all, input, 0);
  self->query = walk_query_or_key(self, cache, input, self->query_bytes);
  if (!self->row->key_first) self->value = walk_value(self, cache, input);
  self->key = walk_query_or_key(self, cache, input, self->key_bytes);
  if (self->row->key_first) self->value = walk_value(self, cache, input);
}

static gm__op_tensor walk_flash(walk *self, const walk_cache *cache) {
  const gm__shape *shape = self->shape;
  uint64_t cells = cache->cells * shape->streams, bytes = self->result_bytes;
  gm__op_tensor keys = 0, values = 0;
  if (shape->key_type == GM_DTYPE_F32) keys = walk_read(self, 2 * cells * shape->key_width, 0, 0);
  if (shape->value_type == GM_DTYPE_F32) values = walk_read(self, 2 * cells * shape->value_width, 0, 0);
  if (!self->on_host) bytes += cells * (shape->key_copies + shape->value_copies);
  return WALK_OP(self, bytes, .reads = {self->query, keys, values, cache->mask});
}

static gm__op_tensor walk_scores(walk *self, const walk_cache *cache) {
  uint64_t bytes = 4 * self->shape->tokens * cache->cells * self->shape->heads;
  gm__op_tensor scores = walk_read(self, bytes, self->query, 0);
  scores = WALK_OP(self, bytes, .over = {scores}, .reads = {cache->mask});
  gm__op_tensor weighted = walk_read(self, self->result_bytes, scores, 0);
  return walk_read(self, self->result_bytes, weighted, 0);
}

static gm__op_tensor walk_attention(walk *self, const walk_cache *cache, gm__op_tensor input) {
  walk_project(self, cache, input);
  walk_read(self, 0, self->key, cache->key_index);
  walk_read(self, 0, self->value, cache->value_index);
  return self->shape->flash ? walk_flash(self, cache) : walk_scores(self, cache);
}

static gm__op_tensor walk_output(walk *self, const walk_cache *cache, gm__op_tensor result) {
  if (cache->value_rotation) result = walk_read(self, self->result_bytes, result, cache->value_rotation);
  return walk_read(self, self->row_bytes * self->shape->tokens, result, 0);
}

/* ---- feed-forward ---- */

static gm__op_tensor walk_dense(walk *self, gm__op_tensor input, uint64_t width, uint64_t tokens) {
  uint64_t bytes = 4 * width * tokens;
  gm__op_tensor inner = 0;
  if (self->row->fused_gate) {
    inner = walk_read(self, 2 * bytes, input, 0);
    inner = walk_read(self, bytes, inner, 0);
  } else if (self->row->plain) {
    inner = walk_read(self, bytes, input, 0);
  } else {
    gm__op_tensor gate = walk_read(self, bytes, input, 0);
    inner = walk_read(self, bytes, input, 0);
    inner = walk_read(self, bytes, gate, inner);
  }
  return walk_read(self, self->row_bytes * tokens, inner, 0);
}

/* The weights of the chosen experts; `*chosen` is their numbers. */
static gm__op_tensor walk_router(walk *self, const gm_layer_kind *kind, gm__op_tensor input, uint64_t tokens,
                                 gm__op_tensor *chosen) {
  uint64_t all = UINT64_C(4) * kind->experts * tokens, used = UINT64_C(4) * kind->experts_used * tokens;
  gm__op_tensor odds = walk_read(self, all, input, 0);
  if (!self->row->late_softmax) odds = WALK_OP(self, all, .over = {odds});
  *chosen = walk_read(self, all, self->row->biased_choice ? walk_read(self, all, odds, 0) : odds, 0);
  gm__op_tensor weights = walk_read(self, used, odds, *chosen);
  if (self->row->late_softmax) return walk_read(self, used, weights, 0);
  if (self->row->raw_weights) return weights;
  gm__op_tensor sum = walk_read(self, 4 * tokens, weights, 0);
  return walk_read(self, used, weights, sum);
}

static gm__op_tensor walk_experts(walk *self, const gm_layer_kind *kind, gm__op_tensor input, uint64_t tokens) {
  uint64_t used = kind->experts_used, bytes = 4 * kind->expert_intermediate * used * tokens;
  uint64_t row = self->row_bytes * tokens;
  gm__op_tensor chosen = 0, weights = walk_router(self, kind, input, tokens, &chosen);
  gm__op_tensor gate = walk_read(self, bytes, input, chosen), up = walk_read(self, bytes, input, chosen);
  gm__op_tensor inner = walk_read(self, bytes, gate, up);
  gm__op_tensor down = walk_read(self, row * used, inner, chosen);
  down = WALK_OP(self, row * used, .over = {down}, .reads = {weights});
  if (used < 2) return down;
  gm__op_tensor sum = walk_read(self, row, down, 0);
  /* Each further sum is written over the one before it, so one stands for all. */
  return used > 2 ? WALK_OP(self, row, .over = {sum}, .reads = {down}) : sum;
}

/* The experts that every token has. */
static gm__op_tensor walk_shared(walk *self, const gm_layer_kind *kind, gm__op_tensor input, uint64_t tokens) {
  uint64_t row = self->row_bytes * tokens;
  if (!self->row->shared_gate) return walk_dense(self, input, kind->shared_intermediate, tokens);
  gm__op_tensor odds = walk_read(self, 4 * tokens, input, 0), sigmoid = walk_read(self, 4 * tokens, odds, 0);
  sigmoid = WALK_OP(self, 4 * tokens, .over = {sigmoid}, .reads = {odds});
  gm__op_tensor result = walk_dense(self, input, kind->shared_intermediate, tokens);
  return WALK_OP(self, row, .over = {result}, .reads = {sigmoid});
}

static gm__op_tensor walk_feed_forward(walk *self, uint64_t layer, gm__op_tensor input, uint64_t tokens) {
  const gm_layer_kind *kind = gm__shape_layer(self->shape, layer);
  if (!(kind->flags & GM_LAYER_EXPERTS)) return walk_dense(self, input, kind->intermediate, tokens);
  gm__op_tensor result = walk_experts(self, kind, input, tokens);
  if (!self->row->shared_experts) return result;
  return WALK_OP(self, self->row_bytes * tokens, .over = {result, walk_shared(self, kind, input, tokens)});
}

/* ---- layers ---- */

static void walk_serial(walk *self, const walk_cache *cache, uint64_t layer, bool reduces) {
  gm__op_tensor normed = walk_pre_norm(self, self->residual, self->row_bytes * self->shape->tokens);
  gm__op_tensor result = walk_output(self, cache, walk_attention(self, cache, normed));
  uint64_t tokens = reduces ? self->shape->outputs : self->shape->tokens, bytes = self->row_bytes * tokens;
  if (reduces) {
    result = walk_wanted_rows(self, result);
    self->residual = walk_wanted_rows(self, self->residual);
  }
  self->residual = WALK_OP(self, bytes, .over = {result, self->residual});
  result = walk_feed_forward(self, layer, walk_pre_norm(self, self->residual, bytes), tokens);
  if (self->row->residual_first) {
    self->residual = WALK_OP(self, bytes, .over = {self->residual, result});
  } else {
    self->residual = WALK_OP(self, bytes, .over = {result, self->residual});
  }
}

/* The projection of attention's result comes after the feed-forward layer. */
static void walk_parallel(walk *self, const walk_cache *cache, uint64_t layer, bool reduces) {
  gm__op_tensor normed = walk_pre_norm(self, self->residual, self->row_bytes * self->shape->tokens);
  gm__op_tensor result = walk_attention(self, cache, normed);
  uint64_t tokens = reduces ? self->shape->outputs : self->shape->tokens, bytes = self->row_bytes * tokens;
  bool own_norm = self->row->parallel_norm;
  if (reduces && own_norm) self->residual = walk_wanted_rows(self, self->residual);
  if (reduces && !own_norm) normed = walk_wanted_rows(self, normed);
  if (own_norm) normed = walk_norm(self, self->residual, bytes);
  gm__op_tensor inner = walk_feed_forward(self, layer, normed, tokens);
  result = walk_output(self, cache, result);
  if (reduces) result = walk_wanted_rows(self, result);
  if (reduces && !own_norm) self->residual = walk_wanted_rows(self, self->residual);
  inner = WALK_OP(self, bytes, .over = {inner, result});
  self->residual = WALK_OP(self, bytes, .over = {inner, self->residual});
}

static void walk_layers(walk *self) {
  const gm__shape *shape = self->shape;
  for (uint64_t layer = 0; layer < shape->layers; layer++) {
    const walk_cache *cache = &self->caches[gm__shape_has_window(shape, layer) ? 1 : 0];
    bool reduces = layer + 1 == shape->layers && !self->row->outputs_at_end;
    if (self->row->parallel) {
      walk_parallel(self, cache, layer, reduces);
    } else {
      walk_serial(self, cache, layer, reduces);
    }
  }
  if (self->row->outputs_at_end) self->residual = walk_wanted_rows(self, self->residual);
  gm__op_tensor normed = walk_norm(self, self->residual, self->row_bytes * shape->outputs);
  walk_read(self, 4 * shape->vocab * shape->outputs, normed, 0);
}

gm_status gm__op_walk(const gm_services *services, const gm__shape *shape, bool on_host, uint64_t *out, gm_error *err) {
  walk self = {.shape = shape,
               .row = shape->row,
               .on_host = on_host,
               .row_bytes = 4 * shape->hidden,
               .query_bytes = 4 * shape->heads * shape->head * shape->tokens,
               .key_bytes = 4 * shape->key_width * shape->tokens,
               .value_bytes = 4 * shape->value_width * shape->tokens,
               .result_bytes = 4 * shape->heads * shape->value_head * shape->tokens};
  gm__op_list_begin(&self.ops, services);
  walk_inputs(&self);
  walk_layers(&self);
  gm_status status = gm__op_list_plan(&self.ops, on_host ? GM__ESTIMATE_HOST_ALIGNMENT : shape->alignment, out, err);
  gm__op_list_end(&self.ops);
  return status;
}

/* Attention, with a cache: projections, positions, scores, gate. */
#include "core/fit/op_walker.h"

/* A projection's heads are seen through a view, so nothing can be written over it. */
static gm__op_tensor attend_place(gm__op_walker *self, gm__op_tensor input, uint64_t bytes, bool rotates) {
  if (!self->row->head_norm) return rotates ? gm__op_read(self, bytes, input, self->positions) : input;
  gm__op_tensor normed = gm__op_read(self, bytes, input, 0);
  return rotates ? GM__OP(self, bytes, .over = {normed}, .reads = {self->positions}) : normed;
}

/* Copy the part of a fused projection that no rope has made contiguous, then rotate it. */
static gm__op_tensor attend_turn(gm__op_walker *self, gm__op_tensor input, uint64_t bytes, gm__op_tensor matrix,
                                 bool is_part) {
  if (!matrix) return input;
  if (is_part) input = gm__op_read(self, bytes, input, 0);
  return gm__op_read(self, bytes, input, matrix);
}

static bool attend_rotates(const gm__op_walker *self) {
  const gm__op_row *row = self->row;
  const bool leads = row->rope_leads && !(self->kind->flags & GM_LAYER_EXPERTS);
  if (row->added_positions || row->no_positions) return false;
  if (row->rope_layers) return self->shape->layers == row->rope_layers;
  if (row->rope_windows && self->shape->window_cells) return self->kind->window > 0 || leads;
  return !row->rope_step || (self->layer + 1) % row->rope_step != 0;
}

/* Part of a fused projection, made contiguous for its adapters. */
static gm__op_tensor attend_part(gm__op_walker *self, gm__op_tensor input, uint64_t bytes) {
  if (!self->row->adapters) return input;
  return gm__op_multiply(self, gm__op_read(self, bytes, input, 0), self->normed, bytes, self->shape->tokens);
}

static gm__op_tensor attend_query_or_key(gm__op_walker *self, gm__op_tensor input, uint64_t bytes, bool is_query) {
  const bool rotates = attend_rotates(self), fused = self->row->fused_qkv;
  const bool joined = is_query && self->row->joined_gate;
  gm__op_tensor projected =
      fused ? attend_part(self, input, bytes) : gm__op_read(self, joined ? 2 * bytes : bytes, input, 0);
  if (joined) self->joined = projected;
  gm__op_tensor placed = attend_place(self, projected, bytes, rotates);
  if (is_query && !rotates && self->temperature) placed = gm__op_read(self, bytes, placed, self->temperature);
  return attend_turn(self, placed, bytes, self->cache->key_rotation, fused && placed == input);
}

static gm__op_tensor attend_value(gm__op_walker *self, gm__op_tensor input) {
  bool fused = self->row->fused_qkv;
  gm__op_tensor projected =
      fused ? attend_part(self, input, self->value_bytes) : gm__op_read(self, self->value_bytes, input, 0);
  if (self->row->value_norm) projected = gm__op_read(self, self->value_bytes, projected, 0);
  return attend_turn(self, projected, self->value_bytes, self->cache->value_rotation, fused && !self->row->adapters);
}

/* Narrow matrices first. Small tensors alone depend on their width, taken as a quarter of the residual stream's. The
 * part with positions is what keys are wider than values. */
static void attend_low_rank(gm__op_walker *self, gm__op_tensor input) {
  const uint64_t narrow = self->row_bytes * self->shape->tokens / 4, all = self->key_bytes + self->value_bytes;
  const uint64_t rotated = self->key_bytes > self->value_bytes ? self->key_bytes - self->value_bytes : 0;
  gm__op_tensor query = gm__op_read(self, self->query_bytes, gm__op_read(self, narrow, input, 0), 0);
  self->query = gm__op_read(self, self->query_bytes, query, self->positions);
  gm__op_tensor low = gm__op_read(self, narrow, input, 0);
  gm__op_tensor wide = gm__op_read(self, all - rotated, gm__op_read(self, narrow, low, 0), 0);
  self->value = gm__op_read(self, self->value_bytes, wide, 0);
  gm__op_tensor placed = gm__op_read(self, rotated, low, self->positions);
  self->key = gm__op_read(self, self->key_bytes, wide, placed);
}

/* A model with two caches has its keys before its values. */
static void attend_projections(gm__op_walker *self, gm__op_tensor input) {
  const bool key_first = self->shape->window_cells > 0;
  uint64_t all = self->query_bytes + self->key_bytes + self->value_bytes;
  self->normed = input;
  if (self->row->fused_qkv) input = gm__op_read(self, all, input, 0);
  self->query = attend_query_or_key(self, input, self->query_bytes, true);
  self->key = self->value = 0;
  if (self->kind->flags & GM_LAYER_SHARES) return;
  if (!key_first) self->value = attend_value(self, input);
  self->key = attend_query_or_key(self, input, self->key_bytes, false);
  if (key_first) self->value = attend_value(self, input);
}

/* Copies of the cache as attention reads it: keys or values of one layer, in f16. */
static uint64_t attend_copies(const gm__op_walker *self) {
  const gm__shape *shape = self->shape;
  uint64_t keys = shape->key_copies ? 2 * self->kind->kv_heads * self->kind->key_size : 0;
  return keys + (shape->value_copies ? 2 * self->kind->kv_heads * self->kind->value_size : 0);
}

static gm__op_tensor attend_flash(gm__op_walker *self, uint64_t copies) {
  const gm__shape *shape = self->shape;
  uint64_t cells = self->cache->cells * shape->streams;
  uint64_t heads = self->kind->kv_heads;
  gm__op_tensor keys = 0, values = 0;
  if (shape->key_type == GM_DTYPE_F32) keys = gm__op_read(self, 2 * cells * heads * self->kind->key_size, 0, 0);
  if (shape->value_type == GM_DTYPE_F32) values = gm__op_read(self, 2 * cells * heads * self->kind->value_size, 0, 0);
  return GM__OP(self, self->result_bytes + copies, .reads = {self->query, keys, values, self->cache->mask});
}

static gm__op_tensor attend_scores(gm__op_walker *self) {
  uint64_t bytes = 4 * self->shape->tokens * self->cache->cells * self->kind->heads;
  gm__op_tensor scores = gm__op_read(self, bytes, self->query, 0);
  scores = GM__OP(self, bytes, .over = {scores}, .reads = {self->cache->mask});
  gm__op_tensor weighted = gm__op_read(self, self->result_bytes, scores, 0);
  return gm__op_read(self, self->result_bytes, weighted, 0);
}

gm__op_tensor gm__op_look(gm__op_walker *self, uint64_t copies) {
  return self->shape->flash ? attend_flash(self, copies) : attend_scores(self);
}

static void attend_keep(gm__op_walker *self) {
  if (self->key) gm__op_read(self, 0, self->key, self->cache->key_index);
  if (self->value) gm__op_read(self, 0, self->value, self->cache->value_index);
}

/* A number for each token, as a head. */
static gm__op_tensor attend_signal(gm__op_walker *self, gm__op_tensor input, uint64_t bytes, gm__op_tensor matrix) {
  gm__op_tensor padded = gm__op_read(self, bytes, input, 0);
  return matrix ? gm__op_read(self, bytes, padded, matrix) : padded;
}

void gm__op_choose_adapters(gm__op_walker *self, const gm__op_tensor *signals) {
  const gm__op_cache *cache = self->cache;
  self->query = attend_signal(self, signals[0], self->query_bytes, cache->key_rotation);
  self->value = attend_signal(self, signals[1], self->value_bytes, cache->value_rotation);
  self->key = attend_signal(self, signals[2], self->key_bytes, cache->key_rotation);
  attend_keep(self);
  self->routed = gm__op_look(self, 0);
  if (cache->value_rotation) self->routed = gm__op_read(self, self->result_bytes, self->routed, cache->value_rotation);
}

gm__op_tensor gm__op_attend(gm__op_walker *self, gm__op_tensor input) {
  if (self->kind->flags & GM_LAYER_COMPRESSED) return gm__op_attend_compressed(self, input);
  gm__op_sparse_key(self, input);
  if (self->row->low_rank) {
    attend_low_rank(self, input);
  } else {
    attend_projections(self, input);
  }
  attend_keep(self);
  const uint64_t copies = self->on_host ? 0 : self->cache->cells * self->shape->streams * attend_copies(self);
  gm__op_tensor sparse = gm__op_attend_sparse(self, input, copies);
  if (sparse) return sparse;
  return gm__op_look(self, copies);
}

/* One factor for each element or for each head. A result of flash attention is seen through a view. */
static gm__op_tensor attend_gate(gm__op_walker *self, gm__op_tensor result, gm__op_tensor input) {
  const uint64_t bytes = self->result_bytes, narrow = 4 * self->shape->tokens * self->kind->heads;
  const bool wide = self->row->gate == GM__OP_GATE_WIDE;
  gm__op_tensor gate = gm__op_read(self, wide ? bytes : narrow, self->row->joined_gate ? self->joined : input, 0);
  if (!wide) return gm__op_read(self, bytes, result, gate);
  if (self->shape->flash) return GM__OP(self, bytes, .over = {gate}, .reads = {result});
  return GM__OP(self, bytes, .over = {result, gate});
}

gm__op_tensor gm__op_project(gm__op_walker *self, gm__op_tensor result, gm__op_tensor input) {
  const uint64_t bytes = self->result_bytes;
  if (self->cache->value_rotation) result = gm__op_read(self, bytes, result, self->cache->value_rotation);
  if (self->row->gate) result = attend_gate(self, result, input);
  if (self->row->result_norm && self->shape->flash) result = gm__op_read(self, bytes, result, 0);
  return gm__op_multiply(self, 0, result, self->row_bytes * self->shape->tokens, self->shape->tokens);
}

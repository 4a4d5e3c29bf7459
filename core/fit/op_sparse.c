/* Attention to blocks of positions. An indexer with one head for each head of keys scores positions; the best blocks
 * become a mask for each of these heads. Each stream has masks of its own. */
#include "core/base/saturate.h"
#include "core/fit/op_walker.h"

/* No more than 16 streams are told apart. */
enum { SPARSE_PIECES = 16 };

static bool sparse_is(const gm__op_walker *self) {
  return gm__shape_is_sparse(self->shape) && self->kind->indexer_size > 0;
}

/* Each layer reads parts of the masks and maps of positions. A device gets a copy of them for each layer, before all
 * else. */
void gm__op_sparse_inputs(gm__op_walker *self) {
  const gm__shape *shape = self->shape;
  const uint64_t each = gm__shape_blocks_bytes(shape, gm__shape_block_positions(shape), gm__shape_block(shape));
  if (!each) return;
  self->index.key_index = gm__op_read(self, 8 * shape->tokens, 0, 0);
  gm__op_tensor one = self->on_host ? gm__op_read(self, each, 0, 0) : 0;
  for (uint64_t layer = 0; layer < shape->layers; layer++) {
    if (!gm__shape_layer(shape, layer)->indexer_size) continue;
    self->zeros[layer] = one ? one : gm__op_read(self, each, 0, 0);
  }
}

/* One projection of the indexer, normalised and with positions. */
static gm__op_tensor sparse_project(gm__op_walker *self, uint64_t heads, gm__op_tensor input) {
  const uint64_t bytes = 4 * self->shape->tokens * heads * gm__min(self->kind->indexer_size, 1u << 16);
  gm__op_tensor normed = gm__op_read(self, bytes, gm__op_read(self, bytes, input, 0), 0);
  return GM__OP(self, bytes, .over = {normed}, .reads = {self->positions});
}

void gm__op_sparse_key(gm__op_walker *self, gm__op_tensor input) {
  if (!sparse_is(self)) return;
  gm__op_read(self, 0, sparse_project(self, 1, input), self->index.key_index);
}

/* The mask of one stream: blocks, brought to the width of the cache and turned twice. */
static gm__op_tensor sparse_mask(gm__op_walker *self, gm__op_tensor query) {
  const gm__shape *shape = self->shape;
  const uint64_t rows = 4 * (shape->tokens / shape->streams) * self->kind->kv_heads;
  const uint64_t all = rows * shape->cells;
  const uint64_t positions = gm__shape_block_positions(shape), blocks = positions / gm__shape_block(shape);
  gm__op_tensor scores = gm__op_read(self, rows * positions, query, self->zeros[self->layer]);
  gm__op_tensor chosen = gm__op_read(self, rows * blocks, scores, 0);
  gm__op_tensor mask = gm__op_read(self, all, chosen, self->zeros[self->layer]);
  mask = gm__op_read(self, all, mask, 0);
  mask = GM__OP(self, all, .over = {mask}, .reads = {self->wide_mask});
  return gm__op_read(self, all / 2, mask, 0);
}

gm__op_tensor gm__op_attend_sparse(gm__op_walker *self, gm__op_tensor input, uint64_t copies) {
  const gm__shape *shape = self->shape;
  const uint64_t pieces = gm__min(shape->streams, SPARSE_PIECES), bytes = self->result_bytes / pieces;
  gm__op_tensor all = 0;
  if (!sparse_is(self)) return 0;
  gm__op_tensor query = sparse_project(self, self->kind->kv_heads, input);
  if (!self->wide_mask) self->wide_mask = gm__op_read(self, 4 * shape->cells * shape->tokens, self->cache->mask, 0);
  for (uint64_t piece = 0; piece < pieces; piece++) {
    gm__op_tensor mask = sparse_mask(self, query);
    gm__op_tensor result = gm__op_read(self, bytes + copies / shape->streams, self->query, mask);
    result = gm__op_read(self, bytes, result, 0);
    all = piece ? gm__op_read(self, bytes * (piece + 1), all, result) : result;
  }
  return all;
}

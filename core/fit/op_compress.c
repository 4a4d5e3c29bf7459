/* Attention with compressed keys and values: one row of the cache stands for all heads. Queries are brought to the
 * row's width, and the result back to the heads'. An indexer chooses the rows that count. */
#include "core/base/saturate.h"
#include "core/fit/op_walker.h"
#include "core/model/layers.h"

typedef struct compress_sizes {
  uint64_t rank, rotated;      /* elements of a row: without the position, and those that carry it */
  uint64_t heads, index, rows; /* of queries; an indexer's width of a key, and how many rows it chooses */
  uint64_t tokens;             /* bytes of one element of all tokens */
} compress_sizes;

static compress_sizes compress_take(const gm__op_walker *self) {
  const gm_layer_kind *kind = self->kind;
  compress_sizes out = {
      .rotated = kind->rotated_size, .heads = kind->heads, .index = gm__min(kind->indexer_size, 1u << 16)};
  out.rank = gm__sub_sat(kind->key_size, kind->rotated_size);
  out.rows = kind->indexer_top < self->cache->cells ? kind->indexer_top : self->cache->cells;
  out.tokens = 4 * self->shape->tokens;
  return out;
}

/* ---- the indexer ---- */

static void compress_index_key(gm__op_walker *self, const compress_sizes *sizes, gm__op_tensor input) {
  const uint64_t bytes = sizes->tokens * sizes->index;
  gm__op_tensor key = gm__op_read(self, bytes, gm__op_read(self, bytes, input, 0), 0);
  key = gm__op_read(self, bytes, key, self->positions);
  if (self->index.key_rotation) key = gm__op_read(self, bytes, key, self->index.key_rotation);
  gm__op_read(self, 0, key, self->index.key_index);
}

/* The heads of an indexer are taken to be half those of attention. */
static gm__op_tensor compress_choose(gm__op_walker *self, const compress_sizes *sizes, gm__op_tensor low,
                                     gm__op_tensor input) {
  const uint64_t bytes = sizes->tokens * sizes->index * sizes->heads / 2, factors = sizes->tokens * sizes->heads / 2;
  gm__op_tensor query = gm__op_read(self, bytes, low, 0);
  query = gm__op_read(self, bytes, query, self->positions);
  if (self->index.key_rotation) query = gm__op_read(self, bytes, query, self->index.key_rotation);
  gm__op_tensor factor = gm__op_read(self, factors, gm__op_read(self, factors, input, 0), 0);
  gm__op_tensor scores = GM__OP(self, sizes->tokens * self->cache->cells, .reads = {query, factor, self->index.mask});
  gm__op_tensor chosen = gm__op_read(self, sizes->tokens * sizes->rows, scores, 0);
  return gm__op_read(self, sizes->tokens * sizes->rows, chosen, 0);
}

/* The mask with nothing but the chosen rows. */
static gm__op_tensor compress_mask(gm__op_walker *self, const compress_sizes *sizes, gm__op_tensor low,
                                   gm__op_tensor input) {
  const uint64_t bytes = self->cache->cells * self->shape->tokens * (self->shape->flash ? 2 : 4);
  if (!sizes->rows) return self->cache->mask;
  gm__op_tensor zeros = GM__OP(self, sizes->tokens * sizes->rows, .over = {self->zeros[self->layer]});
  if (sizes->index) self->rows = compress_choose(self, sizes, low, input);
  gm__op_tensor hidden = gm__op_read(self, bytes, self->cache->mask, 0);
  gm__op_read(self, 0, zeros, self->rows);
  return gm__op_read(self, bytes, hidden, self->cache->mask);
}

/* ---- projections ---- */

static gm__op_tensor compress_query(gm__op_walker *self, const compress_sizes *sizes, gm__op_tensor input) {
  const uint64_t rotated = sizes->tokens * sizes->rotated * sizes->heads;
  gm__op_tensor query = gm__op_read(self, self->query_bytes, input, 0);
  gm__op_tensor wide = gm__op_read(self, sizes->tokens * sizes->rank * sizes->heads, query, 0);
  gm__op_tensor placed = self->positions ? gm__op_read(self, rotated, query, self->positions) : query;
  return gm__op_read(self, sizes->tokens * (sizes->rank + sizes->rotated) * sizes->heads, wide, placed);
}

static void compress_key(gm__op_walker *self, const compress_sizes *sizes, gm__op_tensor input) {
  const uint64_t bytes = sizes->tokens * (sizes->rank + sizes->rotated);
  gm__op_tensor row = gm__op_read(self, bytes, input, 0);
  gm__op_tensor normed = gm__op_read(self, sizes->tokens * sizes->rank, row, 0);
  gm__op_tensor placed = row;
  if (self->positions) placed = gm__op_read(self, sizes->tokens * sizes->rotated, row, self->positions);
  gm__op_read(self, 0, gm__op_read(self, bytes, normed, placed), self->cache->key_index);
}

/* ---- scores ---- */

static gm__op_tensor compress_flash(gm__op_walker *self, const compress_sizes *sizes, gm__op_tensor mask) {
  const gm__shape *shape = self->shape;
  const uint64_t cells = self->cache->cells * shape->streams, row = sizes->rank + sizes->rotated;
  gm__op_tensor keys = 0, values = 0;
  uint64_t bytes = sizes->tokens * sizes->rank * sizes->heads;
  if (shape->key_type == GM_DTYPE_F32) {
    keys = gm__op_read(self, 2 * cells * row, 0, 0);
    values = gm__op_read(self, 2 * cells * sizes->rank, 0, 0);
  }
  if (!self->on_host && shape->key_copies) bytes += 2 * cells * row;
  return GM__OP(self, bytes, .reads = {self->query, keys, values, mask});
}

gm__op_tensor gm__op_attend_compressed(gm__op_walker *self, gm__op_tensor input) {
  const compress_sizes sizes = compress_take(self);
  const gm__shape *shape = self->shape;
  const uint64_t scores = sizes.tokens * self->cache->cells * sizes.heads;
  gm__op_tensor low = input, values = 0, result = 0;
  if (sizes.index) compress_index_key(self, &sizes, input);
  if (self->kind->query_rank) low = gm__op_read(self, sizes.tokens * self->kind->query_rank, input, 0);
  self->query = compress_query(self, &sizes, low);
  compress_key(self, &sizes, input);
  if (!shape->flash) {
    values = gm__op_read(self, 2 * self->cache->cells * shape->streams * sizes.rank, 0, 0);
    result = gm__op_read(self, scores, self->query, 0);
  }
  gm__op_tensor mask = compress_mask(self, &sizes, low, input);
  if (shape->flash) {
    result = compress_flash(self, &sizes, mask);
  } else {
    result = GM__OP(self, scores, .over = {result}, .reads = {mask});
    result = gm__op_read(self, sizes.tokens * sizes.rank * sizes.heads, values, result);
  }
  return gm__op_read(self, self->result_bytes, gm__op_read(self, self->result_bytes, result, 0), 0);
}

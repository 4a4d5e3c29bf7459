/* Hyper-connections: the residual has several streams. Attention and the feed-forward part read one mix of them each,
 * and what they make goes into all streams. */
#include "core/fit/op_walker.h"

static uint64_t hyper_streams(const gm__op_walker *self) { return self->shape->residual_streams; }

void gm__op_hyper_begin(gm__op_walker *self) {
  const uint64_t all = self->row_bytes * self->shape->tokens * hyper_streams(self);
  self->residual = gm__op_read(self, all, self->residual, 0);
}

gm__op_tensor gm__op_hyper_mix(gm__op_walker *self, uint64_t tokens, uint64_t factors) {
  const uint64_t row = self->row_bytes * tokens, streams = hyper_streams(self), narrow = 4 * tokens * streams;
  gm__op_tensor copy = gm__op_read(self, row * streams, self->residual, 0);
  gm__op_tensor normed = gm__op_read(self, row * streams, self->residual, 0);
  self->connections = gm__op_read(self, factors * narrow, normed, 0);
  gm__op_tensor shares = gm__op_read(self, narrow, self->connections, 0);
  gm__op_tensor sum = gm__op_read(self, row, copy, shares);
  for (uint64_t stream = 1; stream < streams; stream++) {
    gm__op_tensor part = gm__op_read(self, row, copy, shares);
    sum = GM__OP(self, row, .over = {sum, part});
  }
  return gm__op_read(self, row, sum, 0);
}

void gm__op_hyper_copy(gm__op_walker *self) {
  const uint64_t all = self->row_bytes * self->shape->tokens * hyper_streams(self);
  if (all) self->copied = gm__op_read(self, all, self->residual, 0);
}

void gm__op_hyper_spread(gm__op_walker *self, gm__op_tensor result) {
  const uint64_t row = self->row_bytes * self->shape->tokens, streams = hyper_streams(self);
  const uint64_t narrow = 4 * self->shape->tokens * streams;
  gm__op_tensor wide = gm__op_read(self, row, result, 0), all = 0;
  gm__op_tensor shares = gm__op_read(self, narrow, gm__op_read(self, narrow, self->connections, 0), 0);
  for (uint64_t stream = 0; stream < streams; stream++) {
    gm__op_tensor part = GM__OP(self, row, .over = {wide}, .reads = {shares});
    part = GM__OP(self, row, .over = {part}, .reads = {self->copied});
    all = stream ? gm__op_read(self, row * (stream + 1), all, part) : part;
  }
  self->residual = gm__op_read(self, row * streams, all, 0);
}

/* Feed-forward layers: dense, and of experts. */
#include "core/fit/op_walker.h"

/* A gate whose function takes several operations: its result, and the other matrix written over it. */
static gm__op_tensor feed_gated(gm__op_walker *self, gm__op_tensor input, uint64_t bytes, gm__op_tensor chosen) {
  gm__op_tensor gate = gm__op_read(self, bytes, input, chosen);
  gm__op_tensor act = gm__op_read(self, bytes, gate, 0);
  act = GM__OP(self, bytes, .over = {act}, .reads = {gate});
  return GM__OP(self, bytes, .over = {act, gm__op_read(self, bytes, input, chosen)});
}

static gm__op_tensor feed_dense(gm__op_walker *self, gm__op_tensor input, uint64_t width, uint64_t tokens) {
  uint64_t bytes = 4 * width * tokens;
  gm__op_tensor inner = 0;
  if (self->row->gate_first) {
    inner = feed_gated(self, input, bytes, 0);
  } else if (self->row->fused_gate) {
    inner = gm__op_read(self, 2 * bytes, input, 0);
    inner = gm__op_read(self, bytes, inner, 0);
  } else if (self->row->adapters) {
    gm__op_tensor gate = gm__op_multiply(self, 0, input, bytes, tokens);
    inner = gm__op_multiply(self, 0, input, bytes, tokens);
    inner = GM__OP(self, bytes, .over = {gate, inner});
  } else if (self->row->plain) {
    inner = gm__op_read(self, bytes, input, 0);
  } else {
    gm__op_tensor gate = gm__op_read(self, bytes, input, 0);
    inner = gm__op_read(self, bytes, input, 0);
    inner = gm__op_read(self, bytes, gate, inner);
  }
  return gm__op_multiply(self, 0, inner, self->row_bytes * tokens, tokens);
}

/* The weights of the chosen experts. */
static gm__op_tensor feed_weights(gm__op_walker *self, gm__op_tensor odds, uint64_t tokens) {
  uint64_t all = UINT64_C(4) * self->kind->experts * tokens, used = UINT64_C(4) * self->kind->experts_used * tokens;
  gm__op_tensor raw = odds;
  if (self->row->choice_first) {
    odds = gm__op_read(self, all, raw, 0);
  } else if (!self->row->late_softmax) {
    odds = GM__OP(self, all, .over = {odds});
  }
  if (!self->row->choice_first) raw = self->row->biased_choice ? gm__op_read(self, all, odds, 0) : odds;
  self->chosen = gm__op_read(self, all, raw, 0);
  gm__op_tensor weights = gm__op_read(self, used, odds, self->chosen);
  if (self->row->late_softmax) return gm__op_read(self, used, weights, 0);
  if (self->row->raw_weights) return weights;
  gm__op_tensor sum = gm__op_read(self, 4 * tokens, weights, 0);
  return gm__op_read(self, used, weights, sum);
}

static void feed_route(gm__op_walker *self, gm__op_tensor input, uint64_t tokens) {
  self->weights = feed_weights(self, gm__op_read(self, UINT64_C(4) * self->kind->experts * tokens, input, 0), tokens);
}

void gm__op_route(gm__op_walker *self, gm__op_tensor input, uint64_t tokens, gm__op_tensor wanted) {
  gm__op_tensor odds = gm__op_read(self, UINT64_C(4) * self->kind->experts * self->shape->tokens, input, 0);
  if (wanted) odds = gm__op_read(self, UINT64_C(4) * self->kind->experts * tokens, odds, wanted);
  self->weights = feed_weights(self, odds, tokens);
}

/* The first operand of the experts: one row for each of the chosen ones where weights come before them. */
static gm__op_tensor feed_weighted(gm__op_walker *self, gm__op_tensor input, uint64_t bytes, gm__op_tensor weights) {
  gm__op_tensor repeated = gm__op_read(self, bytes, input, 0);
  return GM__OP(self, bytes, .over = {repeated}, .reads = {weights});
}

static gm__op_tensor feed_sum(gm__op_walker *self, gm__op_tensor down, uint64_t bytes) {
  gm__op_tensor sum = gm__op_read(self, bytes, down, 0);
  /* Each further sum is written over the one before it, so one stands for all. */
  return self->kind->experts_used > 2 ? GM__OP(self, bytes, .over = {sum}, .reads = {down}) : sum;
}

/* Experts may read and write narrower rows than those of the residual. */
static gm__op_tensor feed_experts(gm__op_walker *self, gm__op_tensor input, uint64_t tokens) {
  gm__op_tensor weights = self->weights, chosen = self->chosen;
  const uint64_t used = self->kind->experts_used, bytes = 4 * self->width * used * tokens;
  const uint64_t latent = self->shape->expert_latent, row = latent ? 4 * latent * tokens : self->row_bytes * tokens;
  if (latent) input = gm__op_read(self, row, input, 0);
  bool early = self->row->weights_first;
  if (early) input = feed_weighted(self, input, row * used, weights);
  gm__op_tensor inner =
      self->row->gate_first ? feed_gated(self, input, bytes, chosen) : gm__op_read(self, bytes, input, chosen);
  if (!self->row->plain && !self->row->gate_first) {
    inner = gm__op_read(self, bytes, inner, gm__op_read(self, bytes, input, chosen));
  }
  gm__op_tensor down = gm__op_read(self, row * used, inner, chosen);
  if (!early) down = GM__OP(self, row * used, .over = {down}, .reads = {weights});
  gm__op_tensor sum = feed_sum(self, down, row);
  return latent ? gm__op_read(self, self->row_bytes * tokens, sum, 0) : sum;
}

/* Smaller experts over the result: as many as the large ones by two, and chosen by the same odds. */
static gm__op_tensor feed_second(gm__op_walker *self, gm__op_tensor odds, gm__op_tensor first, uint64_t tokens) {
  const uint64_t all = UINT64_C(4) * self->kind->experts * tokens, row = self->row_bytes * tokens;
  const uint64_t used = UINT64_C(4) * self->kind->experts_used * tokens;
  gm__op_tensor probabilities = gm__op_read(self, all, odds, 0);
  self->chosen = gm__op_read(self, used, gm__op_read(self, all, gm__op_read(self, all, odds, 0), 0), 0);
  self->weights = gm__op_read(self, used, probabilities, self->chosen);
  gm__op_tensor down = gm__op_read(self, row * self->kind->experts_used, first, self->chosen);
  down = GM__OP(self, row * self->kind->experts_used, .over = {down}, .reads = {self->weights});
  return GM__OP(self, row, .over = {first, gm__op_read(self, row, down, 0)});
}

/* The experts that every token has. */
static gm__op_tensor feed_shared(gm__op_walker *self, gm__op_tensor input, uint64_t width, uint64_t tokens) {
  uint64_t row = self->row_bytes * tokens;
  if (width == 0) return GM__OP(self, row, .over = {input});
  if (!self->row->shared_gate && !self->row->shared_gate_last) return feed_dense(self, input, width, tokens);
  gm__op_tensor result = self->row->shared_gate_last ? feed_dense(self, input, width, tokens) : 0;
  gm__op_tensor odds = gm__op_read(self, 4 * tokens, input, 0), sigmoid = 0;
  if (result) return GM__OP(self, row, .over = {result}, .reads = {odds});
  sigmoid = gm__op_read(self, 4 * tokens, odds, 0);
  sigmoid = GM__OP(self, 4 * tokens, .over = {sigmoid}, .reads = {odds});
  result = feed_dense(self, input, width, tokens);
  return GM__OP(self, row, .over = {result}, .reads = {sigmoid});
}

static uint64_t feed_shared_width(const gm__op_walker *self) {
  return self->row->shared_experts ? self->kind->shared_intermediate : 0;
}

gm__op_tensor gm__op_feed(gm__op_walker *self, gm__op_tensor input, uint64_t tokens) {
  if (!(self->kind->flags & GM_LAYER_EXPERTS)) {
    gm__op_hyper_copy(self);
    return feed_dense(self, input, self->width, tokens);
  }
  const bool second = self->row->second_experts;
  gm__op_tensor odds = second ? gm__op_read(self, UINT64_C(4) * self->kind->experts * tokens, input, 0) : 0;
  if (!self->row->router_first) feed_route(self, input, tokens);
  gm__op_tensor result = feed_experts(self, input, tokens);
  if (second) result = feed_second(self, odds, result, tokens);
  gm__op_look_ahead(self);
  gm__op_hyper_copy(self);
  uint64_t width = feed_shared_width(self);
  if (width == 0 && !self->row->shared_always) return result;
  return GM__OP(self, self->row_bytes * tokens, .over = {result, feed_shared(self, input, width, tokens)});
}

/* A residual with checkpoints: each layer of a period keeps it as it comes in, and starts it anew. Attention and the
 * feed-forward part read a mix of all that was kept and of the residual. */
#include "core/fit/op_walker.h"

static uint64_t bank_row(const gm__op_walker *self) { return self->row_bytes * self->shape->tokens; }

/* A layer's kept rows join the others when the next mix reads them. The first is kept where it lies. */
static void bank_join(gm__op_walker *self) {
  if (!self->kept) return;
  self->bank_count++;
  self->bank = self->bank ? gm__op_read(self, bank_row(self) * self->bank_count, self->bank, self->kept) : self->kept;
  self->kept = 0;
}

gm__op_tensor gm__op_bank_mix(gm__op_walker *self, gm__op_tensor residual) {
  const uint64_t row = bank_row(self), tokens = 4 * self->shape->tokens;
  bank_join(self);
  const uint64_t count = self->bank_count;
  if (!self->bank) return residual;
  gm__op_tensor scores = gm__op_read(self, tokens * count, gm__op_read(self, row * count, self->bank, 0), 0);
  gm__op_tensor own = gm__op_read(self, tokens, gm__op_read(self, row, residual, 0), 0);
  gm__op_tensor shares = gm__op_read(self, tokens * (count + 1), scores, own);
  gm__op_tensor theirs = gm__op_read(self, tokens * count, shares, 0);
  own = gm__op_read(self, tokens, shares, 0);
  gm__op_tensor mix = gm__op_read(self, row, self->bank, theirs);
  gm__op_tensor part = gm__op_read(self, row, residual, own);
  return GM__OP(self, row, .over = {mix, part});
}

bool gm__op_bank_keep(gm__op_walker *self) {
  if (self->layer % self->shape->residual_period != 0) return false;
  bank_join(self);
  self->kept = self->residual;
  return true;
}

/* Matrices with adapters: small matrices beside each one, of which a token passes one. */
#include "core/fit/op_walker.h"

/* How narrow adapters are only sizes small tensors. */
enum { ADAPTER_RANK = 16 };

/* The numbers of the chosen ones are made where they are needed first. */
static gm__op_tensor adapter_numbers(gm__op_walker *self) {
  const uint64_t bytes = 4 * self->shape->tokens;
  if (!self->adapters) self->adapters = gm__op_read(self, bytes, gm__op_read(self, bytes, self->routed, 0), 0);
  return self->adapters;
}

gm__op_tensor gm__op_multiply(gm__op_walker *self, gm__op_tensor made, gm__op_tensor input, uint64_t wide,
                              uint64_t tokens) {
  gm__op_tensor base = made ? made : gm__op_read(self, wide, input, 0);
  if (!self->row->adapters) return base;
  gm__op_tensor numbers = adapter_numbers(self);
  gm__op_tensor narrow = gm__op_read(self, 4 * tokens * ADAPTER_RANK, input, numbers);
  return GM__OP(self, wide, .over = {base, gm__op_read(self, wide, narrow, numbers)});
}

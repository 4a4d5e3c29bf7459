/* Recurrent layers: a short convolution over what it remembers, and a state that is carried on. */
#include "core/base/saturate.h"
#include "core/fit/op_walker.h"

enum { RECUR_HEAD = 64, RECUR_KERNEL = 4, RECUR_RANK = 16 };

/* Sizes of one recurrent layer, as elements for each token. */
typedef struct recur_sizes {
  uint64_t inner, channels, heads; /* of the state's values, of the convolution, and of the state */
  uint64_t remembered, state;      /* bytes of all sequences */
} recur_sizes;

/* Sizes that no model has are bounded, so that no product passes 2^63. */
static uint64_t recur_convolved_elements(const gm_layer_kind *kind) { return gm__min(kind->conv_elements, 1u << 28); }

static uint64_t recur_state_elements(const gm_layer_kind *kind) {
  return gm__min(kind->state_elements, UINT64_C(1) << 36);
}

/* The heads of a state are taken to be 64 wide: their number only sizes a few small tensors. */
static recur_sizes recur_take(const gm__op_walker *self) {
  const uint64_t taps = self->kind->conv_kernel ? self->kind->conv_kernel : RECUR_KERNEL;
  recur_sizes out = {.inner = self->kind->inner_size, .heads = self->kind->inner_size / RECUR_HEAD};
  out.channels = taps > 1 ? recur_convolved_elements(self->kind) / (taps - 1) : 0;
  out.remembered = 4 * recur_convolved_elements(self->kind) * self->shape->sequences;
  out.state = 4 * recur_state_elements(self->kind) * self->shape->sequences;
  return out;
}

void gm__op_gather(gm__op_walker *self, uint64_t layer) {
  const gm_layer_kind *kind = gm__shape_layer(self->shape, layer);
  if (!(kind->flags & GM_LAYER_RECURRENT)) return;
  self->gathered = gm__op_read(self, 4 * recur_convolved_elements(kind) * self->shape->sequences, self->sequences, 0);
}

void gm__op_look_ahead(gm__op_walker *self) {
  const uint32_t both = GM_LAYER_ATTENDS | GM_LAYER_RECURRENT;
  if (self->row->mixer == GM__OP_MIXER_NONE || self->row->mixer >= GM__OP_MIXER_DELTA) return;
  if (self->layer + 1 < self->shape->layers && (self->kind->flags & both) != both) gm__op_gather(self, self->layer + 1);
}

/* The input of the convolution: the remembered rows before those of the tokens. */
static gm__op_tensor recur_join(gm__op_walker *self, const recur_sizes *sizes, gm__op_tensor rows, uint64_t width) {
  gm__op_tensor joined = gm__op_read(self, 4 * width * self->shape->tokens + sizes->remembered, self->gathered, rows);
  gm__op_read(self, 0, joined, 0);
  return joined;
}

/* ---- a convolution alone ---- */

static void recur_convolve(gm__op_walker *self, gm__op_tensor input) {
  const recur_sizes sizes = recur_take(self);
  const uint64_t row = self->row_bytes * self->shape->tokens;
  self->mixed[0] = gm__op_read(self, 3 * row, input, 0);
  gm__op_tensor product = gm__op_read(self, row, self->mixed[0], 0);
  self->mixed[1] = recur_join(self, &sizes, product, self->shape->hidden);
}

static gm__op_tensor recur_convolved(gm__op_walker *self) {
  const uint64_t row = self->row_bytes * self->shape->tokens;
  gm__op_tensor result = gm__op_read(self, row, self->mixed[1], 0);
  result = GM__OP(self, row, .over = {result}, .reads = {self->mixed[0]});
  return gm__op_read(self, row, result, 0);
}

/* ---- Mamba ---- */

/* The step of each head, and the two matrices, from one projection. */
static gm__op_tensor recur_step(gm__op_walker *self, uint64_t bytes) {
  const uint64_t rank = gm__max(RECUR_HEAD, self->shape->hidden / RECUR_RANK), tokens = 4 * self->shape->tokens;
  const uint64_t state = self->kind->state_size;
  gm__op_tensor all = gm__op_read(self, tokens * (rank + 2 * state), self->mixed[1], 0);
  gm__op_tensor step = gm__op_read(self, bytes, gm__op_read(self, tokens * rank, all, 0), 0);
  gm__op_tensor first = gm__op_read(self, tokens * state, all, 0), second = gm__op_read(self, tokens * state, all, 0);
  gm__op_read(self, 0, first, second);
  return step;
}

/* The first one computes its step and its matrices from the convolution's result; the second one has them beside it. */
static void recur_scan(gm__op_walker *self, gm__op_tensor input, bool is_second) {
  const recur_sizes sizes = recur_take(self);
  const uint64_t tokens = 4 * self->shape->tokens, steps = tokens * sizes.heads;
  gm__op_tensor rows =
      gm__op_read(self, tokens * (sizes.inner + sizes.channels + (is_second ? sizes.heads : 0)), input, 0);
  self->mixed[0] = rows;
  if (!is_second) {
    self->mixed[0] = gm__op_read(self, tokens * 2 * sizes.inner, rows, 0);
    rows = gm__op_read(self, tokens * sizes.inner, self->mixed[0], 0);
  }
  gm__op_tensor joined = recur_join(self, &sizes, rows, sizes.channels);
  self->mixed[1] = gm__op_read(self, tokens * sizes.channels, joined, 0);
  gm__op_tensor step = is_second ? gm__op_read(self, steps, self->mixed[0], 0) : recur_step(self, steps);
  self->mixed[2] = gm__op_read(self, tokens * sizes.inner + sizes.state, self->mixed[1], step);
  gm__op_read(self, 0, self->mixed[2], 0);
}

static gm__op_tensor recur_scanned(gm__op_walker *self, bool is_second) {
  const recur_sizes sizes = recur_take(self);
  const uint64_t bytes = 4 * self->shape->tokens * sizes.inner;
  gm__op_tensor gate = gm__op_read(self, bytes, self->mixed[0], 0);
  gm__op_tensor kept = gm__op_read(self, bytes, self->mixed[1], 0);
  kept = GM__OP(self, bytes, .over = {kept}, .reads = {self->mixed[2]});
  gm__op_tensor gated = gm__op_read(self, bytes, gate, kept);
  if (is_second) gated = gm__op_read(self, bytes, gated, 0);
  return gm__op_read(self, self->row_bytes * self->shape->tokens, gated, 0);
}

/* ---- the gated delta rule ---- */

/* How fast each head of the state forgets, and how much it learns. */
static void recur_factors(gm__op_walker *self, gm__op_tensor input, uint64_t bytes, gm__op_tensor *decay,
                          gm__op_tensor *beta) {
  if (self->row->repeated_keys) {
    gm__op_tensor both = gm__op_read(self, 2 * bytes, input, 0);
    *decay = gm__op_read(self, bytes, both, 0);
    *beta = gm__op_read(self, bytes, both, 0);
  } else {
    *decay = gm__op_read(self, bytes, gm__op_read(self, bytes, input, 0), 0);
    *beta = gm__op_read(self, bytes, gm__op_read(self, bytes, input, 0), 0);
  }
}

static void recur_delta(gm__op_walker *self, gm__op_tensor input) {
  const recur_sizes sizes = recur_take(self);
  const uint64_t tokens = 4 * self->shape->tokens, keys = gm__sub_sat(sizes.channels, sizes.inner) / 2;
  gm__op_tensor decay = 0, beta = 0;
  gm__op_gather(self, self->layer);
  gm__op_tensor rows = gm__op_read(self, tokens * sizes.channels, input, 0);
  gm__op_tensor joined = recur_join(self, &sizes, rows, sizes.channels);
  gm__op_tensor state = gm__op_read(self, sizes.state, self->sequences, 0);
  gm__op_tensor convolved = gm__op_read(self, tokens * sizes.channels, joined, 0);
  gm__op_tensor query = gm__op_read(self, tokens * keys, convolved, 0);
  if (self->row->repeated_keys) query = gm__op_read(self, tokens * sizes.inner, query, 0);
  gm__op_tensor key = gm__op_read(self, tokens * keys, convolved, 0);
  if (self->row->repeated_keys) key = gm__op_read(self, tokens * sizes.inner, key, 0);
  recur_factors(self, input, tokens * sizes.heads, &decay, &beta);
  self->mixed[2] =
      GM__OP(self, tokens * sizes.inner + sizes.state, .over = {query, key}, .reads = {state, decay, beta, convolved});
  gm__op_read(self, 0, self->mixed[2], 0);
  self->mixed[0] = input;
}

static gm__op_tensor recur_ruled(gm__op_walker *self) {
  const recur_sizes sizes = recur_take(self);
  const uint64_t bytes = 4 * self->shape->tokens * sizes.inner;
  gm__op_tensor normed = gm__op_read(self, bytes, self->mixed[2], 0);
  gm__op_tensor gate = gm__op_read(self, bytes, self->mixed[0], 0);
  gate = gm__op_read(self, bytes, gate, 0);
  normed = GM__OP(self, bytes, .over = {normed, gate});
  return gm__op_read(self, self->row_bytes * self->shape->tokens, normed, 0);
}

/* ---- the same, with more gates ---- */

static uint64_t recur_third(const gm__op_walker *self) {
  const uint64_t taps = self->kind->conv_kernel ? self->kind->conv_kernel : RECUR_KERNEL;
  return taps > 1 ? recur_convolved_elements(self->kind) / (3 * (taps - 1)) : 0;
}

static void recur_kda(gm__op_walker *self, gm__op_tensor input) {
  const recur_sizes sizes = recur_take(self);
  const uint64_t tokens = 4 * self->shape->tokens, inner = recur_third(self), bytes = tokens * inner;
  const uint64_t heads = tokens * (inner / RECUR_HEAD);
  gm__op_tensor parts[3] = {0};
  gm__op_gather(self, self->layer);
  for (int i = 0; i < 3; i++) {
    gm__op_tensor rows = gm__op_read(self, bytes, input, 0);
    parts[i] = gm__op_read(self, bytes + sizes.remembered / 3, self->gathered, rows);
    gm__op_read(self, 0, parts[i], 0);
  }
  gm__op_tensor state = gm__op_read(self, sizes.state, self->sequences, 0);
  for (int i = 0; i < 3; i++) {
    parts[i] = gm__op_read(self, bytes, gm__op_read(self, bytes, parts[i], 0), 0);
    if (i < 2) parts[i] = gm__op_read(self, bytes, parts[i], 0);
  }
  gm__op_tensor decay = gm__op_read(self, tokens * RECUR_HEAD, input, 0);
  decay = gm__op_read(self, bytes, gm__op_read(self, bytes, decay, 0), 0);
  gm__op_tensor beta = gm__op_read(self, heads, gm__op_read(self, heads, input, 0), 0);
  self->mixed[2] =
      GM__OP(self, bytes + sizes.state, .over = {parts[0], parts[1]}, .reads = {parts[2], state, decay, beta});
  gm__op_read(self, 0, self->mixed[2], 0);
  self->mixed[0] = input;
}

static gm__op_tensor recur_kda_result(gm__op_walker *self) {
  const uint64_t bytes = 4 * self->shape->tokens * recur_third(self);
  gm__op_tensor copied = gm__op_read(self, bytes, self->mixed[2], 0), normed = gm__op_read(self, bytes, copied, 0);
  gm__op_tensor gate = gm__op_read(self, 4 * self->shape->tokens * RECUR_HEAD, self->mixed[0], 0);
  gate = gm__op_read(self, bytes, gm__op_read(self, bytes, gate, 0), 0);
  normed = GM__OP(self, bytes, .over = {normed, gate});
  return gm__op_read(self, self->row_bytes * self->shape->tokens, gm__op_read(self, bytes, normed, 0), 0);
}

/* ---- linear attention ---- */

/* The state's part for the tokens, and the part that they give each other. */
static gm__op_tensor recur_looked_up(gm__op_walker *self, gm__op_tensor all, gm__op_tensor state) {
  const uint64_t bytes = 4 * self->shape->tokens * self->kind->inner_size, pairs = gm__shape_decay_bytes(self->shape);
  gm__op_tensor decay = GM__OP(self, 4 * self->shape->tokens * self->kind->heads, .over = {self->decays[0]});
  gm__op_tensor given = gm__op_read(self, bytes, state, gm__op_read(self, bytes, all, decay));
  gm__op_tensor values = gm__op_read(self, bytes, all, 0);
  gm__op_tensor scores = gm__op_read(self, pairs, all, 0);
  decay = GM__OP(self, pairs, .over = {self->decays[2]});
  scores = GM__OP(self, pairs, .over = {scores}, .reads = {decay});
  self->mixed[1] = values;
  return GM__OP(self, bytes, .over = {given, gm__op_read(self, bytes, values, scores)});
}

static void recur_linear(gm__op_walker *self, gm__op_tensor input) {
  const recur_sizes sizes = recur_take(self);
  const uint64_t bytes = 4 * self->shape->tokens * sizes.inner;
  gm__op_tensor state = gm__op_read(self, sizes.state, self->sequences, 0);
  gm__op_tensor all = gm__op_read(self, 3 * bytes, input, 0);
  self->mixed[2] = recur_looked_up(self, all, state);
  state = GM__OP(self, sizes.state, .over = {state});
  gm__op_tensor decay = GM__OP(self, 4 * self->shape->tokens * self->kind->heads, .over = {self->decays[1]});
  gm__op_tensor keys = gm__op_read(self, bytes, gm__op_read(self, bytes, all, decay), 0);
  gm__op_tensor news = gm__op_read(self, sizes.state, keys, self->mixed[1]);
  gm__op_read(self, 0, GM__OP(self, sizes.state, .over = {state, news}), 0);
  self->mixed[0] = input;
}

static gm__op_tensor recur_linear_result(gm__op_walker *self) {
  const uint64_t bytes = 4 * self->shape->tokens * self->kind->inner_size;
  gm__op_tensor gate = gm__op_read(self, bytes, self->mixed[0], 0);
  gm__op_tensor copied = gm__op_read(self, bytes, self->mixed[2], 0);
  gate = GM__OP(self, bytes, .over = {gate}, .reads = {copied});
  return gm__op_read(self, self->row_bytes * self->shape->tokens, gate, 0);
}

/* ---- all of them ---- */

void gm__op_recur(gm__op_walker *self, gm__op_tensor input) {
  switch (self->row->mixer) {
    case GM__OP_MIXER_CONV: recur_convolve(self, input); return;
    case GM__OP_MIXER_SCAN: recur_scan(self, input, false); return;
    case GM__OP_MIXER_SCAN_2: recur_scan(self, input, true); return;
    case GM__OP_MIXER_DELTA: recur_delta(self, input); return;
    case GM__OP_MIXER_KDA: recur_kda(self, input); return;
    case GM__OP_MIXER_LINEAR: recur_linear(self, input); return;
    case GM__OP_MIXER_NONE: return;
  }
}

gm__op_tensor gm__op_recurred(gm__op_walker *self) {
  switch (self->row->mixer) {
    case GM__OP_MIXER_CONV: return recur_convolved(self);
    case GM__OP_MIXER_SCAN:
      return gm__op_read(self, self->row_bytes * self->shape->tokens, recur_scanned(self, false), 0);
    case GM__OP_MIXER_SCAN_2: return recur_scanned(self, true);
    case GM__OP_MIXER_DELTA: return recur_ruled(self);
    case GM__OP_MIXER_KDA: return recur_kda_result(self);
    case GM__OP_MIXER_LINEAR: return recur_linear_result(self);
    case GM__OP_MIXER_NONE: break;
  }
  return 0;
}

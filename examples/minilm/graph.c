/* The forward pass. Activations and scratch are buffers of a scope. The scope's end gives them back in the order of the
 * stream, right after the kernels that use them were submitted. It does so after a failure, too. */
#include <inttypes.h>

#include "gm/scope.h"
#include "minilm.h"

/* One sentence at work. After a failure each call does nothing. */
typedef struct step {
  minilm *m;
  gm_scope *scope;
  uint32_t tokens;
  gm_status status;
  gm_error *err;
} step;

/* Returns the scope around the new one. */
static gm_scope *scope_begin(step *s) {
  gm_scope *outer = s->scope;
  s->scope = NULL;
  if (!s->status) s->status = gm_scope_create(s->m->work_pool, &s->scope, s->err);
  return outer;
}

static void scope_end(step *s, gm_scope *outer) {
  gm_scope_end(s->scope, s->m->backend.stream);
  s->scope = outer;
}

/* Kernels cannot use plain host memory, so a buffer must not fall back to it. */
static minilm_tensor take(step *s, uint64_t numbers, gm_buffer **out_buffer) {
  const gm_buffer_params params = {.struct_size = sizeof params,
                                   .request = {.bytes = numbers * sizeof(float),
                                               .stream = s->m->backend.stream,
                                               .must_be = GM_DEVICE_LOCAL,
                                               .tag = s->m->activations},
                                   .fallback = GM_FALLBACK_REFUSE};
  minilm_tensor tensor = {0};
  gm_buffer *buffer = NULL;
  gm_block block;
  if (!s->status) s->status = gm_scope_buffer(s->scope, &params, &buffer, s->err);
  if (!s->status) s->status = gm_buffer_block(buffer, &block, s->err);
  if (!s->status) s->status = s->m->backend.calls->tensor(s->m->work_pool, &block, &tensor, s->err);
  if (out_buffer) *out_buffer = buffer;
  return tensor;
}

static void run(step *s, minilm_op op, minilm_args args) {
  if (!s->status) s->status = s->m->backend.calls->run(&s->m->backend, op, &args, s->err);
}

/* The activations `in` times a weight, which its bias follows. */
static minilm_tensor linear(step *s, minilm_tensor in, const minilm_tensor *weight, uint32_t columns, uint32_t depth) {
  const minilm_tensor out = take(s, (uint64_t)s->tokens * columns, NULL);
  run(s, MINILM_LINEAR, (minilm_args){in, weight[0], weight[1], out, s->tokens, columns, depth});
  return out;
}

static void add_norm(step *s, minilm_tensor x, minilm_tensor add, const minilm_tensor *norm) {
  run(s, MINILM_ADD_NORM, (minilm_args){add, norm[0], norm[1], x, s->tokens, s->m->dims.width, 0});
}

static void attend(step *s, const minilm_tensor *weights, minilm_tensor x) {
  const uint32_t tokens = s->tokens, width = s->m->dims.width, heads = s->m->dims.heads, depth = width / heads;
  gm_scope *outer = scope_begin(s);
  const minilm_tensor query = linear(s, x, &weights[MINILM_QUERY], width, width);
  const minilm_tensor key = linear(s, x, &weights[MINILM_KEY], width, width);
  const minilm_tensor value = linear(s, x, &weights[MINILM_VALUE], width, width);
  const minilm_tensor scores = take(s, (uint64_t)heads * tokens * tokens, NULL);
  const minilm_tensor mixed = take(s, (uint64_t)tokens * width, NULL);
  run(s, MINILM_SCORES, (minilm_args){query, key, {0}, scores, heads * tokens, tokens, depth});
  run(s, MINILM_SOFTMAX, (minilm_args){.out = scores, .rows = heads * tokens, .columns = tokens});
  run(s, MINILM_MIX, (minilm_args){scores, value, {0}, mixed, tokens, width, depth});
  add_norm(s, x, linear(s, mixed, &weights[MINILM_PROJECT], width, width), &weights[MINILM_PROJECT_NORM]);
  scope_end(s, outer);
}

static void feed_forward(step *s, const minilm_tensor *weights, minilm_tensor x) {
  const uint32_t width = s->m->dims.width, inner = s->m->dims.inner;
  gm_scope *outer = scope_begin(s);
  const minilm_tensor wide = linear(s, x, &weights[MINILM_EXPAND], inner, width);
  run(s, MINILM_GELU, (minilm_args){.out = wide, .rows = s->tokens, .columns = inner});
  add_norm(s, x, linear(s, wide, &weights[MINILM_REDUCE], width, inner), &weights[MINILM_REDUCE_NORM]);
  scope_end(s, outer);
}

/* Positions 0, 1, ... are the first rows of their table, so adding them needs no look-up. */
static minilm_tensor embed_words(step *s, const int32_t *ids) {
  const minilm_weights *weights = &s->m->weights;
  const uint32_t width = s->m->dims.width;
  gm_buffer *buffer;
  const minilm_tensor numbers = take(s, s->tokens, &buffer), x = take(s, (uint64_t)s->tokens * width, NULL);
  if (!s->status) {
    s->status = gm_buffer_write(buffer, 0, ids, s->tokens * sizeof *ids, s->m->backend.stream, s->err);
  }
  run(s, MINILM_EMBED, (minilm_args){numbers, weights->words, weights->types, x, s->tokens, width, 0});
  add_norm(s, x, weights->positions, weights->norm);
  return x;
}

static void read_mean(step *s, minilm_tensor x, float *out) {
  const uint32_t width = s->m->dims.width;
  gm_buffer *buffer;
  const minilm_tensor mean = take(s, width, &buffer);
  run(s, MINILM_MEAN, (minilm_args){.a = x, .out = mean, .rows = 1, .columns = width, .depth = s->tokens});
  run(s, MINILM_UNIT, (minilm_args){.out = mean, .rows = 1, .columns = width});
  if (!s->status) s->status = gm_buffer_read(buffer, 0, out, width * sizeof *out, s->m->backend.stream, s->err);
}

static gm_status check_ids(const minilm *m, const int32_t *ids, uint32_t count, gm_error *err) {
  if (!count || count > m->dims.positions) {
    return minilm_fail(err, GM_ERR_INVALID_ARGUMENT, "minilm_embed",
                       "%" PRIu32 " tokens, and the model takes 1 to %" PRIu32, count, m->dims.positions);
  }
  for (uint32_t i = 0; i < count; i++) {
    if (ids[i] >= 0 && (uint32_t)ids[i] < m->dims.words) continue;
    return minilm_fail(err, GM_ERR_INVALID_ARGUMENT, "minilm_embed",
                       "token %" PRIu32 " is %" PRId32 ", and the vocabulary has 0 to %" PRIu32, i, ids[i],
                       m->dims.words - 1);
  }
  return GM_OK;
}

gm_status minilm_embed(minilm *m, const int32_t *ids, uint32_t count, float *out, gm_error *err) {
  step s = {.m = m, .tokens = count, .err = err, .status = check_ids(m, ids, count, err)};
  if (s.status) return s.status;
  gm_scope *none = scope_begin(&s);
  const minilm_tensor x = embed_words(&s, ids);
  for (uint32_t i = 0; !s.status && i < m->dims.layers; i++) {
    attend(&s, m->weights.layers[i], x);
    feed_forward(&s, m->weights.layers[i], x);
  }
  read_mean(&s, x, out);
  scope_end(&s, none);
  return s.status;
}

/* The operations on the CPU, plainly: a block of gm is an address here. */
#include <math.h>
#include <stdio.h>

#include "backend.h"
#include "gm/native_cpu.h"

enum { LANES = 8 };

static float *floats(minilm_tensor tensor) { return (float *)tensor.memory + tensor.at; } /* NOLINT */

/* Eight sums side by side: compilers make vectors of them. */
static float dot(const float *a, const float *b, uint32_t count) {
  float lanes[LANES] = {0}, sum = 0;
  for (uint32_t i = 0; i < count; i += LANES) {
    for (uint32_t lane = 0; lane < LANES; lane++) lanes[lane] += a[i + lane] * b[i + lane];
  }
  for (uint32_t lane = 0; lane < LANES; lane++) sum += lanes[lane];
  return sum;
}

static void embed(const minilm_args *args) {
  const int32_t *ids = (const int32_t *)args->a.memory + args->a.at; /* NOLINT */
  const float *words = floats(args->b), *type = floats(args->c);
  for (uint32_t row = 0; row < args->rows; row++) {
    const float *word = words + (size_t)ids[row] * args->columns;
    float *out = floats(args->out) + (size_t)row * args->columns;
    for (uint32_t column = 0; column < args->columns; column++) out[column] = word[column] + type[column];
  }
}

/* Each row of weights is read once, while the activations stay in the cache. */
static void linear(const minilm_args *args) {
  const float *in = floats(args->a), *bias = floats(args->c);
  float *out = floats(args->out);
  for (uint32_t column = 0; column < args->columns; column++) {
    const float *weight = floats(args->b) + (size_t)column * args->depth;
    for (uint32_t row = 0; row < args->rows; row++) {
      out[(size_t)row * args->columns + column] =
          bias[column] + dot(in + (size_t)row * args->depth, weight, args->depth);
    }
  }
}

static void gelu(const minilm_args *args) {
  float *out = floats(args->out);
  for (size_t i = 0; i < (size_t)args->rows * args->columns; i++) {
    out[i] = 0.5f * out[i] * (1.0f + erff(out[i] * 0.70710678f));
  }
}

static void scores(const minilm_args *args) {
  const uint32_t tokens = args->columns, heads = args->rows / tokens, width = heads * args->depth;
  const float scale = 1.0f / sqrtf((float)args->depth);
  float *out = floats(args->out);
  for (uint32_t row = 0; row < args->rows; row++) {
    const uint32_t head = row / tokens;
    const float *query = floats(args->a) + (size_t)(row % tokens) * width + (size_t)head * args->depth;
    const float *keys = floats(args->b) + (size_t)head * args->depth;
    for (uint32_t i = 0; i < tokens; i++) *out++ = scale * dot(query, keys + (size_t)i * width, args->depth);
  }
}

static void softmax(const minilm_args *args) {
  float *out = floats(args->out);
  for (uint32_t row = 0; row < args->rows; row++, out += args->columns) {
    float most = out[0], sum = 0;
    for (uint32_t i = 1; i < args->columns; i++) most = fmaxf(most, out[i]);
    for (uint32_t i = 0; i < args->columns; i++) sum += out[i] = expf(out[i] - most);
    for (uint32_t i = 0; i < args->columns; i++) out[i] /= sum;
  }
}

static void mix(const minilm_args *args) {
  const uint32_t tokens = args->rows, width = args->columns;
  for (uint32_t row = 0; row < tokens; row++) {
    float *out = floats(args->out) + (size_t)row * width;
    for (uint32_t column = 0; column < width; column++) {
      const float *score = floats(args->a) + ((size_t)(column / args->depth) * tokens + row) * tokens;
      const float *value = floats(args->b) + column;
      float sum = 0;
      for (uint32_t i = 0; i < tokens; i++) sum += score[i] * value[(size_t)i * width];
      out[column] = sum;
    }
  }
}

static void add_norm(const minilm_args *args) {
  const uint32_t width = args->columns;
  const float *gain = floats(args->b), *bias = floats(args->c);
  for (uint32_t row = 0; row < args->rows; row++) {
    const float *add = floats(args->a) + (size_t)row * width;
    float *out = floats(args->out) + (size_t)row * width, sum = 0, squares = 0;
    for (uint32_t i = 0; i < width; i++) sum += out[i] += add[i];
    const float mean = sum / (float)width;
    for (uint32_t i = 0; i < width; i++) squares += (out[i] - mean) * (out[i] - mean);
    const float scale = 1.0f / sqrtf(squares / (float)width + 1e-12f);
    for (uint32_t i = 0; i < width; i++) out[i] = (out[i] - mean) * scale * gain[i] + bias[i];
  }
}

static void mean(const minilm_args *args) {
  float *out = floats(args->out);
  for (uint32_t column = 0; column < args->columns; column++) {
    float sum = 0;
    for (uint32_t i = 0; i < args->depth; i++) sum += floats(args->a)[(size_t)i * args->columns + column];
    out[column] = sum / (float)args->depth;
  }
}

static void unit(const minilm_args *args) {
  float *out = floats(args->out);
  const float length = sqrtf(dot(out, out, args->columns));
  for (uint32_t i = 0; i < args->columns; i++) out[i] /= length;
}

static gm_status cpu_run(minilm_backend *backend, minilm_op op, const minilm_args *args, gm_error *err) {
  static void (*const ops[MINILM_OPS])(const minilm_args *) = {
      [MINILM_EMBED] = embed,       [MINILM_LINEAR] = linear,   [MINILM_GELU] = gelu,
      [MINILM_SCORES] = scores,     [MINILM_SOFTMAX] = softmax, [MINILM_MIX] = mix,
      [MINILM_ADD_NORM] = add_norm, [MINILM_MEAN] = mean,       [MINILM_UNIT] = unit};
  (void)backend;
  (void)err;
  ops[op](args);
  return GM_OK;
}

static gm_status cpu_open(minilm_backend *backend, gm_context *ctx, const char *platform, gm_error *err) {
  (void)platform;
  const gm_status status = gm_device_open_index(ctx, "cpu", 0, &backend->device, err);
  if (!status) snprintf(backend->name, sizeof backend->name, "%s", gm_device_get_info(backend->device)->name);
  return status;
}

static gm_status cpu_tensor(gm_pool *pool, const gm_block *block, minilm_tensor *out, gm_error *err) {
  gm_cpu_memory native = {.head = {sizeof native, GM_API_CPU}};
  const gm_status status = gm_block_native(pool, block, &native.head, err);
  *out = (minilm_tensor){(uintptr_t)native.pointer, 0};
  return status;
}

static void cpu_release(minilm_backend *backend) { (void)backend; }

const minilm_backend_calls minilm_cpu = {cpu_open, cpu_tensor, cpu_run, cpu_release};

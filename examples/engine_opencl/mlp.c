#include "mlp.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static float mlp_random(uint32_t *state) { /* in [-1, 1) */
  *state = *state * 1664525u + 1013904223u;
  return (float)(*state >> 8) / 8388608.0f - 1.0f;
}

static int mlp_layer_create(mlp_layer *layer, unsigned inputs, unsigned outputs, int relu, uint32_t *state) {
  *layer = (mlp_layer){.inputs = inputs, .outputs = outputs, .relu = relu};
  layer->weights = malloc(sizeof(float) * inputs * outputs);
  layer->bias = malloc(sizeof(float) * outputs);
  if (!layer->weights || !layer->bias) return 1;
  const float scale = sqrtf(3.0f / (float)inputs);
  for (size_t i = 0; i < (size_t)inputs * outputs; i++) layer->weights[i] = scale * mlp_random(state);
  for (size_t i = 0; i < outputs; i++) layer->bias[i] = 0.1f * mlp_random(state);
  return 0;
}

int mlp_create(mlp *model) {
  uint32_t state = 1;
  memset(model, 0, sizeof *model);
  if (mlp_layer_create(&model->layers[0], MLP_INPUTS, MLP_HIDDEN, 1, &state) ||
      mlp_layer_create(&model->layers[1], MLP_HIDDEN, MLP_HIDDEN, 1, &state) ||
      mlp_layer_create(&model->layers[2], MLP_HIDDEN, MLP_OUTPUTS, 0, &state)) {
    mlp_destroy(model);
    return 1;
  }
  return 0;
}

void mlp_destroy(mlp *model) {
  for (int i = 0; i < MLP_LAYERS; i++) {
    free(model->layers[i].weights);
    free(model->layers[i].bias);
  }
  memset(model, 0, sizeof *model);
}

void mlp_input(unsigned step, float *out) {
  uint32_t state = 1000 + step;
  for (size_t i = 0; i < (size_t)MLP_BATCH * MLP_INPUTS; i++) out[i] = mlp_random(&state);
}

static void mlp_dense(const mlp_layer *layer, const float *in, float *out) {
  for (unsigned row = 0; row < MLP_BATCH; row++) {
    for (unsigned column = 0; column < layer->outputs; column++) {
      float sum = layer->bias[column];
      for (unsigned i = 0; i < layer->inputs; i++) {
        sum += in[row * layer->inputs + i] * layer->weights[column * layer->inputs + i];
      }
      out[row * layer->outputs + column] = layer->relu && sum < 0.0f ? 0.0f : sum;
    }
  }
}

static void mlp_softmax(float *values) {
  for (unsigned row = 0; row < MLP_BATCH; row++, values += MLP_OUTPUTS) {
    float most = values[0], sum = 0.0f;
    for (unsigned i = 1; i < MLP_OUTPUTS; i++) most = fmaxf(most, values[i]);
    for (unsigned i = 0; i < MLP_OUTPUTS; i++) sum += expf(values[i] - most);
    for (unsigned i = 0; i < MLP_OUTPUTS; i++) values[i] = expf(values[i] - most) / sum;
  }
}

int mlp_forward(const mlp *model, const float *input, float *out) {
  float *first = malloc(sizeof(float) * MLP_BATCH * MLP_HIDDEN);
  float *second = malloc(sizeof(float) * MLP_BATCH * MLP_HIDDEN);
  if (first && second) {
    mlp_dense(&model->layers[0], input, first);
    mlp_dense(&model->layers[1], first, second);
    mlp_dense(&model->layers[2], second, out);
    mlp_softmax(out);
  }
  const int failed = !first || !second;
  free(first);
  free(second);
  return failed;
}

double mlp_worst(double worst, const float *got, const float *want) {
  for (size_t i = 0; i < (size_t)MLP_BATCH * MLP_OUTPUTS; i++) {
    const double difference = fabs((double)got[i] - (double)want[i]);
    if (!isnan(worst) && !(difference <= worst)) worst = difference;
  }
  return worst;
}

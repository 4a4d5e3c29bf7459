/* A small multi-layer perceptron with a softmax, in plain C: the model of the example and the answer to check against.
 */
#ifndef GM_EXAMPLES_MLP_H
#define GM_EXAMPLES_MLP_H

#include <stddef.h>

enum { MLP_LAYERS = 3, MLP_BATCH = 32, MLP_INPUTS = 64, MLP_HIDDEN = 256, MLP_OUTPUTS = 10 };

typedef struct mlp_layer {
  unsigned inputs, outputs;
  int relu;
  float *weights; /* outputs x inputs */
  float *bias;
} mlp_layer;

typedef struct mlp {
  mlp_layer layers[MLP_LAYERS];
} mlp;

/* Weights from a fixed sequence of pseudo-random numbers. 0: done; else no memory. The caller destroys it. */
int mlp_create(mlp *model);
void mlp_destroy(mlp *model);

/* The batch of inputs of a step: MLP_BATCH x MLP_INPUTS. */
void mlp_input(unsigned step, float *out);

/* `out` is MLP_BATCH x MLP_OUTPUTS. 0: done; else no memory. */
int mlp_forward(const mlp *model, const float *input, float *out);

/* The largest difference between the results of a step, MLP_BATCH x MLP_OUTPUTS each, or `worst` if that is larger.
 * Not a number, once a difference was none. */
double mlp_worst(double worst, const float *got, const float *want);

#endif

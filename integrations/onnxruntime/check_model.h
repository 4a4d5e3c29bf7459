/* Models for the check, written as ONNX files are: a transformer and a convolutional network with weights of a seeded
 * random generator. They take batches: the first dimension of their input is free. */
#ifndef GM_INTEGRATIONS_ONNXRUNTIME_CHECK_MODEL_H
#define GM_INTEGRATIONS_ONNXRUNTIME_CHECK_MODEL_H

#include <stddef.h>
#include <stdint.h>

typedef struct check_model {
  char *bytes; /* the file */
  size_t size, capacity;
  const char *name, *input, *output;
  int64_t shape[4]; /* of one input; [0] is the batch */
  size_t rank;
  unsigned seed;
  unsigned names;  /* how many tensors have names so far */
  char weight[16]; /* the name of the first matrix, where its numbers are in the file, and its shape */
  size_t weight_at;
  int64_t weight_shape[2];
} check_model;

/* Two blocks of attention and feed-forward: 6 MB of weights, inputs of 32 rows of 256. */
check_model check_transformer(void);
/* Four convolutions and a classifier: 2 MB of weights, inputs of 3 x 48 x 48. */
check_model check_convnet(void);
void check_model_free(check_model *model);

#endif

/* A tensor of a file that is to be written. */
#ifndef GM_CORE_MODEL_FILE_TENSOR_H
#define GM_CORE_MODEL_FILE_TENSOR_H

#include "gm/dtype.h"
#include "gm/model.h"

typedef struct gm__file_tensor {
  const char *name;
  gm_dtype dtype;
  uint32_t rank;
  uint64_t shape[GM_TENSOR_MAX_RANK];
  uint64_t bytes;
} gm__file_tensor;

#endif

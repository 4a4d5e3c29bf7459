/* The content of a file that is to be written: its tensors, and what it states about itself. */
#ifndef GM_CORE_MODEL_FILE_TENSOR_H
#define GM_CORE_MODEL_FILE_TENSOR_H

#include <stddef.h>

#include "core/model/contents.h"

enum { GM__FILE_ALIGN = 4096 }; /* gm begins the data there, so that a file can be mapped, and read past the cache */

typedef struct gm__file_tensor {
  const char *name;
  uint64_t number; /* the caller's; equal for all: names alone give the order */
  gm_dtype dtype;
  uint32_t rank;
  uint64_t shape[GM_TENSOR_MAX_RANK];
  uint64_t bytes;
} gm__file_tensor;

/* A string, or a value as the header of a GGUF file has it. */
typedef struct gm__file_value {
  gm__json_text key, text;
  const gm__contents *contents; /* NULL: it is the string `text` */
  const gm__value *value;
} gm__file_value;

typedef struct gm__file_table {
  const gm_services *services;
  const char *op; /* the public call, for messages */
  gm__file_tensor *tensors;
  size_t count;
  const gm__file_value *values;
  size_t value_count;
} gm__file_table;

#endif

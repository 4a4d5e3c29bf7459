/* A BERT encoder of one layer, made up, of which one tensor can be wrong. */
#ifndef GM_TESTS_MINILM_TINY_MODEL_H
#define GM_TESTS_MINILM_TINY_MODEL_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/temp_folder.h"

enum { TINY_WIDTH = 32, TINY_INNER = 16, TINY_WORDS = 5, TINY_POSITIONS = 4, TINY_TENSORS = 21, TINY_NONE = -1 };

typedef enum tiny_wrong { TINY_RIGHT, TINY_MISSING, TINY_SHAPE, TINY_HALF } tiny_wrong;

typedef struct tiny_tensor {
  const char *name;
  unsigned rows, columns; /* no columns: a vector */
} tiny_tensor;

#define TINY_LAYER "encoder.layer.0."
static const tiny_tensor tiny_tensors[TINY_TENSORS] = {
    {"embeddings.word_embeddings.weight", TINY_WORDS, TINY_WIDTH},
    {"embeddings.position_embeddings.weight", TINY_POSITIONS, TINY_WIDTH},
    {"embeddings.token_type_embeddings.weight", 1, TINY_WIDTH},
    {"embeddings.LayerNorm.weight", TINY_WIDTH, 0},
    {"embeddings.LayerNorm.bias", TINY_WIDTH, 0},
    {TINY_LAYER "attention.self.query.weight", TINY_WIDTH, TINY_WIDTH},
    {TINY_LAYER "attention.self.query.bias", TINY_WIDTH, 0},
    {TINY_LAYER "attention.self.key.weight", TINY_WIDTH, TINY_WIDTH},
    {TINY_LAYER "attention.self.key.bias", TINY_WIDTH, 0},
    {TINY_LAYER "attention.self.value.weight", TINY_WIDTH, TINY_WIDTH},
    {TINY_LAYER "attention.self.value.bias", TINY_WIDTH, 0},
    {TINY_LAYER "attention.output.dense.weight", TINY_WIDTH, TINY_WIDTH},
    {TINY_LAYER "attention.output.dense.bias", TINY_WIDTH, 0},
    {TINY_LAYER "attention.output.LayerNorm.weight", TINY_WIDTH, 0},
    {TINY_LAYER "attention.output.LayerNorm.bias", TINY_WIDTH, 0},
    {TINY_LAYER "intermediate.dense.weight", TINY_INNER, TINY_WIDTH},
    {TINY_LAYER "intermediate.dense.bias", TINY_INNER, 0},
    {TINY_LAYER "output.dense.weight", TINY_WIDTH, TINY_INNER},
    {TINY_LAYER "output.dense.bias", TINY_WIDTH, 0},
    {TINY_LAYER "output.LayerNorm.weight", TINY_WIDTH, 0},
    {TINY_LAYER "output.LayerNorm.bias", TINY_WIDTH, 0},
};

/* Appends a tensor to the header; returns the bytes of data so far. */
static inline unsigned tiny_entry(char *header, size_t capacity, const tiny_tensor *tensor, tiny_wrong wrong,
                                  unsigned data) {
  const unsigned element = wrong == TINY_HALF ? 2 : 4;
  const unsigned columns = tensor->columns && wrong == TINY_SHAPE ? tensor->columns + 8 : tensor->columns;
  const unsigned rows = !tensor->columns && wrong == TINY_SHAPE ? tensor->rows + 8 : tensor->rows;
  const unsigned end = data + rows * (columns ? columns : 1) * element;
  const size_t length = strlen(header);
  char shape[32];
  snprintf(shape, sizeof shape, columns ? "%u,%u" : "%u", rows, columns);
  snprintf(header + length, capacity - length, "%s\"%s\":{\"dtype\":\"%s\",\"shape\":[%s],\"data_offsets\":[%u,%u]}",
           length > 1 ? "," : "", tensor->name, element == 2 ? "F16" : "F32", shape, data, end);
  return end;
}

/* Writes tiny.safetensors into a folder, with tensor number `index` wrong. */
static inline const char *tiny_write(temp_folder *folder, int index, tiny_wrong wrong) {
  static char header[8192];
  static unsigned char file[sizeof header + 65536];
  unsigned data = 0;
  strcpy(header, "{");
  for (int i = 0; i < TINY_TENSORS; i++) {
    const tiny_wrong how = i == index ? wrong : TINY_RIGHT;
    if (how != TINY_MISSING) data = tiny_entry(header, sizeof header, &tiny_tensors[i], how, data);
  }
  strcat(header, "}");
  while (strlen(header) % 8) strcat(header, " ");
  const size_t length = strlen(header);
  if (data > 65536 - 8) abort();
  for (int i = 0; i < 8; i++) file[i] = (unsigned char)((uint64_t)length >> (8 * i));
  memcpy(file + 8, header, length);
  for (unsigned i = 0; i < data / sizeof(float); i++) {
    const float number = (float)(i % 13) / 26.0F - 0.2F;
    memcpy(file + 8 + length + i * sizeof number, &number, sizeof number);
  }
  return temp_folder_write(folder, "tiny.safetensors", file, 8 + length + data);
}

#endif

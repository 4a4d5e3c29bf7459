/* A model's dimensions out of words such as "block_count=24" and "attention.head_count_kv=4,0": a GGUF file is made of
 * them, and read. A list goes around over the layers. Needs cmocka.h included before. */
#ifndef GM_TESTS_SUPPORT_GGUF_WORDS_H
#define GM_TESTS_SUPPORT_GGUF_WORDS_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/model/model.h"
#include "gm/model_config.h"
#include "support/gguf_bytes.h"

enum { GGUF_WORDS = 64, GGUF_WORDS_LIST = 64 };

typedef struct gguf_words {
  char *keys[GGUF_WORDS], *tensors[8]; /* borrowed; names of tensors without "blk.0." and ".weight" */
  int key_count, tensor_count;
} gguf_words;

/* The last of a key's values counts. */
static inline bool gguf_words_replaced(const gguf_words *self, int which) {
  size_t name = strcspn(self->keys[which], "=") + 1;
  for (int i = which + 1; i < self->key_count; i++) {
    if (strncmp(self->keys[i], self->keys[which], name) == 0) return true;
  }
  return false;
}

static inline uint64_t gguf_words_layers(const gguf_words *self) {
  uint64_t layers = 0;
  for (int i = 0; i < self->key_count; i++) {
    if (strncmp(self->keys[i], "block_count=", 12) == 0) layers = strtoull(self->keys[i] + 12, NULL, 10);
  }
  return layers;
}

static inline void gguf_words_list(gguf_bytes *file, const char *name, const char *values, uint64_t layers) {
  uint64_t list[GGUF_WORDS_LIST], count = 0;
  for (const char *at = values; at && *at; at = strchr(at, ',')) {
    at += *at == ',';
    if (*at) list[count++] = strtoull(at, NULL, 10);
  }
  gguf_bytes_array(file, name, GGUF_U32, layers);
  for (uint64_t i = 0; i < layers; i++) gguf_bytes_number(file, list[i % count], 4);
}

static inline void gguf_words_key(gguf_bytes *file, const char *architecture, const char *word, uint64_t layers) {
  char name[128];
  const char *value = strchr(word, '=') + 1;
  snprintf(name, sizeof name, "%s.%.*s", architecture, (int)(value - 1 - word), word);
  if (strchr(value, ',')) {
    gguf_words_list(file, name, value, layers);
  } else if (value[0] == 't' || value[0] == 'f') {
    gguf_bytes_value(file, name, GGUF_BOOL, value[0] == 't', 1);
  } else {
    gguf_bytes_u32(file, name, strtoull(value, NULL, 10));
  }
}

static inline void gguf_words_tensor(gguf_bytes *file, const char *name, uint64_t offset) {
  char full[64];
  snprintf(full, sizeof full, "blk.0.%s.weight", name);
  gguf_bytes_tensor(file, full, 0, offset, 1, (uint64_t)8);
}

static inline gguf_bytes gguf_words_file(const gguf_words *self, const char *architecture) {
  gguf_bytes file;
  const uint64_t tensors = 1 + (uint64_t)self->tensor_count;
  uint64_t count = 1;
  for (int i = 0; i < self->key_count; i++) count += gguf_words_replaced(self, i) ? 0 : 1;
  gguf_bytes_begin(&file, 3, tensors, count);
  gguf_bytes_text(&file, "general.architecture", architecture);
  for (int i = 0; i < self->key_count; i++) {
    if (gguf_words_replaced(self, i)) continue;
    gguf_words_key(&file, architecture, self->keys[i], gguf_words_layers(self));
  }
  gguf_bytes_tensor(&file, "output_norm.weight", 0, 0, 1, (uint64_t)8);
  for (int i = 0; i < self->tensor_count; i++) gguf_words_tensor(&file, self->tensors[i], 32 * (uint64_t)(i + 1));
  gguf_bytes_data(&file, 32, 32 * tensors, 0);
  return file;
}

/* *model is NULL where there are no tensors: gm knows the keys alone then. */
static inline gm_model_config gguf_words_read(const gguf_words *self, const char *architecture, gm_model **model) {
  gguf_bytes file = gguf_words_file(self, architecture);
  gm_model_config config = {.struct_size = sizeof config};
  gm_error err = {.status = GM_OK};
  if (gm__model_open_memory(NULL, file.bytes, file.length, "m.gguf", true, model, &err)) fail_msg("%s", err.message);
  if (gm_model_read_config(*model, &config, &err)) fail_msg("%s: %s", architecture, err.message);
  if (self->tensor_count == 0) {
    gm_model_close(*model);
    *model = NULL;
  }
  gguf_bytes_free(&file);
  return config;
}

#endif

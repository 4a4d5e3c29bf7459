/* A GGUF file of a header alone that says what a test wants of its layers. */
#ifndef GM_TESTS_SUPPORT_LAYER_SCENE_H
#define GM_TESTS_SUPPORT_LAYER_SCENE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "core/model/layers.h"
#include "core/model/model.h"
#include "support/gguf_bytes.h"

enum { HIDDEN = 64, HEADS = 8 };

typedef struct scene {
  gguf_bytes file;
  const char *architecture;
} scene;

static inline const char *scene_key(const scene *self, const char *rest) {
  static char key[96];
  snprintf(key, sizeof key, "%s.%s", self->architecture, rest);
  return key;
}

/* `values` more keys come behind these. */
static inline void scene_begin(scene *self, const char *architecture, uint64_t layers, uint64_t values) {
  self->architecture = architecture;
  gguf_bytes_begin(&self->file, 3, 0, 4 + values);
  gguf_bytes_text(&self->file, "general.architecture", architecture);
  gguf_bytes_u32(&self->file, scene_key(self, "embedding_length"), HIDDEN);
  gguf_bytes_u32(&self->file, scene_key(self, "block_count"), layers);
  gguf_bytes_u32(&self->file, scene_key(self, "attention.head_count"), HEADS);
}

static inline void scene_number(scene *self, const char *rest, uint64_t value) {
  gguf_bytes_u32(&self->file, scene_key(self, rest), value);
}

static inline void scene_list(scene *self, const char *rest, const uint32_t *numbers, uint64_t count) {
  gguf_bytes_array(&self->file, scene_key(self, rest), GGUF_I32, count);
  for (uint64_t i = 0; i < count; i++) gguf_bytes_number(&self->file, numbers[i], 4);
}

static inline gm_status scene_read(scene *self, gm_model_config *out, gm_error *err) {
  gm_model *model = NULL;
  gguf_bytes_data(&self->file, 32, 0, 0);
  assert_int_equal(gm__model_open_memory(NULL, self->file.bytes, self->file.length, "m.gguf", true, &model, err),
                   GM_OK);
  gguf_bytes_free(&self->file);
  *out = (gm_model_config){.struct_size = sizeof *out};
  const gm_status status = gm_model_read_config(model, out, err);
  gm_model_close(model);
  return status;
}

static inline gm_model_config scene_config(scene *self) {
  gm_model_config config;
  gm_error err = {.status = GM_OK};
  if (scene_read(self, &config, &err)) fail_msg("%s", err.message);
  return config;
}

static inline void scene_refused(scene *self, gm_status wanted, const char *words) {
  gm_model_config config;
  gm_error err = {.status = GM_OK};
  assert_int_equal(scene_read(self, &config, &err), wanted);
  if (!strstr(err.message, words)) fail_msg("\"%s\" has no \"%s\"", err.message, words);
}

#endif

/* The common parts of the tests of examples/minilm: the backend of this run, and the recorded sentences. */
#ifndef GM_TESTS_MINILM_SCENE_H
#define GM_TESTS_MINILM_SCENE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "minilm.h"
#include "test_data.h"

enum { SCENE_SENTENCES = 8, SCENE_TOKENS = 128, SCENE_WIDTH = 384, SCENE_LINE = 8192 };

typedef struct scene {
  char text[SCENE_SENTENCES][512];
  int32_t ids[SCENE_SENTENCES][SCENE_TOKENS];
  uint32_t counts[SCENE_SENTENCES];
  float embeddings[SCENE_SENTENCES][SCENE_WIDTH];
} scene;

static const char *scene_backend = "cpu";

static inline minilm_params scene_params(const char *model) {
  return (minilm_params){.model = model, .backend = scene_backend, .platform = "Portable"};
}

static inline void scene_open(minilm *m, const minilm_params *params) {
  gm_error err = {0};
  if (minilm_open(m, params, &err)) fail_msg("%s: %s", err.op, err.message);
}

static inline void scene_close(minilm *m) { assert_int_equal(minilm_close(m, NULL), GM_OK); }

static inline gm_stats scene_stats(gm_pool *pool) {
  gm_stats stats = {.struct_size = sizeof stats};
  assert_int_equal(gm_pool_stats(pool, &stats), GM_OK);
  return stats;
}

static inline void scene_read_line(FILE *file, char *line, size_t capacity) {
  assert_non_null(fgets(line, (int)capacity, file));
  assert_non_null(strchr(line, '\n'));
  *strchr(line, '\n') = '\0';
}

static inline void scene_read_row(scene *s, int row, FILE *text, FILE *ids, FILE *embeddings) {
  static char line[SCENE_LINE];
  char *at = line, *end = line;
  scene_read_line(text, s->text[row], sizeof s->text[row]);
  scene_read_line(ids, line, sizeof line);
  for (; *at; at = end) {
    assert_true(s->counts[row] < SCENE_TOKENS);
    s->ids[row][s->counts[row]++] = (int32_t)strtol(at, &end, 10);
    assert_true(end > at);
  }
  scene_read_line(embeddings, line, sizeof line);
  at = line;
  for (int i = 0; i < SCENE_WIDTH; i++, at = end) {
    s->embeddings[row][i] = strtof(at, &end);
    assert_true(end > at);
  }
}

static inline void scene_read(scene *s) {
  FILE *text = fopen(GM_TEST_DATA "/minilm/sentences.txt", "r"), *ids = fopen(GM_TEST_DATA "/minilm/ids.txt", "r");
  FILE *embeddings = fopen(GM_TEST_DATA "/minilm/embeddings.txt", "r");
  assert_true(text && ids && embeddings);
  memset(s, 0, sizeof *s);
  for (int row = 0; row < SCENE_SENTENCES; row++) scene_read_row(s, row, text, ids, embeddings);
  fclose(text);
  fclose(ids);
  fclose(embeddings);
}

/* The backend is argv[1]. Without a device a test is skipped (77), unless GM_REQUIRE_BACKENDS lists the backend. */
static inline int scene_begin(int argc, char **argv, const char *model) {
  const char *required = getenv("GM_REQUIRE_BACKENDS");
  minilm m;
  gm_error err;
  if (argc > 1) scene_backend = argv[1];
  const minilm_params params = scene_params(model);
  const gm_status status = minilm_open(&m, &params, &err);
  if (status == GM_OK) return minilm_close(&m, NULL) == GM_OK ? 0 : 1;
  const int absent = status == GM_ERR_UNAVAILABLE || status == GM_ERR_NOT_SUPPORTED;
  const int skips = absent && !(required && strstr(required, strcmp(scene_backend, "cpu") == 0 ? "cpu" : "opencl"));
  printf("%s: %s: %s\n", skips ? "skipped" : "failed", scene_backend, err.message);
  return skips ? 77 : 1;
}

#endif

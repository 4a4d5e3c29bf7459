/* The compute buffers that gm knows, against those of the engine. scripts/check-fit --write records them, a line for
 * each small model: its architecture, keys beside those of the line "base", and the bytes at each setting. Behind "+"
 * are tensors that decide. Behind ":" gm has the bytes exact; behind "~" they are in its interval. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "gm/estimate.h"
#include "support/gguf_words.h"
#include "test_data.h"

enum { LINE = 1024 };

/* In the order of tests/fit/sweep/compare.py. */
static const gm_estimate_settings settings[] = {
    {.context = 4096, .batch = 512},
    {.context = 4096, .batch = 512, .plain_attention = true},
    {.context = 8192, .batch = 512, .sequences = 4},
    {.context = 8192, .batch = 512, .sequences = 4, .separate_sequences = true},
    {.context = 4096, .batch = 512, .key_type = GM_DTYPE_Q8_0, .value_type = GM_DTYPE_Q8_0},
    {.context = 8192, .batch = 512, .full_windows = true},
    {.context = 16384, .batch = 256, .plain_attention = true},
};

/* One line of the record, cut into words. */
typedef struct record {
  char text[2][LINE]; /* of the base, and of the model */
  gguf_words words;   /* the last of a key's values counts: the base comes first */
  char *figures[8];
  int figure_count;
} record;

static bool is_figure(const char *word) {
  return word[0] >= '0' && word[0] <= '9' && (word[1] == ':' || word[1] == '~');
}

static void take_word(record *self, char *word) {
  if (is_figure(word)) {
    self->figures[self->figure_count++] = word;
  } else if (word[0] == '+') {
    self->words.tensors[self->words.tensor_count++] = word + 1;
  } else {
    assert_true(self->words.key_count < GGUF_WORDS);
    self->words.keys[self->words.key_count++] = word;
  }
}

/* Without the tensors gm may have another figure, but the right one is in its range: an exact answer is right. */
static bool is_right_from_keys(const gm_model_config *config, const gm_estimate_settings *asked, uint64_t measured) {
  gm_memory_estimate out = {.struct_size = sizeof out};
  assert_int_equal(gm_estimate_memory(NULL, config, NULL, asked, &out, NULL), GM_OK);
  const gm_estimate_part *part = &out.parts[GM_ESTIMATE_COMPUTE];
  return part->standing == GM_STANDING_UNKNOWN || (part->range.low <= measured && measured <= part->range.high);
}

static int check_figures(const record *self, const char *architecture) {
  gm_model *model = NULL;
  const gm_model_config config = gguf_words_read(&self->words, architecture, &model);
  int wrong = 0;
  for (int i = 0; i < self->figure_count; i++) {
    gm_estimate_settings asked = settings[self->figures[i][0] - '0'];
    gm_memory_estimate out = {.struct_size = sizeof out};
    gm_error err = {.status = GM_OK};
    asked.struct_size = sizeof asked;
    if (!asked.key_type) asked.key_type = asked.value_type = GM_DTYPE_F64;
    if (gm_estimate_memory(NULL, &config, model, &asked, &out, &err)) fail_msg("%s: %s", architecture, err.message);
    const gm_memory_range *range = &out.parts[GM_ESTIMATE_COMPUTE].range;
    uint64_t bytes = range->bytes, measured = strtoull(self->figures[i] + 2, NULL, 10);
    const bool inside = range->low <= measured && measured <= range->high;
    if (self->figures[i][1] == '~' ? inside && out.parts[GM_ESTIMATE_COMPUTE].standing != GM_STANDING_UNKNOWN
                                   : bytes == measured && is_right_from_keys(&config, &asked, measured))
      continue;
    print_message("%s, setting %c: %llu, measured %llu\n", architecture, self->figures[i][0], (unsigned long long)bytes,
                  (unsigned long long)measured);
    wrong++;
  }
  gm_model_close(model);
  return wrong;
}

static int check_line(const char *base, const char *line) {
  record self = {.figure_count = 0};
  char *architecture = NULL, *rest = NULL;
  snprintf(self.text[0], LINE, "%s", base);
  snprintf(self.text[1], LINE, "%s", line);
  for (int part = 0; part < 2; part++) {
    architecture = strtok_r(self.text[part], " \n", &rest);
    for (char *word = strtok_r(NULL, " \n", &rest); word; word = strtok_r(NULL, " \n", &rest)) take_word(&self, word);
  }
  assert_true(self.figure_count > 0);
  return check_figures(&self, architecture);
}

static void all_that_is_recorded(void **state) {
  (void)state;
  char base[LINE], line[LINE];
  int wrong = 0, lines = 0;
  FILE *file = fopen(GM_TEST_DATA "/fit-buffers.txt", "r");
  assert_non_null(file);
  assert_non_null(fgets(base, sizeof base, file));
  for (; fgets(line, sizeof line, file); lines++) wrong += check_line(base, line);
  fclose(file);
  assert_true(lines > 90);
  assert_int_equal(wrong, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(all_that_is_recorded),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

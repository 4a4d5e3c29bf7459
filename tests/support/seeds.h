/* The fuzzers' seeds of model files. Needs cmocka.h included before. */
#ifndef GM_TESTS_SUPPORT_SEEDS_H
#define GM_TESTS_SUPPORT_SEEDS_H

#include <stdio.h>
#include <string.h>

#include "core/base/input_file.h"
#include "gm/model.h"
#include "test_data.h"

typedef struct seeds {
  const char *folder;
  int count;
} seeds;

/* Their names say what must become of them. */
static inline bool seeds_check_one(void *user, const char *name) {
  seeds *self = user;
  char path[512];
  gm_model *model = NULL;
  snprintf(path, sizeof path, "%s/%s", self->folder, name);
  if (name[0] == '.') return true;
  const gm_status status = gm_model_open(NULL, path, &model, NULL);
  if ((status == GM_OK) != (strncmp(name, "good_", 5) == 0)) fail_msg("%s: %s", name, gm_status_name(status));
  gm_model_close(model);
  self->count++;
  return true;
}

/* Opens all seeds of a folder of tests/fuzz/corpus, which are more than `least`. */
static inline void seeds_check(const char *corpus, int least) {
  char folder[256];
  snprintf(folder, sizeof folder, GM_TEST_DATA "/../fuzz/corpus/%s", corpus);
  seeds self = {.folder = folder};
  assert_int_equal(gm__input_folder_each(folder, seeds_check_one, &self, NULL), GM_OK);
  assert_true(self.count > least);
}

#endif

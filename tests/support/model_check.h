/* The fate of a path that is opened as a model. Needs cmocka.h included before. */
#ifndef GM_TESTS_SUPPORT_MODEL_CHECK_H
#define GM_TESTS_SUPPORT_MODEL_CHECK_H

#include <string.h>

#include "gm/model.h"

static inline void check_opens(const char *path, uint64_t tensors, uint32_t shards) {
  gm_model *model = NULL;
  gm_error err;
  if (gm_model_open(NULL, path, &model, &err) != GM_OK) fail_msg("%s: %s", path, err.message);
  assert_int_equal(gm_model_tensor_count(model), tensors);
  assert_int_equal(gm_model_shard_count(model), shards);
  gm_model_close(model);
}

/* `words` are in the message. */
static inline void check_refused(const char *path, gm_status wanted, const char *words) {
  gm_model *model = NULL;
  gm_error err = {0};
  gm_status status = gm_model_open(NULL, path, &model, &err);
  if (status != wanted || !strstr(err.message, words)) {
    fail_msg("%s: %s \"%s\", not %s \"%s\"", path, gm_status_name(status), err.message, gm_status_name(wanted), words);
  }
  assert_null(model);
}

#endif

/* Invariants: parts are looked for beside the one that was named, under its name with another number, and nowhere else.
 * A model is accepted only when each part states the place that its name says, and all state the same counts. */
#include "core/model/model_split.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/base/error.h"
#include "core/model/gguf_values.h"

enum { SPLIT_DIGITS = 5, SPLIT_TAIL = 1 + SPLIT_DIGITS + 4 + SPLIT_DIGITS }; /* -00001-of-00005 */

/* ---- names ---- */

static bool split_digits(const char *text, uint32_t *out) {
  uint32_t value = 0;
  for (int i = 0; i < SPLIT_DIGITS; i++) {
    if (text[i] < '0' || text[i] > '9') return false;
    value = value * 10 + (uint32_t)(text[i] - '0');
  }
  *out = value;
  return true;
}

bool gm__split_name_parse(const char *name, const char *extension, gm__split_name *out) {
  const size_t length = strlen(name), tail_length = SPLIT_TAIL + strlen(extension);
  if (length <= tail_length) return false;
  const char *tail = name + (length - tail_length);
  gm__split_name split = {.stem = length - tail_length};
  bool good = tail[0] == '-' && split_digits(tail + 1, &split.number) && memcmp(tail + 6, "-of-", 4) == 0 &&
              split_digits(tail + 10, &split.count) && strcmp(tail + SPLIT_TAIL, extension) == 0;
  if (!good || split.number == 0 || split.number > split.count) return false;
  *out = split;
  return true;
}

static gm_status split_set_path(gm_model *model, const char *first, const gm__split_name *split, uint32_t number,
                                gm_error *err) {
  char tail[64];
  gm__shard *shard = &model->shards[number];
  snprintf(tail, sizeof tail, "-%05" PRIu32 "-of-%05" PRIu32 ".gguf", number + 1, split->count);
  return gm__model_join(&model->services, first, split->stem, tail, &shard->path, &shard->path_bytes, err);
}

/* ---- what a part states ---- */

/* 0 when it does not state it. */
static gm_status split_number(const gm__shard *shard, const char *key, uint64_t *out, gm_error *err) {
  const gm__value *value = gm__contents_find_value(&shard->contents, key);
  *out = 0;
  if (!value || (value->type != GM__GGUF_ARRAY && gm__value_u64(&shard->contents, value, 0, out))) return GM_OK;
  return gm__model_fail(err, GM_ERR_FORMAT, shard->path, value->key.at, "%s is no number that is not negative", key);
}

/* Check that `key` of the shard says `expected`. */
static gm_status split_check(const gm__shard *shard, const char *key, uint64_t expected, gm_error *err) {
  uint64_t stated = 0;
  gm_status status = split_number(shard, key, &stated, err);
  if (status != GM_OK || stated == expected) return status;
  return gm__model_fail(err, GM_ERR_FORMAT, shard->path, 0, "%s is %llu, not %llu as the other parts and its name say",
                        key, (unsigned long long)stated, (unsigned long long)expected);
}

static gm_status split_check_shard(const gm_model *model, uint32_t number, uint64_t tensors, gm_error *err) {
  const gm__shard *shard = &model->shards[number];
  gm_status status = split_check(shard, "split.no", number, err);
  if (status == GM_OK) status = split_check(shard, "split.count", model->shard_count, err);
  return status == GM_OK ? split_check(shard, "split.tensors.count", tensors, err) : status;
}

static gm_status split_check_all(const gm_model *model, uint64_t tensors, gm_error *err) {
  uint64_t found = 0;
  gm_status status = GM_OK;
  for (uint32_t i = 0; i < model->shard_count && status == GM_OK; i++) {
    status = split_check_shard(model, i, tensors, err);
    found += model->shards[i].contents.tensor_count;
  }
  if (status != GM_OK || found == tensors) return status;
  return gm__model_fail(err, GM_ERR_FORMAT, model->shards[0].path, 0,
                        "split.tensors.count is %llu, the %u parts have %llu", (unsigned long long)tensors,
                        model->shard_count, (unsigned long long)found);
}

/* ---- the other parts ---- */

static gm_status split_open_others(gm_model *model, const gm__split_name *split, gm_error *err) {
  uint32_t first = split->number - 1;
  for (uint32_t i = 0; i < model->shard_count; i++) {
    if (i == first) continue;
    gm_status status = split_set_path(model, model->shards[first].path, split, i, err);
    if (status == GM_OK) status = gm__model_read_shard(model, i, err);
    if (status != GM_OK) return status;
  }
  return GM_OK;
}

gm_status gm__model_open_split(gm_model *model, gm_error *err) {
  const gm__shard *only = &model->shards[0];
  gm__split_name split = {0};
  uint64_t count = 0, tensors = 0;
  gm_status status = split_number(only, "split.count", &count, err);
  if (status == GM_OK) status = split_number(only, "split.tensors.count", &tensors, err);
  if (status != GM_OK || count <= 1) return status;
  if (!gm__split_name_parse(only->path, ".gguf", &split) || split.count != count) {
    return gm__model_fail(err, GM_ERR_FORMAT, only->path, 0,
                          "one of %llu parts, and its name does not end in -NNNNN-of-%05llu.gguf",
                          (unsigned long long)count, (unsigned long long)count);
  }
  status = gm__model_spread(model, split.number - 1, count, err);
  if (status == GM_OK) status = split_open_others(model, &split, err);
  return status == GM_OK ? split_check_all(model, tensors, err) : status;
}

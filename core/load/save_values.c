#include "core/load/save_values.h"

#include <string.h>

#include "core/model/gguf_values.h"
#include "core/model/gguf_write.h"
#include "core/model/model_memory.h"

static uint64_t values_of(const gm__contents *contents) {
  return contents->value_count ? contents->value_count : contents->metadata_count;
}

/* Value number `index` of a file. Strings are the same in both formats. */
static gm__file_value value_at(const gm__contents *contents, uint64_t index) {
  if (!contents->value_count) {
    return (gm__file_value){.key = contents->metadata[index].key, .text = contents->metadata[index].value};
  }
  const gm__value *value = &contents->values[index];
  if (value->type == GM__GGUF_STRING) {
    return (gm__file_value){.key = value->key, .text = gm__value_string(contents, value, 0)};
  }
  return (gm__file_value){.key = value->key, .contents = contents, .value = value};
}

static int value_compare(const void *items, uint32_t a, uint32_t b) {
  const gm__file_value *values = items;
  return gm__json_text_compare(&values[a].key, &values[b].key);
}

/* Keeps the first value of each key, and of these what the format holds. `by_key` keeps equal keys in their order. */
static void values_keep(gm__save_values *list, const gm__save_format *format, const uint32_t *by_key) {
  const uint64_t all = list->count;
  for (uint64_t i = all; i-- > 1;) {
    if (value_compare(list->values, by_key[i - 1], by_key[i]) == 0) list->values[by_key[i]].key.text = NULL;
  }
  list->count = 0;
  for (uint64_t i = 0; i < all; i++) {
    const gm__file_value *value = &list->values[i];
    if (!value->key.text || gm__gguf_is_of_file(&value->key)) continue;
    if (format->holds(value)) {
      list->values[list->count++] = *value;
    } else {
      list->left_out++;
    }
  }
}

gm_status gm__save_values_make(gm__save_values *list, const gm_model *model, const gm__save_format *format,
                               gm_error *err) {
  void *values = NULL;
  uint32_t *by_key = NULL;
  *list = (gm__save_values){.capacity = 0};
  for (uint32_t i = 0; i < model->shard_count; i++) list->capacity += values_of(&model->shards[i].contents);
  gm_status status = gm__model_alloc(&model->services, list->capacity, sizeof *list->values, &values, err);
  list->values = values;
  for (uint32_t i = 0; i < model->shard_count && !status; i++) {
    const gm__contents *contents = &model->shards[i].contents;
    for (uint64_t k = 0; k < values_of(contents); k++) list->values[list->count++] = value_at(contents, k);
  }
  if (!status) {
    status = gm__model_order(&model->services, list->values, (uint32_t)list->count, value_compare, &by_key, err);
  }
  if (!status) values_keep(list, format, by_key);
  gm__model_release(&model->services, by_key, list->capacity, sizeof *by_key);
  return status;
}

void gm__save_values_end(gm__save_values *list, const gm_services *services) {
  gm__model_release(services, list->values, list->capacity, sizeof *list->values);
  list->values = NULL;
}

/* Invariants: every array has as much room as its capacity says, and what is freed is what was asked for. */
#include "core/model/contents.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/base/error.h"
#include "core/model/model_memory.h"

enum { CONTENTS_PATH_SHOWN = 180 }; /* leaves more than half of gm_error.message for the reason */

/* The brackets keep the macro of the same name, which analysers see, out of the definition. */
gm_status(gm__model_fail)(gm_error *err, gm_status status, const char *path, uint64_t at, const char *format, ...) {
  char reason[sizeof err->message];
  va_list args;
  va_start(args, format);
  vsnprintf(reason, sizeof reason, format, args);
  va_end(args);
  size_t length = strlen(path);
  const char *shown = length > CONTENTS_PATH_SHOWN ? path + (length - CONTENTS_PATH_SHOWN) : path;
  return gm__fail(err, status, "gm_model_open", "%s: byte %llu: %s", shown, (unsigned long long)at, reason);
}

gm_status gm__model_name_call(gm_status status, const char *op, gm_error *err) {
  bool renames = status != GM_OK && err && strcmp(err->op, "gm_model_open") == 0;
  if (renames) snprintf(err->op, sizeof err->op, "%s", op);
  return status;
}

int gm__json_text_compare(const gm__json_text *a, const gm__json_text *b) {
  uint64_t common = a->length < b->length ? a->length : b->length;
  int difference = memcmp(a->text, b->text, common);
  if (difference != 0) return difference;
  return (a->length > b->length) - (a->length < b->length);
}

bool gm__shape_elements(const uint64_t *dims, uint32_t rank, uint64_t *out) {
  uint64_t elements = 1;
  *out = 0;
  for (uint32_t i = 0; i < rank; i++) {
    if (dims[i] == 0) return true;
  }
  for (uint32_t i = 0; i < rank; i++) {
    if (elements > UINT64_MAX / dims[i]) return false;
    elements *= dims[i];
  }
  *out = elements;
  return true;
}

void gm__contents_free(const gm_services *services, gm__contents *contents) {
  gm__model_release(services, contents->header, contents->header_bytes, 1);
  gm__model_release(services, contents->tensors, contents->tensor_capacity, sizeof(gm__tensor));
  gm__model_release(services, contents->by_place, contents->tensor_count, sizeof(uint32_t));
  gm__model_release(services, contents->dims, contents->dim_capacity, sizeof(uint64_t));
  gm__model_release(services, contents->metadata, contents->metadata_capacity, sizeof(gm__metadata));
  gm__model_release(services, contents->values, contents->value_capacity, sizeof(gm__value));
  gm__model_release(services, contents->by_key, contents->value_count, sizeof(uint32_t));
  gm__model_release(services, contents->strings, contents->string_capacity, sizeof(gm__header_string));
  memset(contents, 0, sizeof *contents);
}

gm_status gm__contents_finish(const gm_services *services, gm_status status, gm__contents *contents,
                              gm__contents *out) {
  if (status == GM_OK) {
    *out = *contents;
  } else {
    gm__contents_free(services, contents);
    memset(out, 0, sizeof *out);
  }
  return status;
}

gm_status gm__contents_add_tensor(const gm_services *services, gm__contents *contents, const gm__tensor *tensor,
                                  const uint64_t *dims, gm_error *err) {
  uint64_t shape_at = contents->dim_count;
  for (uint32_t i = 0; i < tensor->rank; i++) {
    gm_status status =
        gm__model_grow(services, &contents->dims, &contents->dim_capacity, contents->dim_count, sizeof(uint64_t), err);
    if (status != GM_OK) return status;
    contents->dims[contents->dim_count++] = dims[i];
  }
  gm_status status = gm__model_grow(services, &contents->tensors, &contents->tensor_capacity, contents->tensor_count,
                                    sizeof(gm__tensor), err);
  if (status != GM_OK) return status;
  gm__tensor *kept = &contents->tensors[contents->tensor_count++];
  *kept = *tensor;
  kept->shape_at = shape_at;
  return GM_OK;
}

gm_status gm__contents_add_metadata(const gm_services *services, gm__contents *contents, const gm__metadata *pair,
                                    gm_error *err) {
  gm_status status = gm__model_grow(services, &contents->metadata, &contents->metadata_capacity,
                                    contents->metadata_count, sizeof(gm__metadata), err);
  if (status == GM_OK) contents->metadata[contents->metadata_count++] = *pair;
  return status;
}

static int contents_compare_place(const void *items, uint32_t a, uint32_t b) {
  const gm__tensor *left = (const gm__tensor *)items + a, *right = (const gm__tensor *)items + b;
  if (left->begin != right->begin) return left->begin < right->begin ? -1 : 1;
  return (left->bytes > right->bytes) - (left->bytes < right->bytes);
}

gm_status gm__contents_order(const gm_services *services, gm__contents *contents, gm_error *err) {
  return gm__model_order(services, contents->tensors, (uint32_t)contents->tensor_count, contents_compare_place,
                         &contents->by_place, err);
}

gm_status gm__contents_only(const gm_services *services, gm__contents *contents, const gm__tensor *tensor,
                            const uint64_t *dims, gm_error *err) {
  const uint64_t length = tensor->name.length;
  void *name = NULL;
  gm_status status = gm__model_alloc(services, length + 1, 1, &name, err);
  if (status != GM_OK) return status;
  memcpy(name, tensor->name.text, length);
  contents->header = name;
  contents->header_bytes = length + 1;
  contents->data_at = tensor->begin;
  contents->data_bytes = contents->tensor_bytes = tensor->bytes;
  gm__tensor only = *tensor;
  only.name = (gm__json_text){.text = contents->header, .length = length};
  only.begin = 0;
  status = gm__contents_add_tensor(services, contents, &only, dims, err);
  return status == GM_OK ? gm__contents_order(services, contents, err) : status;
}

/* Invariants. A header is allocated only after its length was held against the size of the file that fstat gave.
 * Once a header is accepted, the tensors cover [0, data_bytes) exactly: in the order of by_place each begins where
 * the one before ends. Names of tensors are compared over all shards of a model, not here. */
#include "core/model/safetensors.h"

#include <string.h>

#include "core/base/error.h"
#include "core/base/little.h"
#include "core/model/model_memory.h"

/* ---- the length in front ---- */

static gm_status safetensors_check_length(uint64_t header, uint64_t file, const char *path, gm_error *err) {
  if (header > GM__SAFETENSORS_HEADER_MAX) {
    return gm__model_fail(err, GM_ERR_FORMAT, path, 0,
                          "neither GGUF nor safetensors: a header of %llu bytes, more than the format's limit of %d",
                          (unsigned long long)header, (int)GM__SAFETENSORS_HEADER_MAX);
  }
  if (header > file - GM__SAFETENSORS_LENGTH_BYTES) {
    return gm__model_fail(err, GM_ERR_FORMAT, path, 0, "a header of %llu bytes in a file of %llu: it is cut off",
                          (unsigned long long)header, (unsigned long long)file);
  }
  if (header < 2) return gm__model_fail(err, GM_ERR_FORMAT, path, 0, "a header needs 2 bytes or more");
  return GM_OK;
}

static gm_status safetensors_too_short(uint64_t length, const char *path, gm_error *err) {
  return gm__model_fail(err, GM_ERR_FORMAT, path, length,
                        "neither GGUF nor safetensors: ends inside the 8 bytes of the header's length");
}

/* ---- cover without hole or overlap ---- */

static gm_status safetensors_fail_cover(const gm__tensor *tensor, const char *path, uint64_t expected, gm_error *err) {
  return gm__model_fail(err, GM_ERR_FORMAT, path, GM__SAFETENSORS_LENGTH_BYTES + tensor->name.at,
                        "tensor \"%.80s\" begins at %llu of the data, %s at %llu", tensor->name.text,
                        (unsigned long long)tensor->begin,
                        tensor->begin < expected ? "inside the tensor that ends" : "behind a hole that begins",
                        (unsigned long long)expected);
}

static gm_status safetensors_check_cover(gm__contents *contents, const char *path, gm_error *err) {
  uint64_t expected = 0;
  for (uint64_t i = 0; i < contents->tensor_count; i++) {
    const gm__tensor *tensor = &contents->tensors[contents->by_place[i]];
    if (tensor->begin != expected) return safetensors_fail_cover(tensor, path, expected, err);
    expected += tensor->bytes;
  }
  contents->tensor_bytes = expected;
  if (contents->header_only) contents->data_bytes = expected;
  if (expected == contents->data_bytes) return GM_OK;
  return gm__model_fail(err, GM_ERR_FORMAT, path, contents->data_at + expected,
                        "%llu bytes behind the last tensor belong to none",
                        (unsigned long long)(contents->data_bytes - expected));
}

/* The header's text is there; everything from it. */
static gm_status safetensors_build(const gm_services *services, const char *path, gm__contents *contents,
                                   gm_error *err) {
  if (contents->header[0] != '{') {
    return gm__model_fail(err, GM_ERR_FORMAT, path, GM__SAFETENSORS_LENGTH_BYTES, "the header must begin with '{'");
  }
  gm_status status = gm__safetensors_header_parse(services, path, contents, err);
  if (status == GM_OK) status = gm__contents_order(services, contents, err);
  return status == GM_OK ? safetensors_check_cover(contents, path, err) : status;
}

/* ---- from a file and from memory ---- */

static gm_status safetensors_make_room(const gm_services *services, uint64_t header, uint64_t file, const char *path,
                                       gm__contents *out, gm_error *err) {
  void *text = NULL;
  gm_status status = safetensors_check_length(header, file, path, err);
  if (status == GM_OK) status = gm__model_alloc(services, header, 1, &text, err);
  if (status != GM_OK) return status;
  out->header = text;
  out->header_bytes = header;
  out->header_at = GM__SAFETENSORS_LENGTH_BYTES;
  out->data_at = out->header_at + header;
  out->data_bytes = (out->header_only ? UINT64_MAX : file) - out->data_at;
  return GM_OK;
}

gm_status gm__safetensors_read(const gm_services *services, const gm__input_file *file, const char *path,
                               bool header_only, gm__contents *out, gm_error *err) {
  unsigned char length[GM__SAFETENSORS_LENGTH_BYTES];
  gm__contents contents = {.header_only = header_only};
  gm_status status;
  if (file->bytes < sizeof length) {
    status = safetensors_too_short(file->bytes, path, err);
  } else {
    status = gm__input_file_read_at(file, path, 0, length, sizeof length, err);
  }
  if (status == GM_OK) {
    status = safetensors_make_room(services, gm__le_get(length, sizeof length), file->bytes, path, &contents, err);
  }
  if (status == GM_OK) {
    status = gm__input_file_read_at(file, path, sizeof length, contents.header, contents.header_bytes, err);
  }
  if (status == GM_OK) status = safetensors_build(services, path, &contents, err);
  return gm__contents_finish(services, status, &contents, out);
}

gm_status gm__safetensors_parse(const gm_services *services, const void *bytes, uint64_t length, const char *path,
                                gm__contents *out, gm_error *err) {
  gm__contents contents = {0};
  gm_status status = length < GM__SAFETENSORS_LENGTH_BYTES
                         ? safetensors_too_short(length, path, err)
                         : safetensors_make_room(services, gm__le_get(bytes, GM__SAFETENSORS_LENGTH_BYTES), length,
                                                 path, &contents, err);
  if (contents.header) {
    memcpy(contents.header, (const char *)bytes + GM__SAFETENSORS_LENGTH_BYTES, contents.header_bytes);
    status = safetensors_build(services, path, &contents, err);
  }
  return gm__contents_finish(services, status, &contents, out);
}

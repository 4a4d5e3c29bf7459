/* A file without a header, which the caller describes. Invariant: the tensor lies within the file. */
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/cancel.h"
#include "core/base/error.h"
#include "core/base/sized.h"
#include "core/model/model.h"

static const char raw_op[] = "gm_model_open_raw";

static gm_status raw_measure(const gm_tensor_info *tensor, uint64_t *out, gm_error *err) {
  uint64_t elements = 0;
  if (tensor->rank > GM_TENSOR_MAX_RANK) {
    return gm__bad_argument(err, raw_op, "`rank` is %u, the most are %d", tensor->rank, (int)GM_TENSOR_MAX_RANK);
  }
  if (!gm__shape_elements(tensor->shape, tensor->rank, &elements) || gm_dtype_bytes(tensor->dtype, elements, out)) {
    return gm__bad_argument(err, raw_op,
                            "`dtype` and `shape` give no number of bytes: gm has no such type, its blocks "
                            "do not fit, or they are 2^64 bytes or more");
  }
  if (tensor->bytes == 0 || tensor->bytes == *out) return GM_OK;
  return gm__bad_argument(err, raw_op, "`bytes` is %llu, `dtype` and `shape` are %llu",
                          (unsigned long long)tensor->bytes, (unsigned long long)*out);
}

static gm_status raw_fill(gm_model *model, const char *path, const gm_tensor_info *tensor, gm_error *err) {
  uint64_t bytes = 0;
  gm_status status = raw_measure(tensor, &bytes, err);
  if (status == GM_OK) status = gm__model_add_shards(model, 1, err);
  if (status != GM_OK) return status;
  gm__shard *shard = &model->shards[0];
  status = gm__model_join(&model->services, path, strlen(path), "", &shard->path, &shard->path_bytes, err);
  if (status == GM_OK) status = gm__input_file_open(path, &shard->file, err);
  if (status != GM_OK) return status;
  gm__input_file_close(&shard->file);
  const uint64_t file = shard->file.bytes;
  if (tensor->file_offset > file || file - tensor->file_offset < bytes) {
    return gm__model_fail(err, GM_ERR_FORMAT, path, file, "it ends before the %llu bytes at %llu",
                          (unsigned long long)bytes, (unsigned long long)tensor->file_offset);
  }
  const gm__tensor only = {.name = {.text = tensor->name, .length = strlen(tensor->name)},
                           .begin = tensor->file_offset,
                           .bytes = bytes,
                           .rank = tensor->rank,
                           .dtype = tensor->dtype};
  status = gm__contents_only(&model->services, &shard->contents, &only, tensor->shape, err);
  return status == GM_OK ? gm__model_index_tensors(model, err) : status;
}

gm_status gm_model_open_raw(const gm_services *services, const char *path, const gm_tensor_info *tensor, gm_model **out,
                            gm_error *err) {
  GM__UNCANCELLED();
  gm_tensor_info own;
  gm_model *model = NULL;
  if (!path || !path[0]) return gm__bad_argument(err, raw_op, "`path` is %s", path ? "empty" : "NULL");
  if (!out) return gm__bad_argument(err, raw_op, "`out` is NULL");
  gm_status status = gm__sized_in(&own, sizeof own, tensor, raw_op, "tensor", err);
  if (status == GM_OK && (!own.name || !own.name[0])) {
    status = gm__bad_argument(err, raw_op, "`name` is %s", own.name ? "empty" : "NULL");
  }
  if (status == GM_OK) status = gm__services_check(services, err);
  if (status == GM_OK) status = gm__model_create(services, &model, err);
  if (status == GM_OK) status = raw_fill(model, path, &own, err);
  if (status == GM_OK) {
    *out = model;
  } else {
    gm_model_close(model);
  }
  return gm__model_name_call(status, raw_op, err);
}

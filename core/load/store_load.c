/* From files into a store. Invariant: a key changes only after all bytes of its tensor are in host memory. */
#include <string.h>

#include "core/algo/key_path.h"
#include "core/base/cancel.h"
#include "core/base/error.h"
#include "core/base/saturate.h"
#include "core/load/load_files.h"
#include "core/model/contents.h"
#include "core/model/model_memory.h"
#include "core/store/look.h"
#include "gm/store_file.h"

static const char road_op[] = "gm_store_load";

typedef struct road_in {
  gm_store *store;
  const gm_model *model;
  gm__load_files files;
  void *buffer; /* for the largest tensor; made when first needed */
  uint64_t buffer_bytes;
  size_t prefix_bytes; /* with the slash behind it */
  char key[GM_STORE_KEY_MOST + 1];
} road_in;

/* Puts the key of a tensor behind the prefix. False: together they are no key in its normal form. */
static bool road_in_name(road_in *road, const gm__tensor *tensor) {
  char normal[GM_STORE_KEY_MOST + 1];
  const size_t bytes = road->prefix_bytes + (size_t)tensor->name.length;
  size_t normal_bytes = 0;
  if (tensor->name.length > GM_STORE_KEY_MOST || bytes > GM_STORE_KEY_MOST) return false;
  memcpy(road->key + road->prefix_bytes, tensor->name.text, (size_t)tensor->name.length);
  road->key[bytes] = '\0';
  const gm__key_path_fault fault = gm__key_path_normalise(road->key, bytes, normal, &normal_bytes);
  return !fault && normal_bytes == bytes && memcmp(normal, road->key, bytes) == 0;
}

static gm_tensor_desc road_in_desc(const gm_model *model, const gm__tensor *tensor) {
  const gm__contents *contents = &model->shards[tensor->shard].contents;
  gm_tensor_desc desc = {.struct_size = sizeof desc, .dtype = tensor->dtype, .rank = tensor->rank};
  memcpy(desc.shape, contents->dims + tensor->shape_at, tensor->rank * sizeof *desc.shape);
  return desc;
}

static gm_status road_in_check(road_in *road, const gm__tensor *tensor, gm_error *err) {
  const gm_tensor_desc desc = road_in_desc(road->model, tensor);
  uint64_t bytes = 0;
  if (!road_in_name(road, tensor)) {
    return gm__fail(err, GM_ERR_NOT_SUPPORTED, road_op, "with the prefix its name is no key in its normal form");
  }
  gm_error inner = {0};
  if (!gm_tensor_bytes(&desc, &bytes, &inner)) return GM_OK;
  return gm__fail(err, GM_ERR_NOT_SUPPORTED, road_op, "it is no value of a store: %s", inner.message);
}

/* The bytes of a tensor that has some, in the buffer. */
static gm_status road_in_read(road_in *road, const gm__tensor *tensor, gm_error *err) {
  gm_file *file = NULL;
  gm_status status = gm__load_files_get(&road->files, tensor->shard, &file, err);
  if (!status && !road->buffer) {
    status = gm__model_alloc(&road->model->services, road->buffer_bytes, 1, &road->buffer, err);
  }
  if (status) return status;
  return gm_file_read(file, gm__model_file_offset(road->model, tensor), road->buffer, tensor->bytes, err);
}

static gm_status road_in_put(road_in *road, const gm__tensor *tensor, gm_error *err) {
  const gm_tensor_desc desc = road_in_desc(road->model, tensor);
  const gm_status status = tensor->bytes ? road_in_read(road, tensor, err) : GM_OK;
  if (status) return status;
  (void)road_in_name(road, tensor); /* checked */
  return gm_store_put_tensor(road->store, road->key, &desc, tensor->bytes ? road->buffer : NULL, err);
}

static gm_status road_in_each(road_in *road, gm_status (*step)(road_in *, const gm__tensor *, gm_error *),
                              gm_error *err) {
  for (uint64_t i = 0; i < road->model->tensor_count; i++) {
    gm_error inner = {0};
    const gm__tensor *tensor = road->model->tensors[i];
    if (step(road, tensor, &inner)) return gm__load_fail(road->model, tensor, &inner, err);
  }
  return GM_OK;
}

static uint64_t road_in_largest(const gm_model *model) {
  uint64_t largest = 0;
  for (uint64_t i = 0; i < model->tensor_count; i++) {
    largest = gm__max(largest, model->tensors[i]->bytes);
  }
  return largest;
}

gm_status gm_store_load(gm_store *store, const char *prefix, const gm_model *model, gm_error *err) {
  GM__UNCANCELLED();
  road_in road = {.store = store, .model = model};
  gm_status status = gm__store_look_prefix(store, prefix, road.key, road_op, err);
  if (status) return status;
  if (!model) return gm__bad_argument(err, road_op, "`model` is NULL");
  if (model->header_only) return gm__bad_argument(err, road_op, "`model` is from gm_model_open_header: it has no data");
  road.prefix_bytes = strlen(road.key);
  if (road.prefix_bytes == GM_STORE_KEY_MOST)
    return gm__bad_argument(err, road_op, "`prefix` leaves no room for names");
  if (road.prefix_bytes) road.key[road.prefix_bytes++] = '/';
  road.buffer_bytes = road_in_largest(model);
  status = gm__load_files_make(&road.files, model, GM_WAY_AUTO, err);
  if (!status) status = road_in_each(&road, road_in_check, err);
  if (!status) status = road_in_each(&road, road_in_put, err);
  gm__model_release(&model->services, road.buffer, road.buffer_bytes, 1);
  gm__load_files_end(&road.files);
  return status;
}

gm_status gm_store_load_file(gm_store *store, const char *prefix, const char *path, gm_error *err) {
  GM__UNCANCELLED();
  char normal[GM_STORE_KEY_MOST + 1];
  gm_model *model = NULL;
  gm_status status = gm__store_look_prefix(store, prefix, normal, "gm_store_load_file", err);
  if (!status) status = gm_model_open(gm__store_look_services(store), path, &model, err);
  if (!status) status = gm_store_load(store, prefix, model, err);
  gm_model_close(model);
  return status;
}

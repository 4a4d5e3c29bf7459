/* Invariants of an open model: tensor numbers are dense, ordered by shard and then by place in the file. by_name is
 * strictly ascending, so no name is there twice. Every text that an answer points to is owned by a shard's header. */
#include "core/model/model.h"

#include <string.h>

#include "core/base/alloc.h"
#include "core/base/cancel.h"
#include "core/base/error.h"
#include "core/base/sized.h"
#include "core/model/gguf.h"
#include "core/model/model_memory.h"
#include "core/model/npz.h"
#include "core/model/safetensors.h"

enum { MODEL_FIRST_BYTES = 32 };

gm_status gm__model_create(const gm_services *services, gm_model **out, gm_error *err) {
  void *memory = NULL;
  gm_status status = gm__model_alloc(services, 1, sizeof(gm_model), &memory, err);
  if (status != GM_OK) return status;
  gm_model *model = memory;
  model->services = services ? *services : *gm__default_services();
  *out = model;
  return GM_OK;
}

gm_status gm__model_add_shards(gm_model *model, uint64_t shard_count, gm_error *err) {
  void *shards = NULL;
  gm_status status = gm__model_alloc(&model->services, shard_count, sizeof(gm__shard), &shards, err);
  if (status != GM_OK) return status;
  model->shards = shards;
  model->shard_count = (uint32_t)shard_count;
  for (uint32_t i = 0; i < model->shard_count; i++) model->shards[i].file.fd = -1;
  return GM_OK;
}

gm_status gm__model_spread(gm_model *model, uint32_t number, uint64_t shard_count, gm_error *err) {
  gm__shard *only = model->shards;
  gm_status status = gm__model_add_shards(model, shard_count, err);
  if (status != GM_OK) return status;
  model->shards[number] = *only;
  gm__model_release(&model->services, only, 1, sizeof *only);
  return GM_OK;
}

/* Names a file that is often found in place of a model, by its first bytes. NULL: none of these. */
static const char *model_is_no_model(const unsigned char *first, size_t length) {
  static const struct {
    const char *begin, *what;
  } known[] = {{"version https://git-lfs", "a pointer of Git LFS: fetch the file itself (git lfs pull)"},
               {"<!DOCTYPE", "a web page, not the file that it links to"},
               {"<!doctype", "a web page, not the file that it links to"},
               {"<html", "a web page, not the file that it links to"},
               {"<?xml", "an XML answer of a server, not the file"},
               {"{\"error\"", "an error message of a server, not the file"},
               {"\200\002", "a pickle, which gm does not read. Save it as safetensors"},
               {"\200\003", "a pickle, which gm does not read. Save it as safetensors"},
               {"\200\004", "a pickle, which gm does not read. Save it as safetensors"},
               {"\200\005", "a pickle, which gm does not read. Save it as safetensors"},
               {"\211HDF", "an HDF5 file, which gm does not read"},
               {"\037\213", "compressed by gzip: unpack it first"},
               {"\050\265\057\375", "compressed by zstd: unpack it first"},
               {"lmgg", "a model in the format of whisper.cpp (ggml), not GGUF: gm reads its weights as safetensors"},
               {"fmgg", "a model in a format that GGUF replaced (ggmf): convert it"},
               {"tjgg", "a model in a format that GGUF replaced (ggjt): convert it"}};
  for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
    const size_t bytes = strlen(known[i].begin);
    if (bytes <= length && memcmp(first, known[i].begin, bytes) == 0) return known[i].what;
  }
  return NULL;
}

/* An array of NumPy, or an archive of them. False: the file begins as neither. */
static bool model_read_arrays(const gm__npy_source *source, const unsigned char *first, bool header_only,
                              gm__contents *out, gm_status *out_status, gm_error *err) {
  const bool one = gm__npy_is(first), archive = gm__npz_is(first);
  if (one) *out_status = gm__npy_read(source, header_only, out, err);
  if (archive) *out_status = gm__npz_read(source, out, err);
  return one || archive;
}

/* A file that ends before four bytes is left to the reader that says so. */
static gm_status model_read_contents(gm_model *model, gm__shard *shard, gm_error *err) {
  unsigned char first[MODEL_FIRST_BYTES] = {0};
  const uint64_t length = shard->file.bytes < sizeof first ? shard->file.bytes : sizeof first;
  if (length >= GM__GGUF_MAGIC_BYTES) {
    gm_status status = gm__input_file_read_at(&shard->file, shard->path, 0, first, length, err);
    const char *what = status ? NULL : model_is_no_model(first, length);
    if (what) return gm__model_fail(err, GM_ERR_FORMAT, shard->path, 0, "this is %s", what);
    if (status != GM_OK) return status;
  }
  const gm__npy_source source = {
      .services = &model->services, .file = &shard->file, .length = shard->file.bytes, .path = shard->path};
  gm_status status = GM_OK;
  if (model_read_arrays(&source, first, model->header_only, &shard->contents, &status, err)) return status;
  if (gm__gguf_is(first)) {
    return gm__gguf_read(&model->services, &shard->file, shard->path, model->header_only, &shard->contents, err);
  }
  return gm__safetensors_read(&model->services, &shard->file, shard->path, model->header_only, &shard->contents, err);
}

gm_status gm__model_read_shard(gm_model *model, uint32_t number, gm_error *err) {
  gm__shard *shard = &model->shards[number];
  gm_status status = gm__input_file_open(shard->path, &shard->file, err);
  if (status != GM_OK) return status;
  status = model_read_contents(model, shard, err);
  gm__input_file_close(&shard->file);
  return status;
}

static void model_free_shard(const gm_services *services, gm__shard *shard) {
  gm__input_file_close(&shard->file);
  gm__model_release(services, shard->path, shard->path_bytes, 1);
  gm__contents_free(services, &shard->contents);
}

void gm_model_close(gm_model *model) {
  GM__UNCANCELLED();
  if (!model) return;
  gm_services services = model->services;
  for (uint32_t i = 0; i < model->shard_count; i++) model_free_shard(&services, &model->shards[i]);
  gm__model_release(&services, model->shards, model->shard_count, sizeof(gm__shard));
  gm__model_release(&services, model->tensors, model->tensor_count, sizeof(gm__tensor *));
  gm__model_release(&services, model->by_name, model->tensor_count, sizeof(uint32_t));
  gm__model_release(&services, model, 1, sizeof *model);
}

gm_status gm__model_join(const gm_services *services, const char *head, uint64_t head_length, const char *tail,
                         char **out, uint64_t *out_bytes, gm_error *err) {
  uint64_t tail_length = strlen(tail), bytes = head_length + tail_length + 1;
  void *joined = NULL;
  gm_status status = gm__model_alloc(services, bytes, 1, &joined, err);
  if (status != GM_OK) return status;
  *out = joined;
  *out_bytes = bytes;
  memcpy(*out, head, head_length);
  memcpy(*out + head_length, tail, tail_length);
  return GM_OK;
}

/* ---- numbering ---- */

static gm_status model_count(gm_model *model, uint32_t *out, gm_error *err) {
  uint64_t count = 0;
  for (uint32_t i = 0; i < model->shard_count; i++) {
    const gm__shard *shard = &model->shards[i];
    count += shard->contents.tensor_count;
    if (count > UINT32_MAX || shard->contents.tensor_bytes > UINT64_MAX - model->bytes) {
      return gm__fail(err, GM_ERR_FORMAT, "gm_model_open",
                      "%.180s: with this shard the model has %llu tensors and "
                      "2^64 bytes or more; one of them is too many",
                      shard->path, (unsigned long long)count);
    }
    model->bytes += shard->contents.tensor_bytes;
  }
  *out = (uint32_t)count;
  return GM_OK;
}

static void model_number(gm_model *model) {
  uint32_t number = 0;
  for (uint32_t i = 0; i < model->shard_count; i++) {
    gm__contents *contents = &model->shards[i].contents;
    for (uint64_t j = 0; j < contents->tensor_count; j++) {
      gm__tensor *tensor = &contents->tensors[contents->by_place[j]];
      tensor->shard = i;
      model->tensors[number++] = tensor;
    }
  }
}

static int model_compare_name(const void *items, uint32_t a, uint32_t b) {
  const gm__tensor *const *tensors = items;
  return gm__json_text_compare(&tensors[a]->name, &tensors[b]->name);
}

static gm_status model_check_names(const gm_model *model, gm_error *err) {
  for (uint32_t i = 1; i < model->tensor_count; i++) {
    const gm__tensor *first = model->tensors[model->by_name[i - 1]], *second = model->tensors[model->by_name[i]];
    if (gm__json_text_compare(&first->name, &second->name) != 0) continue;
    return gm__model_fail(err, GM_ERR_FORMAT, model->shards[second->shard].path,
                          model->shards[second->shard].contents.header_at + second->name.at,
                          "tensor \"%.80s\" is there twice%s", second->name.text,
                          first->shard == second->shard ? "" : ", also in another shard");
  }
  return GM_OK;
}

gm_status gm__model_index_tensors(gm_model *model, gm_error *err) {
  void *tensors = NULL;
  uint32_t count = 0;
  gm_status status = model_count(model, &count, err);
  if (status == GM_OK) status = gm__model_alloc(&model->services, count, sizeof(gm__tensor *), &tensors, err);
  if (status != GM_OK) return status;
  model->tensors = tensors;
  model->tensor_count = count;
  model_number(model);
  status = gm__model_order(&model->services, model->tensors, count, model_compare_name, &model->by_name, err);
  return status == GM_OK ? model_check_names(model, err) : status;
}

/* ---- from memory ---- */

static gm_status model_parse(gm_model *model, const void *bytes, uint64_t length, gm_error *err) {
  gm__shard *shard = &model->shards[0];
  const gm__npy_source source = {.services = &model->services, .bytes = bytes, .length = length, .path = shard->path};
  gm_status status = GM_OK;
  if (length >= GM__NPY_MAGIC_BYTES &&
      model_read_arrays(&source, bytes, model->header_only, &shard->contents, &status, err)) {
    return status;
  }
  if (length >= GM__GGUF_MAGIC_BYTES && gm__gguf_is(bytes)) {
    return gm__gguf_parse(&model->services, bytes, length, shard->path, model->header_only, &shard->contents, err);
  }
  return gm__safetensors_parse(&model->services, bytes, length, shard->path, &shard->contents, err);
}

static gm_status model_fill_memory(gm_model *model, const void *bytes, uint64_t length, const char *name,
                                   gm_error *err) {
  gm_status status = gm__model_add_shards(model, 1, err);
  if (status != GM_OK) return status;
  gm__shard *shard = &model->shards[0];
  status = gm__model_join(&model->services, name, strlen(name), "", &shard->path, &shard->path_bytes, err);
  if (status == GM_OK) status = model_parse(model, bytes, length, err);
  return status == GM_OK ? gm__model_index_tensors(model, err) : status;
}

gm_status gm__model_open_memory(const gm_services *services, const void *bytes, uint64_t length, const char *name,
                                bool header_only, gm_model **out, gm_error *err) {
  gm_model *model = NULL;
  gm_status status = gm__model_create(services, &model, err);
  if (status != GM_OK) return status;
  model->header_only = header_only;
  status = model_fill_memory(model, bytes, length, name, err);
  if (status == GM_OK) {
    *out = model;
  } else {
    gm_model_close(model);
  }
  return status;
}

/* ---- questions ---- */

uint64_t gm_model_tensor_count(const gm_model *model) { return model ? model->tensor_count : 0; }

uint64_t gm_model_tensor_bytes(const gm_model *model) { return model ? model->bytes : 0; }

uint32_t gm_model_shard_count(const gm_model *model) { return model ? model->shard_count : 0; }

const char *gm_model_shard_path(const gm_model *model, uint32_t shard) {
  return shard < gm_model_shard_count(model) ? model->shards[shard].path : NULL;
}

uint64_t gm__model_file_offset(const gm_model *model, const gm__tensor *tensor) {
  return model->shards[tensor->shard].contents.data_at + tensor->begin;
}

static gm_tensor_info model_describe(const gm_model *model, const gm__tensor *tensor) {
  const gm__contents *contents = &model->shards[tensor->shard].contents;
  gm_tensor_info info = {.struct_size = sizeof info,
                         .dtype = tensor->dtype,
                         .rank = tensor->rank,
                         .shard = tensor->shard,
                         .file_offset = gm__model_file_offset(model, tensor),
                         .bytes = tensor->bytes,
                         .name = tensor->name.text};
  if (tensor->rank > 0) memcpy(info.shape, contents->dims + tensor->shape_at, tensor->rank * sizeof info.shape[0]);
  return info;
}

gm_status gm_model_tensor(const gm_model *model, uint64_t index, gm_tensor_info *out, gm_error *err) {
  static const char op[] = "gm_model_tensor";
  if (!model) return gm__bad_argument(err, op, "`model` is NULL");
  const gm_status status = gm__sized_check(out, sizeof *out, op, "out", err);
  if (status) return status;
  if (index >= model->tensor_count) {
    return gm__bad_argument(err, op, "`index` is %llu, the model has %u tensors", (unsigned long long)index,
                            model->tensor_count);
  }
  const gm_tensor_info info = model_describe(model, model->tensors[index]);
  gm__sized_out(out, &info, sizeof info);
  return GM_OK;
}

/* The first place in by_name whose tensor is not before `name`. */
static uint32_t model_lower_bound(const gm_model *model, const gm__json_text *name) {
  uint32_t low = 0, high = model->tensor_count;
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    if (gm__json_text_compare(&model->tensors[model->by_name[middle]]->name, name) < 0) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

gm_status gm_model_find(const gm_model *model, const char *name, uint64_t *out, gm_error *err) {
  static const char op[] = "gm_model_find";
  if (!model) return gm__bad_argument(err, op, "`model` is NULL");
  if (!name) return gm__bad_argument(err, op, "`name` is NULL");
  if (!out) return gm__bad_argument(err, op, "`out` is NULL");
  gm__json_text wanted = {.text = name, .length = strlen(name)};
  uint32_t place = model_lower_bound(model, &wanted);
  if (place == model->tensor_count ||
      gm__json_text_compare(&model->tensors[model->by_name[place]]->name, &wanted) != 0) {
    return gm__fail(err, GM_ERR_NOT_FOUND, op, "no tensor is named \"%.200s\"", name);
  }
  *out = model->by_name[place];
  return GM_OK;
}

uint64_t gm_model_metadata_count(const gm_model *model, uint32_t shard) {
  return shard < gm_model_shard_count(model) ? model->shards[shard].contents.metadata_count : 0;
}

gm_status gm_model_metadata(const gm_model *model, uint32_t shard, uint64_t index, const char **out_key,
                            const char **out_value, gm_error *err) {
  static const char op[] = "gm_model_metadata";
  if (!model) return gm__bad_argument(err, op, "`model` is NULL");
  if (!out_key || !out_value) return gm__bad_argument(err, op, "`%s` is NULL", out_key ? "out_value" : "out_key");
  if (shard >= model->shard_count) return gm__bad_argument(err, op, "`shard` is %u of %u", shard, model->shard_count);
  uint64_t count = gm_model_metadata_count(model, shard);
  if (index >= count) {
    return gm__bad_argument(err, op, "`index` is %llu, shard %u has %llu strings", (unsigned long long)index, shard,
                            (unsigned long long)count);
  }
  const gm__metadata *pair = &model->shards[shard].contents.metadata[index];
  *out_key = pair->key.text;
  *out_value = pair->value.text;
  return GM_OK;
}

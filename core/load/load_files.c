/* Invariant: a file is read only when device, inode, size and times are those that its header was checked with. So
 * offsets of the table lie within the file. */
#include "core/load/load_files.h"

#include <string.h>

#include "core/base/checksum.h"
#include "core/base/error.h"
#include "core/model/model_memory.h"

gm_status gm__load_files_make(gm__load_files *files, const gm_model *model, gm_way way, gm_error *err) {
  void *each = NULL;
  *files = (gm__load_files){.model = model, .way = way};
  const gm_status status = gm__model_alloc(&model->services, model->shard_count, sizeof *files->each, &each, err);
  files->each = each;
  return status;
}

void gm__load_files_end(gm__load_files *files) {
  if (!files->each) return;
  for (uint32_t i = 0; i < files->model->shard_count; i++) gm_file_close(files->each[i]);
  gm__model_release(&files->model->services, files->each, files->model->shard_count, sizeof *files->each);
  files->each = NULL;
}

gm_status gm__load_files_get(gm__load_files *files, uint32_t shard, gm_file **out, gm_error *err) {
  const gm__shard *known = &files->model->shards[shard];
  gm_file **file = &files->each[shard];
  gm_status status = *file ? GM_OK : gm__file_open(&files->model->services, known->path, files->way, file, err);
  if (status != GM_OK) return status;
  *out = *file;
  if (gm__input_file_same(&(*file)->input, &known->file)) return GM_OK;
  return gm__fail(err, GM_ERR_IO, "gm_model_load", "%.300s: has changed since gm_model_open read its header",
                  known->path);
}

uint64_t gm__load_files_open(const gm__load_files *files) {
  uint64_t count = 0;
  for (uint32_t i = 0; i < files->model->shard_count; i++) count += files->each[i] != NULL;
  return count;
}

uint64_t gm__load_files_identity(const gm_model *model) {
  uint64_t sum = model->tensor_count;
  for (uint32_t i = 0; i < model->shard_count; i++) {
    const gm__input_file *file = &model->shards[i].file;
    const uint64_t values[] = {file->device, file->inode, file->bytes, (uint64_t)file->modified_s,
                               (uint64_t)file->modified_ns};
    sum = gm__checksum(values, sizeof values, sum);
  }
  return sum;
}

const char *gm__load_files_why(const gm__load_files *files) {
  const char *why = "";
  for (uint32_t i = 0; i < files->model->shard_count && !*why; i++) why = gm_file_why(files->each[i]);
  return why;
}

uint64_t gm__load_files_host_bytes(const gm__load_files *files) {
  uint64_t bytes = files->model->shard_count * sizeof *files->each;
  for (uint32_t i = 0; i < files->model->shard_count; i++) {
    if (files->each[i]) bytes += sizeof **files->each + strlen(files->each[i]->path) + 1;
  }
  return bytes;
}

gm_status gm__load_fail(const gm_model *model, const gm__tensor *tensor, const gm_error *inner, gm_error *err) {
  const char *path = model->shards[tensor->shard].path;
  const size_t length = strlen(path);
  return gm__fail_native(err, inner->status, inner->native_code, inner->op, "tensor \"%.100s\" of %s: %s",
                         tensor->name.text, length > 120 ? path + (length - 120) : path, inner->message);
}

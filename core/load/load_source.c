/* Invariants: at most one descriptor and one mapping are open at a time. A shard is read only when device, inode, size
 * and times are those that its header was checked with. So offsets of the table lie within the file. */
#include "core/load/load_source.h"

#include <string.h>

#include "core/base/error.h"
#include "core/model/model_memory.h"

void gm__load_source_init(gm__load_source *source, const gm_model *model, bool mapped, uint64_t buffer_bytes) {
  *source = (gm__load_source){.model = model, .mapped = mapped, .buffer_bytes = buffer_bytes, .file = {.fd = -1}};
}

static void source_close_shard(gm__load_source *source) {
  gm__input_file_unmap(&source->file, source->mapping);
  gm__input_file_close(&source->file);
  source->mapping = NULL;
}

void gm__load_source_close(gm__load_source *source) {
  source_close_shard(source);
  gm__model_release(&source->model->services, source->buffer, source->buffer_bytes, 1);
  source->buffer = NULL;
}

static const char *source_path(const gm__load_source *source) { return source->model->shards[source->shard].path; }

static gm_status source_check_same(const gm__load_source *source, gm_error *err) {
  if (gm__input_file_same(&source->file, &source->model->shards[source->shard].file)) return GM_OK;
  return gm__fail(err, GM_ERR_IO, 0, "gm_model_load", "%.300s: has changed since gm_model_open read its header",
                  source_path(source));
}

gm_status gm__load_source_open(gm__load_source *source, uint32_t shard, gm_error *err) {
  if (source->file.fd >= 0 && source->shard == shard) return GM_OK;
  source_close_shard(source);
  source->shard = shard;
  gm_status status = gm__input_file_open(source_path(source), &source->file, err);
  if (status == GM_OK) status = source_check_same(source, err);
  if (status == GM_OK && source->mapped) {
    status = gm__input_file_map(&source->file, source_path(source), &source->mapping, err);
  }
  if (status != GM_OK) source_close_shard(source);
  return status;
}

gm_status gm__load_source_buffer(gm__load_source *source, unsigned char **out, gm_error *err) {
  if (!source->buffer) {
    void *buffer = NULL;
    gm_status status = gm__model_alloc(&source->model->services, source->buffer_bytes, 1, &buffer, err);
    if (status != GM_OK) return status;
    source->buffer = buffer;
  }
  *out = source->buffer;
  return GM_OK;
}

gm_status gm__load_source_read(gm__load_source *source, uint64_t at, void *out, uint64_t bytes, gm_error *err) {
  return gm__input_file_read_at(&source->file, source_path(source), at, out, bytes, err);
}

gm_status gm__load_source_get(gm__load_source *source, uint64_t at, uint64_t bytes, const void **out, gm_error *err) {
  unsigned char *buffer = NULL;
  gm_status status;
  if (source->mapped) {
    status = gm__input_file_touch(&source->file, source_path(source), source->mapping, at, bytes, err);
    if (status == GM_OK) *out = (const unsigned char *)source->mapping + at;
    return status;
  }
  status = gm__load_source_buffer(source, &buffer, err);
  if (status == GM_OK) status = gm__load_source_read(source, at, buffer, bytes, err);
  if (status == GM_OK) *out = buffer;
  return status;
}

uint64_t gm__load_source_host_bytes(const gm__load_source *source) { return source->buffer ? source->buffer_bytes : 0; }

gm_status gm__load_fail(const gm_model *model, const gm__tensor *tensor, const gm_error *inner, gm_error *err) {
  const char *path = model->shards[tensor->shard].path;
  const size_t length = strlen(path);
  return gm__fail(err, inner->status, inner->native_code, inner->op, "tensor \"%.100s\" of %s: %s", tensor->name.text,
                  length > 120 ? path + (length - 120) : path, inner->message);
}

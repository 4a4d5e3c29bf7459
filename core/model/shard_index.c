/* Invariants of an accepted index. It has at least one entry and no tensor twice. Every file is a plain name within
 * the folder of the index. Shards are numbered 0 to shard_count - 1 in the order of their names. */
#include "core/model/shard_index.h"

#include <string.h>

#include "core/base/input_file.h"
#include "core/model/model_memory.h"
#include "core/model/safetensors.h"

typedef struct index_reader {
  const gm_services *services;
  const char *path;
  gm__shard_index *index;
  gm__json_scan scan;
} index_reader;

static bool index_is_plain_name(const gm__json_text *file) {
  if (file->length == 0 || gm__json_text_is(file, ".") || gm__json_text_is(file, "..")) return false;
  return !strpbrk(file->text, "/\\");
}

static gm_status index_keep(index_reader *reader, const gm__shard_entry *entry, gm_error *err) {
  if (!index_is_plain_name(&entry->file)) {
    return gm__model_fail(err, GM_ERR_FORMAT, reader->path, entry->file.at,
                          "tensor \"%.80s\": the shard \"%.80s\" is no plain file name", entry->tensor.text,
                          entry->file.text);
  }
  gm__shard_index *index = reader->index;
  gm_status status =
      gm__model_grow(reader->services, &index->entries, &index->capacity, index->count, sizeof *entry, err);
  if (status == GM_OK) index->entries[index->count++] = *entry;
  return status;
}

static gm_status index_problem(const index_reader *reader, gm_error *err) {
  return gm__model_fail(err, GM_ERR_FORMAT, reader->path, reader->scan.problem_at, "%s", reader->scan.problem);
}

static gm_status index_read_map(index_reader *reader, gm_error *err) {
  gm__json_scan *scan = &reader->scan;
  gm__shard_entry entry = {0};
  gm__json_object_begin(scan);
  while (gm__json_object_next(scan, &entry.tensor) && gm__json_string(scan, &entry.file)) {
    gm_status status = index_keep(reader, &entry, err);
    if (status != GM_OK) return status;
  }
  return scan->problem ? index_problem(reader, err) : GM_OK;
}

static gm_status index_read_all(index_reader *reader, gm_error *err) {
  gm__json_scan *scan = &reader->scan;
  gm__json_text key;
  bool seen = false;
  gm__json_object_begin(scan);
  while (gm__json_object_next(scan, &key)) {
    if (!gm__json_text_is(&key, "weight_map")) {
      gm__json_skip(scan);
      continue;
    }
    if (seen) gm__json_problem(scan, key.at, "weight_map is there twice");
    seen = true;
    gm_status status = index_read_map(reader, err);
    if (status != GM_OK) return status;
  }
  if (!gm__json_end(scan)) return index_problem(reader, err);
  if (reader->index->count > 0) return GM_OK;
  return gm__model_fail(err, GM_ERR_FORMAT, reader->path, 0, "weight_map is %s",
                        seen ? "empty" : "missing, so this is no index of a model's parts");
}

/* ---- orders ---- */

static int index_compare_tensor(const void *items, uint32_t a, uint32_t b) {
  const gm__shard_entry *entries = items;
  return gm__json_text_compare(&entries[a].tensor, &entries[b].tensor);
}

static int index_compare_file(const void *items, uint32_t a, uint32_t b) {
  const gm__shard_entry *entries = items;
  return gm__json_text_compare(&entries[a].file, &entries[b].file);
}

static gm_status index_check_tensors(const gm__shard_index *index, const char *path, gm_error *err) {
  for (uint64_t i = 1; i < index->count; i++) {
    if (index_compare_tensor(index->entries, index->by_tensor[i - 1], index->by_tensor[i]) != 0) continue;
    const gm__json_text *tensor = &index->entries[index->by_tensor[i]].tensor;
    return gm__model_fail(err, GM_ERR_FORMAT, path, tensor->at, "tensor \"%.80s\" is there twice", tensor->text);
  }
  return GM_OK;
}

static void index_number_shards(gm__shard_index *index) {
  uint32_t shard = 0;
  for (uint64_t i = 0; i < index->count; i++) {
    if (i > 0 && index_compare_file(index->entries, index->by_file[i - 1], index->by_file[i]) != 0) shard++;
    index->entries[index->by_file[i]].shard = shard;
  }
  index->shard_count = shard + 1;
}

static gm_status index_sort(const gm_services *services, gm__shard_index *index, gm_error *err) {
  uint32_t count = (uint32_t)index->count; /* each entry takes bytes of a text of at most 10^8 */
  gm_status status = gm__model_order(services, index->entries, count, index_compare_tensor, &index->by_tensor, err);
  if (status != GM_OK) return status;
  return gm__model_order(services, index->entries, count, index_compare_file, &index->by_file, err);
}

/* ---- the whole ---- */

static gm_status index_build(const gm_services *services, const char *path, gm__shard_index *index, gm_error *err) {
  index_reader reader = {.services = services, .path = path, .index = index};
  gm__json_scan_init(&reader.scan, index->text, index->text_bytes);
  gm_status status = index_read_all(&reader, err);
  if (status == GM_OK) status = index_sort(services, index, err);
  if (status == GM_OK) status = index_check_tensors(index, path, err);
  if (status == GM_OK) index_number_shards(index);
  return status;
}

void gm__shard_index_free(const gm_services *services, gm__shard_index *index) {
  gm__model_release(services, index->text, index->text_bytes, 1);
  gm__model_release(services, index->by_tensor, index->count, sizeof(uint32_t));
  gm__model_release(services, index->by_file, index->count, sizeof(uint32_t));
  gm__model_release(services, index->entries, index->capacity, sizeof(gm__shard_entry));
  memset(index, 0, sizeof *index);
}

static gm_status index_make_room(const gm_services *services, uint64_t bytes, const char *path, gm__shard_index *index,
                                 gm_error *err) {
  void *text = NULL;
  if (bytes > GM__SHARD_INDEX_MAX_BYTES) {
    return gm__model_fail(err, GM_ERR_FORMAT, path, 0, "an index of %llu bytes, more than %d",
                          (unsigned long long)bytes, (int)GM__SHARD_INDEX_MAX_BYTES);
  }
  gm_status status = gm__model_alloc(services, bytes, 1, &text, err);
  if (status == GM_OK) *index = (gm__shard_index){.text = text, .text_bytes = bytes};
  return status;
}

static gm_status index_finish(const gm_services *services, gm_status status, gm__shard_index *index,
                              gm__shard_index *out) {
  if (status != GM_OK) gm__shard_index_free(services, index);
  *out = *index;
  return status;
}

gm_status gm__shard_index_read(const gm_services *services, const char *path, gm__shard_index *out, gm_error *err) {
  gm__shard_index index = {0};
  gm__input_file file;
  gm_status status = gm__input_file_open(path, &file, err);
  if (status != GM_OK) return index_finish(services, status, &index, out);
  status = index_make_room(services, file.bytes, path, &index, err);
  if (status == GM_OK) status = gm__input_file_read_at(&file, path, 0, index.text, index.text_bytes, err);
  gm__input_file_close(&file);
  if (status == GM_OK) status = index_build(services, path, &index, err);
  return index_finish(services, status, &index, out);
}

gm_status gm__shard_index_parse(const gm_services *services, const void *bytes, uint64_t length, const char *path,
                                gm__shard_index *out, gm_error *err) {
  gm__shard_index index = {0};
  gm_status status = index_make_room(services, length, path, &index, err);
  if (index.text) memcpy(index.text, bytes, length);
  if (status == GM_OK) status = index_build(services, path, &index, err);
  return index_finish(services, status, &index, out);
}

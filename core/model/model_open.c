/* From a path to a model. Invariants: every file is opened by gm__input_file_open and closed before the next one. So a
 * model of any number of shards needs one descriptor. Shards are looked for in the folder of their index and nowhere
 * else. A sharded model is accepted only when index and shards name the same tensors in the same places. */
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/cancel.h"
#include "core/base/error.h"
#include "core/model/model.h"
#include "core/model/model_memory.h"
#include "core/model/model_split.h"
#include "core/model/shard_index.h"
#include "gm/model_value.h"

/* ---- shards ---- */

static gm_status open_single(gm_model *model, const char *path, gm_error *err) {
  gm_status status = gm__model_add_shards(model, 1, err);
  if (status != GM_OK) return status;
  gm__shard *shard = &model->shards[0];
  status = gm__model_join(&model->services, path, strlen(path), "", &shard->path, &shard->path_bytes, err);
  if (status == GM_OK) status = gm__model_read_shard(model, 0, err);
  if (status == GM_OK) status = gm__model_open_split(model, err);
  return status == GM_OK ? gm__model_index_tensors(model, err) : status;
}

static uint64_t open_folder_length(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash ? (uint64_t)(slash - path) + 1 : 0;
}

static gm_status open_shards(gm_model *model, const char *path, const gm__shard_index *index, gm_error *err) {
  gm_status status = gm__model_add_shards(model, index->shard_count, err);
  for (uint64_t i = 0; i < index->count && status == GM_OK; i++) {
    const gm__shard_entry *entry = &index->entries[index->by_file[i]];
    gm__shard *shard = &model->shards[entry->shard];
    if (shard->path) continue;
    status = gm__model_join(&model->services, path, open_folder_length(path), entry->file.text, &shard->path,
                            &shard->path_bytes, err);
    if (status == GM_OK) status = gm__model_read_shard(model, entry->shard, err);
  }
  return status == GM_OK ? gm__model_index_tensors(model, err) : status;
}

/* ---- the index against the shards ---- */

static gm_status open_fail_unlisted(const gm_model *model, const gm__tensor *tensor, gm_error *err) {
  return gm__model_fail(err, GM_ERR_FORMAT, model->shards[tensor->shard].path,
                        model->shards[tensor->shard].contents.header_at + tensor->name.at,
                        "tensor \"%.80s\" is not in the index", tensor->name.text);
}

static gm_status open_fail_entry(const gm__shard_entry *entry, const char *path, const char *what, gm_error *err) {
  return gm__model_fail(err, GM_ERR_FORMAT, path, entry->tensor.at, "tensor \"%.80s\" is %s \"%.80s\"",
                        entry->tensor.text, what, entry->file.text);
}

/* Both are sorted by name and have no name twice: one walk finds every difference. */
static gm_status open_compare(const gm_model *model, const gm__shard_index *index, const char *path, gm_error *err) {
  uint64_t i = 0;
  for (uint64_t j = 0; j < index->count; i++, j++) {
    const gm__shard_entry *entry = &index->entries[index->by_tensor[j]];
    const gm__tensor *tensor = i < model->tensor_count ? model->tensors[model->by_name[i]] : NULL;
    int order = tensor ? gm__json_text_compare(&tensor->name, &entry->tensor) : 1;
    if (order < 0) return open_fail_unlisted(model, tensor, err);
    if (order > 0) return open_fail_entry(entry, path, "not in its shard", err);
    if (tensor->shard != entry->shard) return open_fail_entry(entry, path, "in another shard than", err);
  }
  return i == model->tensor_count ? GM_OK : open_fail_unlisted(model, model->tensors[model->by_name[i]], err);
}

static gm_status open_sharded(gm_model *model, const char *path, gm_error *err) {
  gm__shard_index index;
  gm_status status = gm__shard_index_read(&model->services, path, &index, err);
  if (status != GM_OK) return status;
  status = open_shards(model, path, &index, err);
  if (status == GM_OK) status = open_compare(model, &index, path, err);
  gm__shard_index_free(&model->services, &index);
  return status;
}

/* One shard of several is no model: its index, beside it, names them all. */
static gm_status open_one_of_several(gm_model *model, const char *path, const gm__split_name *split, gm_error *err) {
  char *index = NULL;
  uint64_t index_bytes = 0;
  bool is_folder = true;
  gm_error why = {.native_code = 0};
  gm_status status =
      gm__model_join(&model->services, path, split->stem, ".safetensors.index.json", &index, &index_bytes, err);
  if (status != GM_OK) return status;
  if (gm__input_is_folder(index, &is_folder, &why) == GM_OK && !is_folder) {
    status = open_sharded(model, index, err);
  } else {
    status = gm__fail_native(err, GM_ERR_NOT_FOUND, why.native_code, "gm_model_open",
                             "%.200s: shard %u of %u, and the index of all, %.200s, is not beside it", path,
                             split->number, split->count, index + open_folder_length(index));
  }
  gm__model_release(&model->services, index, index_bytes, 1);
  return status;
}

/* ---- folders ---- */

static bool open_ends_with(const char *name, const char *end) {
  size_t length = strlen(name), end_length = strlen(end);
  return length > end_length && strcmp(name + length - end_length, end) == 0;
}

/* The ways in which a folder can hold a model, best first. */
enum { OPEN_SINGLE, OPEN_INDEX, OPEN_ANY_INDEX, OPEN_ANY_SINGLE, OPEN_GGUF, OPEN_GGUF_PART, OPEN_BESIDE, OPEN_KINDS };

typedef struct open_folder {
  gm_model *model;             /* whose services open files */
  const char *path;            /* with a slash; NULL: names alone are looked at */
  char names[OPEN_KINDS][256]; /* NAME_MAX is 255 */
  uint32_t counts[OPEN_KINDS];
} open_folder;

static int open_kind(const char *name) {
  if (strcmp(name, "model.safetensors") == 0) return OPEN_SINGLE;
  if (strcmp(name, "model.safetensors.index.json") == 0) return OPEN_INDEX;
  if (open_ends_with(name, ".safetensors.index.json")) return OPEN_ANY_INDEX;
  if (open_ends_with(name, ".safetensors")) return OPEN_ANY_SINGLE;
  gm__split_name split;
  if (gm__split_name_parse(name, ".gguf", &split)) return split.number == 1 ? OPEN_GGUF : OPEN_GGUF_PART;
  return open_ends_with(name, ".gguf") ? OPEN_GGUF : OPEN_KINDS;
}

/* Does a GGUF file say of itself that it goes beside a model? */
static bool open_says_beside(const gm_model *file) {
  static const char *const types[] = {"mmproj", "adapter", "imatrix"};
  gm_model_value value = {.struct_size = sizeof value};
  if (gm_model_find_value(file, "general.type", &value, NULL) == GM_OK && value.string) {
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
      if (strcmp(value.string, types[i]) == 0) return true;
    }
  }
  return gm_model_find_value(file, "general.architecture", &value, NULL) == GM_OK && value.string &&
         strcmp(value.string, "clip") == 0;
}

/* A projector, an adapter or a list of weights' importance. A file that cannot be read may be a model. */
static bool open_is_beside(const open_folder *folder, const char *name) {
  char *path = NULL;
  uint64_t bytes = 0;
  gm_model *file = NULL;
  const gm_services *services = &folder->model->services;
  if (gm__model_join(services, folder->path, strlen(folder->path), name, &path, &bytes, NULL) != GM_OK) return false;
  const bool beside = gm_model_open_header(services, path, &file, NULL) == GM_OK && open_says_beside(file);
  gm_model_close(file);
  gm__model_release(services, path, bytes, 1);
  return beside;
}

static bool open_visit(void *user, const char *name) {
  open_folder *folder = user;
  int kind = open_kind(name);
  if (folder->path && kind == OPEN_GGUF && open_is_beside(folder, name)) kind = OPEN_BESIDE;
  size_t length = strlen(name);
  if (kind == OPEN_KINDS || length >= sizeof folder->names[kind]) return true;
  /* Parts count only where no first one is there; then any of them leads to the one that is missing. */
  folder->counts[kind] = kind == OPEN_GGUF_PART ? 1 : folder->counts[kind] + 1;
  memcpy(folder->names[kind], name, length + 1);
  return true;
}

static gm_status open_choose(const char *path, const open_folder *folder, int *out, gm_error *err) {
  int kind = 0;
  while (kind < OPEN_KINDS && folder->counts[kind] == 0) kind++;
  if (kind == OPEN_KINDS) {
    return gm__fail(err, GM_ERR_NOT_FOUND, "gm_model_open", "%.300s: the folder holds no safetensors and no GGUF model",
                    path);
  }
  if (folder->counts[kind] > 1) {
    return gm__bad_argument(err, "gm_model_open", "`path`: the folder %.250s holds %u models, name one of them", path,
                            folder->counts[kind]);
  }
  *out = kind;
  return GM_OK;
}

static gm_status open_file(gm_model *model, const char *path, gm_error *err) {
  gm__split_name split;
  if (gm__split_name_parse(path, ".safetensors", &split) && split.count > 1) {
    return open_one_of_several(model, path, &split, err);
  }
  return open_ends_with(path, ".json") ? open_sharded(model, path, err) : open_single(model, path, err);
}

static gm_status open_from_folder(gm_model *model, const char *path, gm_error *err) {
  open_folder folder = {.model = model};
  int kind = 0;
  char *head = NULL, *file = NULL;
  uint64_t head_bytes = 0, file_bytes = 0;
  gm_status status = gm__model_join(&model->services, path, strlen(path), "/", &head, &head_bytes, err);
  if (status == GM_OK) status = gm__input_folder_each(path, open_visit, &folder, err);
  if (status == GM_OK && folder.counts[OPEN_GGUF] > 1) { /* names do not tell which is the model: the files do */
    folder = (open_folder){.model = model, .path = head};
    status = gm__input_folder_each(path, open_visit, &folder, err);
  }
  if (status == GM_OK) status = open_choose(path, &folder, &kind, err);
  if (status == GM_OK) {
    status = gm__model_join(&model->services, head, head_bytes - 1, folder.names[kind], &file, &file_bytes, err);
  }
  if (status == GM_OK) status = open_file(model, file, err);
  gm__model_release(&model->services, head, head_bytes, 1);
  gm__model_release(&model->services, file, file_bytes, 1);
  return status;
}

/* ---- the call ---- */

static gm_status open_path(gm_model *model, const char *path, gm_error *err) {
  bool is_folder = false;
  gm_status status = gm__input_is_folder(path, &is_folder, err);
  if (status != GM_OK) return status;
  return is_folder ? open_from_folder(model, path, err) : open_file(model, path, err);
}

static gm_status open_model(const gm_services *services, const char *path, const char *op, bool header_only,
                            gm_model **out, gm_error *err) {
  if (!path || !path[0]) return gm__bad_argument(err, op, "`path` is %s", path ? "empty" : "NULL");
  if (!out) return gm__bad_argument(err, op, "`out` is NULL");
  gm_model *model = NULL;
  gm_status status = gm__services_check(services, err);
  if (status == GM_OK) status = gm__model_create(services, &model, err);
  if (status != GM_OK) return gm__model_name_call(status, op, err);
  model->header_only = header_only;
  status = open_path(model, path, err);
  if (status == GM_OK) {
    *out = model;
  } else {
    gm_model_close(model);
  }
  return gm__model_name_call(status, op, err);
}

gm_status gm_model_open(const gm_services *services, const char *path, gm_model **out, gm_error *err) {
  GM__UNCANCELLED();
  return open_model(services, path, "gm_model_open", false, out, err);
}

gm_status gm_model_open_header(const gm_services *services, const char *path, gm_model **out, gm_error *err) {
  GM__UNCANCELLED();
  return open_model(services, path, "gm_model_open_header", true, out, err);
}

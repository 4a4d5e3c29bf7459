/* Versions of a small model, each in a file of its own, and which one a saved file has. Needs cmocka.h and
 * played_disk.h included before. */
#ifndef GM_TESTS_SUPPORT_SAVE_VERSIONS_H
#define GM_TESTS_SUPPORT_SAVE_VERSIONS_H

#include "gm/save.h"
#include "support/safetensors_bytes.h"
#include "support/temp_folder.h"

enum { SAVE_VERSIONS = 3, SAVE_PIECE = 4096, SAVE_NO_FILE = 0, SAVE_BROKEN = -1 };

typedef struct save_versions {
  temp_folder models, target, left;
  gm_model *model[SAVE_VERSIONS + 1]; /* from 1 on */
  char path[512], left_path[512];
  bool checksums; /* with a checksum file */
} save_versions;

/* The versions differ in size, by some pages and by some bytes. */
static inline uint64_t save_version_bytes(int version) { return 5 * 4096 + (uint64_t)version * 3000; }

static inline void save_versions_open(save_versions *self, const char *name) {
  temp_folder_make(&self->models);
  temp_folder_make(&self->target);
  temp_folder_make(&self->left);
  snprintf(self->path, sizeof self->path, "%s", temp_folder_join(&self->target, name));
  snprintf(self->left_path, sizeof self->left_path, "%s", temp_folder_join(&self->left, name));
  for (int i = 1; i <= SAVE_VERSIONS; i++) {
    char header[128], file_name[16];
    const unsigned long long bytes = save_version_bytes(i);
    snprintf(header, sizeof header, "{\"w\":{\"dtype\":\"I8\",\"shape\":[%llu],\"data_offsets\":[0,%llu]}}", bytes,
             bytes);
    snprintf(file_name, sizeof file_name, "%d", i);
    safetensors_bytes file = safetensors_bytes_make(header, strlen(header), bytes, (uint64_t)i);
    const char *path = temp_folder_write(&self->models, file_name, file.bytes, file.length);
    assert_int_equal(gm_model_open(NULL, path, &self->model[i], NULL), GM_OK);
    safetensors_bytes_free(&file);
  }
}

static inline void save_versions_close(save_versions *self) {
  for (int i = 1; i <= SAVE_VERSIONS; i++) gm_model_close(self->model[i]);
  temp_folder_remove(&self->models);
  temp_folder_remove(&self->target);
  temp_folder_remove(&self->left);
}

static inline gm_status save_version(const save_versions *self, int version, gm_save_result *result, gm_error *err) {
  const gm_save_params params = {.struct_size = sizeof params, .checksums = self->checksums, .chunk_bytes = SAVE_PIECE};
  return gm_model_save(self->model[version], NULL, self->path, &params, result, err);
}

/* Is the only tensor at `at` of the file that version, byte by byte? */
static inline bool save_is_version(const char *path, const gm_tensor_info *tensor, int version) {
  unsigned char data[5 * 4096 + SAVE_VERSIONS * 3000];
  bool is = tensor->bytes == save_version_bytes(version);
  const int fd = is ? open(path, O_RDONLY | O_CLOEXEC) : -1;
  is = fd >= 0 && pread(fd, data, tensor->bytes, (off_t)tensor->file_offset) == (ssize_t)tensor->bytes;
  for (uint64_t i = 0; i < tensor->bytes && is; i++) is = data[i] == safetensors_bytes_at(i, (uint64_t)version);
  if (fd >= 0) close(fd);
  return is;
}

/* The version that a file has whole, which is as its checksum file says, if there is one; SAVE_NO_FILE, SAVE_BROKEN. */
static inline int save_found(const char *path) {
  gm_model *model = NULL;
  gm_tensor_info tensor = {.struct_size = sizeof tensor};
  int found = SAVE_BROKEN;
  const gm_status status = gm_model_open(NULL, path, &model, NULL);
  if (status) return status == GM_ERR_NOT_FOUND ? SAVE_NO_FILE : SAVE_BROKEN;
  if (gm_model_tensor_count(model) == 1 && gm_model_tensor(model, 0, &tensor, NULL) == GM_OK) {
    for (int i = 1; i <= SAVE_VERSIONS; i++) found = save_is_version(path, &tensor, i) ? i : found;
  }
  if (gm_model_check_sums(model, NULL, NULL, NULL, NULL)) found = SAVE_BROKEN;
  gm_model_close(model);
  return found;
}

#endif

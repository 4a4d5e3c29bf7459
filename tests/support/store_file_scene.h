/* A store, a folder for its files, and tensors that go there and back. Needs cmocka.h included before. */
#ifndef GM_TESTS_SUPPORT_STORE_FILE_SCENE_H
#define GM_TESTS_SUPPORT_STORE_FILE_SCENE_H

#include <dirent.h>

#include "gm/store_file.h"
#include "support/store_bench.h"

#define MIB (UINT64_C(1) << 20)

typedef struct scene {
  pool_bench bench;
  temp_folder folder;
  gm_store *store;
  char path[256];
} scene;

static inline void scene_open(scene *s, uint64_t max_bytes) {
  store_open_bench(&s->bench, max_bytes);
  temp_folder_make(&s->folder);
  s->store = store_open(s->bench.pool, NULL);
  snprintf(s->path, sizeof s->path, "%s", temp_folder_join(&s->folder, "saved.safetensors"));
}

static inline void scene_close(scene *s) {
  store_close(s->store);
  temp_folder_remove(&s->folder);
  pool_bench_close(&s->bench);
}

static inline int files_of(const scene *s) {
  DIR *stream = opendir(s->folder.path);
  int count = 0;
  assert_non_null(stream);
  for (const struct dirent *at; (at = readdir(stream)) != NULL;) count += at->d_name[0] != '.';
  closedir(stream);
  return count;
}

static inline void put(gm_store *store, const char *key, gm_dtype dtype, uint32_t rank, const uint64_t *shape) {
  gm_tensor_desc desc = {.struct_size = sizeof desc, .dtype = dtype, .rank = rank};
  uint64_t bytes = 0, seed = 7;
  unsigned char data[4096];
  for (uint32_t i = 0; i < rank; i++) desc.shape[i] = shape[i];
  pool_bench_ok(gm_tensor_bytes(&desc, &bytes, err));
  assert_true(bytes <= sizeof data);
  for (const char *at = key; *at; at++) seed = seed * 31 + (unsigned char)*at;
  for (uint64_t i = 0; i < bytes; i++) data[i] = (unsigned char)test_random(&seed);
  pool_bench_ok(gm_store_put_tensor(store, key, &desc, data, err));
}

/* Both keys have equal tensors. */
static inline void expect_same(gm_store *store, const char *a, const char *b) {
  gm_value *values[2];
  gm_value_info info[2] = {{.struct_size = sizeof info[0]}, {.struct_size = sizeof info[1]}};
  unsigned char data[2][4096];
  for (int i = 0; i < 2; i++) {
    pool_bench_ok(gm_store_get(store, i ? b : a, &values[i], err));
    pool_bench_ok(gm_value_describe(values[i], &info[i], err));
    pool_bench_ok(gm_value_read(values[i], 0, data[i], info[i].bytes, NULL, err));
    gm_value_release(values[i], NULL);
  }
  assert_int_equal(info[0].dtype, info[1].dtype);
  assert_int_equal(info[0].rank, info[1].rank);
  assert_memory_equal(info[0].shape, info[1].shape, sizeof info[0].shape);
  assert_memory_equal(data[0], data[1], info[0].bytes);
}

/* The key below "again" has what the one below "m" has. */
static inline void expect_again(const scene *s, const char *again, const char *key) {
  char a[64], b[64];
  snprintf(a, sizeof a, "m/%s", key);
  snprintf(b, sizeof b, "%s/%s", again, key);
  expect_same(s->store, a, b);
}

#endif

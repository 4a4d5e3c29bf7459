/* A model of two shards, a pool of the CPU backend, and what a load must give. Needs cmocka.h included before. */
#ifndef GM_TESTS_SUPPORT_LOAD_SCENE_H
#define GM_TESTS_SUPPORT_LOAD_SCENE_H

#include <string.h>

#include "gm/copy.h"
#include "gm/load.h"
#include "support/counted_services.h"
#include "support/safetensors_bytes.h"
#include "support/temp_folder.h"

/* Two shards; sizes around the smallest chunk of 4096. */
static const char header_1[] =
    "{\"big\":{\"dtype\":\"F32\",\"shape\":[5,500],\"data_offsets\":[0,10000]},"
    "\"chunk\":{\"dtype\":\"U8\",\"shape\":[4096],\"data_offsets\":[10000,14096]},"
    "\"none\":{\"dtype\":\"F64\",\"shape\":[0,3],\"data_offsets\":[14096,14096]}}";
static const char header_2[] =
    "{\"byte\":{\"dtype\":\"BOOL\",\"shape\":[],\"data_offsets\":[0,1]},"
    "\"odd\":{\"dtype\":\"I8\",\"shape\":[4097],\"data_offsets\":[1,4098]}}";
static const char index_text[] =
    "{\"weight_map\":{\"big\":\"1\",\"chunk\":\"1\",\"none\":\"1\",\"byte\":\"2\",\"odd\":\"2\"}}";
enum { TENSORS = 5, BYTES_1 = 14096, BYTES_2 = 4098, BYTES = BYTES_1 + BYTES_2 };

typedef struct fixture {
  temp_folder folder;
  counted_services host; /* of the context and of the model alike */
  gm_context *context;
  gm_device *device;
  gm_pool *pool;
  gm_model *model;
} fixture;

static fixture f;

static inline void write_shard(const char *name, const char *header, uint64_t data, uint64_t seed) {
  safetensors_bytes file = safetensors_bytes_make(header, strlen(header), data, seed);
  temp_folder_write(&f.folder, name, file.bytes, file.length);
  safetensors_bytes_free(&file);
}

static inline int setup(void **state) {
  (void)state;
  temp_folder_make(&f.folder);
  counted_services_init(&f.host);
  write_shard("1", header_1, BYTES_1, 1);
  write_shard("2", header_2, BYTES_2, 2);
  const char *path = temp_folder_write(&f.folder, "i.json", index_text, strlen(index_text));
  gm_context_params params = {.struct_size = sizeof params, .services = &f.host.services, .ignore_environment = true};
  gm_error err;
  assert_int_equal(gm_model_open(&f.host.services, path, &f.model, NULL), GM_OK);
  assert_int_equal(gm_context_create(&params, &f.context, &err), GM_OK);
  assert_int_equal(gm_device_open_index(f.context, "cpu", 0, &f.device, &err), GM_OK);
  assert_int_equal(gm_pool_create(f.device, NULL, &f.pool, &err), GM_OK);
  return 0;
}

static inline int teardown(void **state) {
  (void)state;
  temp_folder_remove(&f.folder); /* first: what fails below leaves no files */
  gm_model_close(f.model);
  assert_int_equal(gm_pool_destroy(f.pool, NULL), GM_OK);
  assert_int_equal(gm_device_close(f.device, NULL), GM_OK);
  assert_int_equal(gm_context_destroy(f.context, NULL), GM_OK);
  counted_services_check(&f.host);
  return 0;
}

static inline uint64_t in_use(void) {
  gm_stats stats = {.struct_size = sizeof stats};
  gm_pool_stats(f.pool, &stats);
  assert_true((stats.in_use_bytes == 0) == (stats.active == 0));
  return stats.in_use_bytes;
}

static inline uint64_t data_start(uint32_t shard) { return 8 + (shard ? sizeof header_2 : sizeof header_1) - 1; }

static inline void check_tensor(const gm_loaded_model *loaded, uint64_t index) {
  gm_tensor_info info = {.struct_size = sizeof info};
  gm_block block;
  unsigned char got[10000];
  assert_int_equal(gm_model_tensor(f.model, index, &info, NULL), GM_OK);
  assert_int_equal(gm_loaded_model_block(loaded, index, &block, NULL), GM_OK);
  assert_true(block.bytes >= info.bytes);
  if (info.bytes == 0) assert_int_equal(block.bytes, 0);
  if (info.bytes == 0) return;
  assert_int_equal(gm_block_read(f.pool, &block, 0, got, info.bytes, NULL, NULL, NULL), GM_OK);
  uint64_t first = info.file_offset - data_start(info.shard);
  for (uint64_t i = 0; i < info.bytes; i++) assert_int_equal(got[i], safetensors_bytes_at(first + i, info.shard + 1));
}

static inline void check_fails(const gm_load_params *params, gm_status wanted, const char *words) {
  gm_loaded_model *loaded = NULL;
  gm_load_result result = {.struct_size = sizeof result, .tensors = 77};
  gm_error err = {0};
  gm_status status = gm_model_load(f.model, f.pool, params, &loaded, &result, &err);
  if (status != wanted || !strstr(err.message, words)) {
    fail_msg("got %s \"%s\", not %s \"%s\"", gm_status_name(status), err.message, gm_status_name(wanted), words);
  }
  assert_int_equal(err.status, wanted);
  assert_null(loaded);
  assert_int_equal(result.tensors, 77);
  assert_int_equal(in_use(), 0);
}

/* Each host allocation of a load fails once. `again`: what is done before each try; NULL: nothing. */
static inline void load_without_host_memory(const gm_load_params *params, void (*again)(void *user), void *user) {
  gm_status status = GM_ERR_OUT_OF_HOST_MEMORY;
  for (size_t n = 1; status != GM_OK; n++) {
    gm_loaded_model *loaded = NULL;
    if (again) again(user);
    gm_pool_trim(f.pool, 0);
    f.host.fail_at = atomic_load(&f.host.calls) + n;
    f.host.fail_count = 1;
    status = gm_model_load(f.model, f.pool, params, &loaded, NULL, NULL);
    f.host.fail_at = 0;
    assert_true((status == GM_OK) == (loaded != NULL));
    assert_true(status == GM_OK || status == GM_ERR_OUT_OF_HOST_MEMORY);
    gm_loaded_model_release(loaded, NULL);
    assert_int_equal(in_use(), 0);
  }
}

#endif

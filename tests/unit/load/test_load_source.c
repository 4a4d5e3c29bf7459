/* The files of a model while it is loaded: the right bytes, one shard at a time, and only files that have not changed.
 */
#include "core/load/load_source.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "support/counted_services.h"
#include "support/safetensors_bytes.h"
#include "support/temp_folder.h"

enum { DATA = 10000 };

static temp_folder folder;
static counted_services counted;
static gm_model *model;

static void write_shard(const char *name, const char *tensor, uint64_t seed) {
  char header[200];
  snprintf(header, sizeof header, "{\"%s\":{\"dtype\":\"U8\",\"shape\":[%d],\"data_offsets\":[0,%d]}}", tensor, DATA,
           DATA);
  safetensors_bytes file = safetensors_bytes_make(header, strlen(header), DATA, seed);
  temp_folder_write(&folder, name, file.bytes, file.length);
  safetensors_bytes_free(&file);
}

static int setup(void **state) {
  (void)state;
  temp_folder_make(&folder);
  counted_services_init(&counted);
  write_shard("1", "a", 1);
  write_shard("2", "b", 2);
  const char *index = "{\"weight_map\":{\"a\":\"1\",\"b\":\"2\"}}";
  const char *path = temp_folder_write(&folder, "i.json", index, strlen(index));
  assert_int_equal(gm_model_open(&counted.services, path, &model, NULL), GM_OK);
  return 0;
}

static int teardown(void **state) {
  (void)state;
  gm_model_close(model);
  temp_folder_remove(&folder);
  counted_services_check(&counted);
  return 0;
}

static void check_bytes(const unsigned char *bytes, uint64_t at, uint64_t length, uint64_t seed) {
  for (uint64_t i = 0; i < length; i++) assert_int_equal(bytes[i], safetensors_bytes_at(at + i, seed));
}

static void check_shards(bool mapped) {
  gm__load_source source;
  gm__load_source_init(&source, model, mapped, 4096);
  for (uint32_t turn = 0; turn < 4; turn++) {
    uint32_t shard = turn % 2;
    uint64_t from = gm__model_file_offset(model, model->tensors[shard]);
    const void *got = NULL;
    assert_int_equal(gm__load_source_open(&source, shard, NULL), GM_OK);
    assert_int_equal(gm__load_source_open(&source, shard, NULL), GM_OK);
    assert_int_equal(gm__load_source_get(&source, from + 5000, 4096, &got, NULL), GM_OK);
    check_bytes(got, 5000, 4096, shard + 1);
    assert_int_equal(gm__load_source_get(&source, from + DATA - 1, 1, &got, NULL), GM_OK);
    check_bytes(got, DATA - 1, 1, shard + 1);
  }
  assert_int_equal(gm__load_source_host_bytes(&source), mapped ? 0 : 4096);
  gm__load_source_close(&source);
  gm__load_source_close(&source);
  assert_int_equal(gm__load_source_host_bytes(&source), 0);
}

static void test_bytes_come_from_the_right_shard(void **state) {
  (void)state;
  check_shards(false);
  check_shards(true);
}

static void test_a_file_that_changed_is_refused(void **state) {
  (void)state;
  gm__load_source source;
  gm_error err;
  gm__load_source_init(&source, model, true, 4096);
  write_shard("2", "b", 3); /* as long as before, but written again */
  assert_int_equal(gm__load_source_open(&source, 0, &err), GM_OK);
  assert_int_equal(gm__load_source_open(&source, 1, &err), GM_ERR_IO);
  assert_non_null(strstr(err.message, "/2: has changed since gm_model_open read its header"));
  assert_int_equal(unlink(temp_folder_join(&folder, "1")), 0);
  assert_int_equal(gm__load_source_open(&source, 0, &err), GM_ERR_NOT_FOUND);
  gm__load_source_close(&source);
}

static void test_a_file_that_shrinks_is_found(void **state) {
  (void)state;
  for (int mapped = 0; mapped < 2; mapped++) {
    gm__load_source source;
    gm_error err;
    const void *got = NULL;
    uint32_t shard = (uint32_t)mapped;
    gm__load_source_init(&source, model, mapped, 4096);
    assert_int_equal(gm__load_source_open(&source, shard, &err), GM_OK);
    assert_int_equal(truncate(gm_model_shard_path(model, shard), 5000), 0);
    assert_int_equal(gm__load_source_get(&source, 4000, 4096, &got, &err), GM_ERR_IO);
    assert_non_null(strstr(err.message, mapped ? "has 5000 bytes" : "ends at byte 5000"));
    gm__load_source_close(&source);
  }
}

static void test_no_host_memory_for_the_buffer(void **state) {
  (void)state;
  gm__load_source source;
  const void *got = NULL;
  gm__load_source_init(&source, model, false, 4096);
  assert_int_equal(gm__load_source_open(&source, 0, NULL), GM_OK);
  counted.fail_at = atomic_load(&counted.calls) + 1;
  assert_int_equal(gm__load_source_get(&source, 0, 16, &got, NULL), GM_ERR_OUT_OF_HOST_MEMORY);
  counted.fail_at = 0;
  assert_int_equal(gm__load_source_get(&source, 0, 16, &got, NULL), GM_OK);
  gm__load_source_close(&source);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
  const struct CMUnitTest tests[] = {
      TEST(test_bytes_come_from_the_right_shard),
      TEST(test_a_file_that_changed_is_refused),
      TEST(test_a_file_that_shrinks_is_found),
      TEST(test_no_host_memory_for_the_buffer),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

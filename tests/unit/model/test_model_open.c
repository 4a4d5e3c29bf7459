/* From paths to models: files, indexes, folders, links, and all that can be wrong with them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "gm/model.h"
#include "gm/model_config.h"
#include "support/counted_services.h"
#include "support/fail_each.h"
#include "support/model_check.h"
#include "support/safetensors_bytes.h"
#include "support/seeds.h"
#include "support/test_folder.h"

static const char *write_shard(const char *name, const char *header, uint64_t data) {
  safetensors_bytes file = safetensors_bytes_make(header, strlen(header), data, 0);
  const char *path = temp_folder_write(&folder, name, file.bytes, file.length);
  safetensors_bytes_free(&file);
  return path;
}

static const char *write_text(const char *name, const char *text) {
  return temp_folder_write(&folder, name, text, strlen(text));
}

static const char header_a[] = "{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}}";
static const char header_bc[] =
    "{\"__metadata__\":{\"k\":\"v\"},\"c\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]},"
    "\"b\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[2,4]}}";
static const char index_abc[] =
    "{\"weight_map\":{\"a\":\"2.safetensors\",\"b\":\"1.safetensors\",\"c\":\"1.safetensors\"}}";

static const char *write_sharded(const char *index_name) {
  write_shard("1.safetensors", header_bc, 4);
  write_shard("2.safetensors", header_a, 4);
  return write_text(index_name, index_abc);
}

static void test_one_file(void **state) {
  (void)state;
  check_opens(write_shard("any name", header_a, 4), 1, 1);
  assert_int_equal(symlink("any name", temp_folder_join(&folder, "link")), 0);
  check_opens(temp_folder_join(&folder, "link"), 1, 1);
}

static void test_an_index_and_its_shards(void **state) {
  (void)state;
  gm_model *model = NULL;
  assert_int_equal(gm_model_open(NULL, write_sharded("model.safetensors.index.json"), &model, NULL), GM_OK);
  static const char *const names[] = {"c", "b", "a"};
  static const uint32_t shards[] = {0, 0, 1};
  assert_int_equal(gm_model_tensor_bytes(model), 8);
  for (uint64_t i = 0; i < 3; i++) {
    gm_tensor_info info = {.struct_size = sizeof info};
    assert_int_equal(gm_model_tensor(model, i, &info, NULL), GM_OK);
    assert_string_equal(info.name, names[i]);
    assert_int_equal(info.shard, shards[i]);
  }
  assert_string_equal(gm_model_shard_path(model, 0), temp_folder_join(&folder, "1.safetensors"));
  assert_int_equal(gm_model_metadata_count(model, 0), 1);
  assert_int_equal(gm_model_metadata_count(model, 1), 0);
  gm_model_close(model);
}

static void test_an_index_in_the_current_folder(void **state) {
  (void)state;
  char before[4096];
  assert_non_null(getcwd(before, sizeof before));
  write_sharded("i.safetensors.index.json");
  assert_int_equal(chdir(folder.path), 0);
  gm_model *model = NULL;
  gm_status status = gm_model_open(NULL, "i.safetensors.index.json", &model, NULL);
  assert_int_equal(chdir(before), 0);
  assert_int_equal(status, GM_OK);
  assert_string_equal(gm_model_shard_path(model, 0), "1.safetensors");
  gm_model_close(model);
}

static void test_shards_may_be_links(void **state) {
  (void)state;
  write_shard("blob1", header_bc, 4);
  write_shard("blob2", header_a, 4);
  assert_int_equal(symlink("blob1", temp_folder_join(&folder, "1.safetensors")), 0);
  assert_int_equal(symlink("blob2", temp_folder_join(&folder, "2.safetensors")), 0);
  check_opens(write_text("model.safetensors.index.json", index_abc), 3, 2);
}

static void test_a_folder_offers_its_best(void **state) {
  (void)state;
  check_refused(folder.path, GM_ERR_NOT_FOUND, "the folder holds no safetensors and no GGUF model");
  write_shard("x.safetensors", header_a, 4);
  check_opens(folder.path, 1, 1);
  write_shard("y.safetensors", header_a, 4);
  check_refused(folder.path, GM_ERR_INVALID_ARGUMENT, "holds 2 models, name one of them");
  write_sharded("x.safetensors.index.json");
  check_opens(folder.path, 3, 2);
  write_text("y.safetensors.index.json", "{\"weight_map\":{\"a\":\"x.safetensors\"}}");
  check_refused(folder.path, GM_ERR_INVALID_ARGUMENT, "holds 2 models, name one of them");
  write_text("model.safetensors.index.json", "{\"weight_map\":{\"a\":\"x.safetensors\"}}");
  check_opens(folder.path, 1, 1);
  write_shard("model.safetensors", header_bc, 4);
  check_opens(folder.path, 2, 1);
}

/* One shard of several leads to all of them, or is refused. */
static void test_one_shard_is_no_model(void **state) {
  (void)state;
  const char *one = write_shard("m-00001-of-00002.safetensors", header_bc, 4);
  check_refused(one, GM_ERR_NOT_FOUND,
                "shard 1 of 2, and the index of all, m.safetensors.index.json, is not beside it");
  write_shard("m-00002-of-00002.safetensors", header_a, 4);
  write_text("m.safetensors.index.json",
             "{\"weight_map\":{\"a\":\"m-00002-of-00002.safetensors\",\"b\":\"m-00001-of-00002.safetensors\","
             "\"c\":\"m-00001-of-00002.safetensors\"}}");
  check_opens(one, 3, 2);
  check_opens(temp_folder_join(&folder, "m-00002-of-00002.safetensors"), 3, 2);
  check_opens(write_shard("all-00001-of-00001.safetensors", header_a, 4), 1, 1);
}

static void test_what_is_no_model_is_named(void **state) {
  (void)state;
  static const char *const files[][2] = {
      {"version https://git-lfs.github.com/spec/v1\noid sha256:12\nsize 4\n", "a pointer of Git LFS"},
      {"<!DOCTYPE html><html><body>404</body></html>", "a web page"},
      {"<html><head></head></html>", "a web page"},
      {"{\"error\":\"Access to this model is restricted\"}", "an error message of a server"},
      {"PK\003\004----------------", "a zip file: it is cut off"},
      {"\200\002}q\001(X----------", "a pickle"},
      {"\211HDF\r\n\032\n--------", "an HDF5 file"},
      {"\037\213\010\010------------", "compressed by gzip"},
      {"lmgg\231\312------------", "a model in the format of whisper.cpp (ggml), not GGUF"},
      {"tjgg\003-------------", "a model in a format that GGUF replaced (ggjt)"}};
  for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
    check_refused(write_text("model.safetensors", files[i][0]), GM_ERR_FORMAT, files[i][1]);
    check_refused(folder.path, GM_ERR_FORMAT, files[i][1]);
  }
}

static void test_index_and_shards_must_agree(void **state) {
  (void)state;
  write_sharded("i.json");
  const char *path = write_text("i.json", "{\"weight_map\":{\"a\":\"2.safetensors\",\"b\":\"1.safetensors\"}}");
  check_refused(path, GM_ERR_FORMAT, "/1.safetensors: byte 34: tensor \"c\" is not in the index");
  path = write_text("i.json",
                    "{\"weight_map\":{\"a\":\"2.safetensors\",\"b\":\"1.safetensors\",\"c\":\"1.safetensors\","
                    "\"d\":\"1.safetensors\"}}");
  check_refused(path, GM_ERR_FORMAT, "/i.json: byte 75: tensor \"d\" is not in its shard \"1.safetensors\"");
  path = write_text("i.json", "{\"weight_map\":{\"a\":\"2.safetensors\",\"a0\":\"1.safetensors\"}}");
  check_refused(path, GM_ERR_FORMAT, "/i.json: byte 35: tensor \"a0\" is not in its shard \"1.safetensors\"");
  path = write_text("i.json",
                    "{\"weight_map\":{\"a\":\"1.safetensors\",\"b\":\"2.safetensors\",\"c\":\"1.safetensors\"}}");
  check_refused(path, GM_ERR_FORMAT, "tensor \"a\" is in another shard than \"1.safetensors\"");
}

static void test_broken_shards(void **state) {
  (void)state;
  char path[512];
  snprintf(path, sizeof path, "%s", write_text("i.json", index_abc));
  check_refused(path, GM_ERR_NOT_FOUND, "/1.safetensors: no such file");
  write_shard("1.safetensors", header_bc, 3);
  check_refused(path, GM_ERR_FORMAT, "/1.safetensors: byte ");
  write_shard("1.safetensors", header_bc, 4);
  assert_int_equal(mkdir(temp_folder_join(&folder, "2.safetensors"), 0700), 0);
  check_refused(path, GM_ERR_IO, "/2.safetensors: is a folder");
  assert_int_equal(rmdir(temp_folder_join(&folder, "2.safetensors")), 0);
  assert_int_equal(mkfifo(temp_folder_join(&folder, "2.safetensors"), 0600), 0);
  check_refused(path, GM_ERR_IO, "/2.safetensors: is a pipe");
  assert_int_equal(unlink(temp_folder_join(&folder, "2.safetensors")), 0);
  write_shard("2.safetensors", "{\"b\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}}", 4);
  check_refused(path, GM_ERR_FORMAT, "/2.safetensors: byte 9: tensor \"b\" is there twice, also in another shard");
}

static void test_files_that_are_no_model(void **state) {
  (void)state;
  check_refused(temp_folder_join(&folder, "none"), GM_ERR_NOT_FOUND, "no such file");
  check_refused(write_text("empty", ""), GM_ERR_FORMAT,
                "byte 0: neither GGUF nor safetensors: ends inside the 8 bytes");
  check_refused(write_text("short", "1234567"), GM_ERR_FORMAT,
                "byte 7: neither GGUF nor safetensors: ends inside the 8 bytes");
  check_refused(write_text("text", "this is no model at all"), GM_ERR_FORMAT,
                "byte 0: neither GGUF nor safetensors: a header of");
  check_refused(write_text("empty.json", ""), GM_ERR_FORMAT, "byte 0: an object is expected");
  check_refused("/dev/null", GM_ERR_IO, "is a device");
  assert_int_equal(mkfifo(temp_folder_join(&folder, "pipe"), 0600), 0);
  check_refused(temp_folder_join(&folder, "pipe"), GM_ERR_IO, "is a pipe");
}

static void test_seeds_of_the_fuzzer(void **state) {
  (void)state;
  seeds_check("safetensors", 30);
}

/* A sparse file can be far larger than the machine's memory. */
static void test_an_oversized_index_is_refused_unread(void **state) {
  (void)state;
  const char *path = write_text("big.json", "{");
  assert_int_equal(truncate(path, (off_t)1 << 40), 0);
  check_refused(path, GM_ERR_FORMAT, "byte 0: an index of 1099511627776 bytes, more than 100000000");
}

static void test_wrong_arguments_are_named(void **state) {
  (void)state;
  gm_model *model = NULL;
  gm_error err;
  counted_services counted;
  counted_services_init(&counted);
  assert_int_equal(gm_model_open(NULL, NULL, &model, &err), GM_ERR_INVALID_ARGUMENT);
  assert_string_equal(err.message, "`path` is NULL");
  assert_int_equal(gm_model_open(NULL, "", &model, &err), GM_ERR_INVALID_ARGUMENT);
  assert_string_equal(err.message, "`path` is empty");
  assert_int_equal(gm_model_open(NULL, "x", NULL, &err), GM_ERR_INVALID_ARGUMENT);
  assert_string_equal(err.message, "`out` is NULL");
  counted.services.release = NULL;
  assert_int_equal(gm_model_open(&counted.services, "x", &model, &err), GM_ERR_INVALID_ARGUMENT);
  assert_null(model);
}

static gm_status open_and_close(const gm_services *services) {
  gm_model *model = NULL;
  const gm_status status = gm_model_open(services, folder.path, &model, NULL);
  assert_true((status == GM_OK) == (model != NULL));
  gm_model_close(model);
  return status;
}

static void test_each_host_allocation_failed(void **state) {
  (void)state;
  write_sharded("model.safetensors.index.json");
  fail_each_allocation(open_and_close, 20);
}

/* A failure from deep inside is told in the name of the call that was made. */
static void test_failures_name_the_call(void **state) {
  (void)state;
  char path[256], config[256];
  snprintf(path, sizeof path, "%s", write_text("cut.safetensors", "1234"));
  snprintf(config, sizeof config, "%s", write_text("config.json", "{\"hidden_size\": "));
  gm_model *model = NULL;
  gm_model_config read = {.struct_size = sizeof read};
  gm_error err;
  assert_int_equal(gm_model_open(NULL, path, &model, &err), GM_ERR_FORMAT);
  assert_string_equal(err.op, "gm_model_open");
  assert_int_equal(gm_model_open_header(NULL, path, &model, &err), GM_ERR_FORMAT);
  assert_string_equal(err.op, "gm_model_open_header");
  assert_int_equal(gm_model_open_header(NULL, path, &model, NULL), GM_ERR_FORMAT);
  assert_int_equal(gm_model_config_load(NULL, config, &read, &err), GM_ERR_FORMAT);
  assert_string_equal(err.op, "gm_model_config_load");
  counted_services counted;
  counted_services_init(&counted);
  counted.fail_at = 1;
  assert_int_equal(gm_model_config_load(&counted.services, config, &read, &err), GM_ERR_OUT_OF_HOST_MEMORY);
  assert_string_equal(err.op, "gm_model_config_load");
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, folder_setup, folder_teardown)
  const struct CMUnitTest tests[] = {
      TEST(test_one_file),
      TEST(test_an_index_and_its_shards),
      TEST(test_an_index_in_the_current_folder),
      TEST(test_shards_may_be_links),
      TEST(test_a_folder_offers_its_best),
      TEST(test_one_shard_is_no_model),
      TEST(test_what_is_no_model_is_named),
      TEST(test_index_and_shards_must_agree),
      TEST(test_broken_shards),
      TEST(test_files_that_are_no_model),
      TEST(test_seeds_of_the_fuzzer),
      TEST(test_an_oversized_index_is_refused_unread),
      TEST(test_wrong_arguments_are_named),
      TEST(test_failures_name_the_call),
      TEST(test_each_host_allocation_failed),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

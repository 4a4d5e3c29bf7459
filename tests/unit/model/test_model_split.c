/* Split GGUF models: all parts found from any of them, checked against each other, and loaded. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "core/model/gguf.h"
#include "core/model/model_split.h"
#include "gm/copy.h"
#include "gm/load.h"
#include "support/gguf_bytes.h"
#include "support/model_check.h"
#include "support/test_folder.h"

enum { PART_BYTES = 5000 };

/* Part `number` (from 0) of `count`, with one tensor, whose data has the seed `number`. */
static const char *write_part(const char *name, uint64_t number, uint64_t count, uint64_t tensors) {
  gguf_bytes file;
  char tensor[] = "t0";
  tensor[1] = (char)('0' + number);
  gguf_bytes_begin(&file, 3, 1, 3);
  gguf_bytes_value(&file, "split.no", GGUF_U16, number, 2);
  gguf_bytes_value(&file, "split.count", GGUF_U16, count, 2);
  gguf_bytes_value(&file, "split.tensors.count", GGUF_I32, tensors, 4);
  gguf_bytes_tensor(&file, tensor, 24, 0, 1, (uint64_t)PART_BYTES);
  gguf_bytes_data(&file, 32, PART_BYTES, number);
  const char *path = temp_folder_write(&folder, name, file.bytes, file.length);
  gguf_bytes_free(&file);
  return path;
}

static const char *write_three(void) {
  write_part("m-00001-of-00003.gguf", 0, 3, 3);
  write_part("m-00003-of-00003.gguf", 2, 3, 3);
  return write_part("m-00002-of-00003.gguf", 1, 3, 3);
}

static void test_names(void **state) {
  (void)state;
  gm__split_name split;
  assert_true(gm__split_name_parse("a/b-00002-of-00010.gguf", ".gguf", &split));
  assert_int_equal(split.stem, 3);
  assert_int_equal(split.number, 2);
  assert_int_equal(split.count, 10);
  static const char *const bad[] = {"",
                                    "-00001-of-00002.gguf",
                                    "m-00000-of-00002.gguf",
                                    "m-00003-of-00002.gguf",
                                    "m-0001-of-00002.gguf",
                                    "m-00001-of-0000x.gguf",
                                    "m-00001_of-00002.gguf",
                                    "m_00001-of-00002.gguf",
                                    "m-00001-of-00002.bin"};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) assert_false(gm__split_name_parse(bad[i], ".gguf", &split));
  assert_true(gm__split_name_parse("m-00002-of-00003.safetensors", ".safetensors", &split));
  assert_true(split.stem == 1 && split.number == 2 && split.count == 3);
}

static void test_any_part_and_the_folder_lead_to_all(void **state) {
  (void)state;
  check_opens(write_three(), 3, 3);
  check_opens(temp_folder_join(&folder, "m-00001-of-00003.gguf"), 3, 3);
  check_opens(folder.path, 3, 3);
}

static void test_a_missing_part_is_named(void **state) {
  (void)state;
  write_three();
  remove(temp_folder_join(&folder, "m-00001-of-00003.gguf"));
  check_refused(temp_folder_join(&folder, "m-00003-of-00003.gguf"), GM_ERR_NOT_FOUND, "m-00001-of-00003.gguf");
  check_refused(folder.path, GM_ERR_NOT_FOUND, "m-00001-of-00003.gguf");
}

static void test_parts_that_do_not_belong_together(void **state) {
  (void)state;
  const char *path = write_three();
  write_part("m-00003-of-00003.gguf", 1, 3, 3);
  check_refused(path, GM_ERR_FORMAT, "split.no is 1, not 2");
  write_part("m-00003-of-00003.gguf", 2, 4, 3);
  check_refused(path, GM_ERR_FORMAT, "split.count is 4, not 3");
  write_part("m-00003-of-00003.gguf", 2, 3, 5);
  check_refused(path, GM_ERR_FORMAT, "split.tensors.count is 5, not 3");
  check_refused(write_part("other.gguf", 0, 3, 3), GM_ERR_FORMAT, "-of-00003.gguf");
  check_refused(write_part("n-00001-of-00002.gguf", 0, 3, 3), GM_ERR_FORMAT, "-of-00003.gguf");
}

static void test_fewer_tensors_than_stated(void **state) {
  (void)state;
  write_part("m-00001-of-00002.gguf", 0, 2, 3);
  check_refused(write_part("m-00002-of-00002.gguf", 1, 2, 3), GM_ERR_FORMAT, "the 2 parts have 2");
}

static void test_a_name_alone_makes_no_part(void **state) {
  (void)state;
  check_opens(write_part("m-00001-of-00009.gguf", 0, 1, 1), 1, 1);
}

static const char *write_file(const char *name, const char *architecture, const char *type) {
  gguf_bytes file;
  gguf_bytes_begin(&file, 3, 1, 2);
  gguf_bytes_text(&file, "general.architecture", architecture);
  gguf_bytes_text(&file, "general.type", type);
  gguf_bytes_tensor(&file, "t", 24, 0, 1, (uint64_t)PART_BYTES);
  gguf_bytes_data(&file, 32, PART_BYTES, 1);
  const char *path = temp_folder_write(&folder, name, file.bytes, file.length);
  gguf_bytes_free(&file);
  return path;
}

/* A file that goes beside a model says so in its header, whatever its name is. */
static void test_a_folder_with_a_model_and_what_goes_beside_it(void **state) {
  (void)state;
  write_file("projector.gguf", "clip", "model");
  check_opens(folder.path, 1, 1); /* the only file there is */
  write_file("vision.gguf", "llama", "mmproj");
  check_refused(folder.path, GM_ERR_INVALID_ARGUMENT, "holds 2 models, name one of them");
  write_file("lora.gguf", "llama", "adapter");
  write_file("importance.gguf", "llama", "imatrix");
  gm_model *model = NULL;
  const char *path = write_file("z.gguf", "llama", "model");
  assert_int_equal(gm_model_open(NULL, folder.path, &model, NULL), GM_OK);
  assert_string_equal(gm_model_shard_path(model, 0), path);
  gm_model_close(model);
  write_file("a.gguf", "llama", "model");
  check_refused(folder.path, GM_ERR_INVALID_ARGUMENT, "holds 2 models, name one of them");
}

static void test_what_is_no_file(void **state) {
  (void)state;
  check_refused(temp_folder_write(&folder, "empty.gguf", "", 0), GM_ERR_FORMAT, "empty.gguf");
  assert_int_equal(mkfifo(temp_folder_join(&folder, "pipe.gguf"), 0600), 0);
  check_refused(temp_folder_join(&folder, "pipe.gguf"), GM_ERR_IO, "a pipe");
  const char *path = write_part("secret.gguf", 0, 1, 1);
  assert_int_equal(chmod(path, 0), 0);
  if (geteuid() != 0) check_refused(path, GM_ERR_IO, "permission denied");
}

/* The file that fstat saw is gone when the header is read. */
static void test_a_file_that_shrinks(void **state) {
  (void)state;
  gm__input_file file;
  gm__contents contents;
  const char *path = write_part("m.gguf", 0, 1, 1);
  assert_int_equal(gm__input_file_open(path, &file, NULL), GM_OK);
  assert_int_equal(truncate(path, 40), 0);
  assert_int_equal(gm__gguf_read(NULL, &file, path, false, &contents, NULL), GM_ERR_IO);
  gm__input_file_close(&file);
}

/* ---- loading ---- */

static void check_block(gm_pool *pool, const gm_loaded_model *loaded, uint64_t index) {
  gm_block block;
  static unsigned char got[PART_BYTES];
  assert_int_equal(gm_loaded_model_block(loaded, index, &block, NULL), GM_OK);
  assert_int_equal(gm_block_read(pool, &block, 0, got, PART_BYTES, NULL, NULL, NULL), GM_OK);
  for (uint64_t i = 0; i < PART_BYTES; i++) assert_int_equal(got[i], safetensors_bytes_at(i, index));
}

static void check_load(const gm_model *model, gm_pool *pool, gm_load_path path) {
  gm_load_params params = {.struct_size = sizeof params, .path = path, .verify = true, .chunk_bytes = 4096};
  gm_load_result result = {.struct_size = sizeof result};
  gm_loaded_model *loaded = NULL;
  gm_error err;
  if (gm_model_load(model, pool, &params, &loaded, &result, &err) != GM_OK) fail_msg("%s", err.message);
  assert_true(result.verified);
  assert_int_equal(result.bytes, 3 * PART_BYTES);
  for (uint64_t i = 0; i < 3; i++) check_block(pool, loaded, i);
  assert_int_equal(gm_loaded_model_release(loaded, NULL), GM_OK);
}

static void test_loading_by_each_path(void **state) {
  (void)state;
  gm_context_params params = {.struct_size = sizeof params, .ignore_environment = true};
  gm_context *context = NULL;
  gm_device *device = NULL;
  gm_pool *pool = NULL;
  gm_model *model = NULL, *header = NULL;
  gm_loaded_model *loaded = NULL;
  const char *path = write_three();
  assert_int_equal(gm_model_open(NULL, path, &model, NULL), GM_OK);
  assert_int_equal(gm_model_open_header(NULL, path, &header, NULL), GM_OK);
  assert_int_equal(gm_context_create(&params, &context, NULL), GM_OK);
  assert_int_equal(gm_device_open_index(context, "cpu", 0, &device, NULL), GM_OK);
  assert_int_equal(gm_pool_create(device, NULL, &pool, NULL), GM_OK);
  check_load(model, pool, GM_LOAD_PATH_READ);
  check_load(model, pool, GM_LOAD_PATH_MMAP);
  assert_int_equal(gm_model_load(header, pool, NULL, &loaded, NULL, NULL), GM_ERR_INVALID_ARGUMENT);
  gm_model_close(model);
  gm_model_close(header);
  assert_int_equal(gm_pool_destroy(pool, NULL), GM_OK);
  assert_int_equal(gm_device_close(device, NULL), GM_OK);
  assert_int_equal(gm_context_destroy(context, NULL), GM_OK);
}

#define in_folder(test) cmocka_unit_test_setup_teardown(test, folder_setup, folder_teardown)

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_names),
      in_folder(test_any_part_and_the_folder_lead_to_all),
      in_folder(test_a_missing_part_is_named),
      in_folder(test_parts_that_do_not_belong_together),
      in_folder(test_fewer_tensors_than_stated),
      in_folder(test_a_name_alone_makes_no_part),
      in_folder(test_a_folder_with_a_model_and_what_goes_beside_it),
      in_folder(test_what_is_no_file),
      in_folder(test_a_file_that_shrinks),
      in_folder(test_loading_by_each_path),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

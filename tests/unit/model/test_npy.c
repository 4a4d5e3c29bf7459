/* Arrays of NumPy, and raw files: every rule, each broken in turn, from memory and from files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/counted_services.h"
#include "support/fail_each.h"
#include "support/npy_bytes.h"
#include "support/seeds.h"
#include "support/temp_folder.h"

/* ---- one array ---- */

static void test_each_version_gives_the_same_table(void **state) {
  (void)state;
  for (unsigned version = 1; version <= 3; version++) {
    npy_bytes file = {.length = 0};
    gm_model *model = NULL;
    gm_error err = {0};
    npy_add_array(&file, version, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }   \n", 24);
    if (npy_open(NULL, &file, false, &model, &err)) fail_msg("%s", err.message);
    assert_int_equal(gm_model_tensor_count(model), 1);
    assert_int_equal(gm_model_tensor_bytes(model), 24);
    const gm_tensor_info info = npy_tensor_of(model, 0);
    assert_string_equal(info.name, "wte");
    assert_int_equal(info.dtype, GM_DTYPE_F32);
    assert_int_equal(info.rank, 2);
    assert_int_equal(info.shape[0], 2);
    assert_int_equal(info.shape[1], 3);
    assert_int_equal(info.file_offset, file.length - 24);
    gm_model_close(model);
  }
}

static void test_spellings_of_one_header(void **state) {
  (void)state;
  static const struct {
    const char *literal;
    size_t data;
    gm_dtype dtype;
    uint32_t rank;
  } rows[] = {{"{'descr':'|u1','fortran_order':False,'shape':(3,)}", 3, GM_DTYPE_U8, 1},
              {"{\"shape\": (), \"descr\": \"<f8\", \"fortran_order\": False}", 8, GM_DTYPE_F64, 0},
              {" {'shape': (2L, 2L), 'fortran_order': False, 'descr': '<i2'} ", 8, GM_DTYPE_I16, 2},
              {"{'descr': '<f2', 'fortran_order': True, 'shape': (4, 1), }", 8, GM_DTYPE_F16, 2},
              {"{'descr': '|b1', 'fortran_order': False, 'shape': (0, 9)}", 0, GM_DTYPE_BOOL, 2},
              {"{'descr': '>i1', 'fortran_order': False, 'shape': (1,)}", 1, GM_DTYPE_I8, 1},
              {"{'descr': '<i4', 'fortran_order': False, 'shape': (1,)}", 4, GM_DTYPE_I32, 1},
              {"{'descr': '<i8', 'fortran_order': False, 'shape': (1,)}", 8, GM_DTYPE_I64, 1},
              {"{'descr': '<u2', 'fortran_order': False, 'shape': (1,)}", 2, GM_DTYPE_U16, 1},
              {"{'descr': '<u4', 'fortran_order': False, 'shape': (1,)}", 4, GM_DTYPE_U32, 1},
              {"{'descr': '<u8', 'fortran_order': False, 'shape': (1,)}", 8, GM_DTYPE_U64, 1},
              {"{'descr': '<c8', 'fortran_order': False, 'shape': (1,)}", 8, GM_DTYPE_C64, 1}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    npy_bytes file = {.length = 0};
    gm_model *model = NULL;
    gm_error err = {0};
    npy_add_array(&file, 1, rows[i].literal, rows[i].data);
    if (npy_open(NULL, &file, false, &model, &err)) fail_msg("%s: %s", rows[i].literal, err.message);
    const gm_tensor_info info = npy_tensor_of(model, 0);
    assert_int_equal(info.dtype, rows[i].dtype);
    assert_int_equal(info.rank, rows[i].rank);
    assert_int_equal(info.bytes, rows[i].data);
    gm_model_close(model);
  }
}

static void test_a_header_that_gm_refuses(void **state) {
  (void)state;
  static const struct {
    const char *literal;
    gm_status status;
    const char *words;
  } rows[] = {
      {"{'descr': '>f4', 'fortran_order': False, 'shape': (1,)}", GM_ERR_NOT_SUPPORTED, "the high byte first"},
      {"{'descr': '|O', 'fortran_order': False, 'shape': (1,)}", GM_ERR_NOT_SUPPORTED, "gm reads no pickles"},
      {"{'descr': '<V2', 'fortran_order': False, 'shape': (2,)}", GM_ERR_NOT_SUPPORTED, "NumPy writes bfloat16 so"},
      {"{'descr': '<c16', 'fortran_order': False, 'shape': (1,)}", GM_ERR_NOT_SUPPORTED, "no such type"},
      {"{'descr': '<U5', 'fortran_order': False, 'shape': (1,)}", GM_ERR_NOT_SUPPORTED, "no such type"},
      {"{'descr': 'f4', 'fortran_order': False, 'shape': (1,)}", GM_ERR_NOT_SUPPORTED, "no byte order"},
      {"{'descr': '', 'fortran_order': False, 'shape': (1,)}", GM_ERR_NOT_SUPPORTED, "no byte order"},
      {"{'descr': [('a','<f4')], 'fortran_order': False, 'shape': (1,)}", GM_ERR_NOT_SUPPORTED, "structures"},
      {"{'descr': '<f4', 'fortran_order': True, 'shape': (2, 2)}", GM_ERR_NOT_SUPPORTED, "columns come first"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1)}", GM_ERR_NOT_SUPPORTED,
       "too many dimensions"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}", GM_ERR_FORMAT, "are 8 bytes, 4 follow"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}", GM_ERR_FORMAT, "a number without sign"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (1.0,)}", GM_ERR_FORMAT, "must end with ')'"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (18446744073709551616,)}", GM_ERR_FORMAT, "2^64 or more"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296)}", GM_ERR_FORMAT, "2^64 bytes"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775808,)}", GM_ERR_FORMAT, "2^64 bytes"},
      {"{'descr': '<f4', 'fortran_order': 0, 'shape': (1,)}", GM_ERR_FORMAT, "True or False"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': [1]}", GM_ERR_FORMAT, "must begin with '('"},
      {"{'descr': '<f4', 'fortran_order': False}", GM_ERR_FORMAT, "is missing"},
      {"{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (1,)}", GM_ERR_FORMAT, "there twice"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,), 'x': 1}", GM_ERR_FORMAT, "not of the format"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,)} x", GM_ERR_FORMAT, "something follows"},
      {"{'de\\scr': '<f4', 'fortran_order': False, 'shape': (1,)}", GM_ERR_FORMAT, "a backslash"},
      {"{'descr: <f4, fortran_order: False, shape: (1,)}", GM_ERR_FORMAT, "does not end"},
      {"{descr: '<f4'}", GM_ERR_FORMAT, "a string must come here"},
      {"{'descr' '<f4'}", GM_ERR_FORMAT, "a ':' must come here"},
      {"{'descr': '<f4' 'shape': (1,)}", GM_ERR_FORMAT, "a ',' or '}'"},
      {"[]", GM_ERR_FORMAT, "must begin with '{'"},
      {"", GM_ERR_FORMAT, "must begin with '{'"}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    npy_bytes file = {.length = 0};
    npy_add_array(&file, 1, rows[i].literal, 4);
    npy_check_refused(&file, rows[i].status, rows[i].words);
  }
}

static void test_versions_and_lengths(void **state) {
  (void)state;
  npy_bytes file = {.length = 0};
  npy_add_array(&file, 4, "{}", 0);
  npy_check_refused(&file, GM_ERR_NOT_SUPPORTED, "version 4, gm knows 1 to 3");
  file.length = 0;
  npy_add(&file, "\223NUMPY\002\000\000\000\001\000", 12); /* a header of 65536 bytes */
  npy_check_refused(&file, GM_ERR_FORMAT, "its header is cut off");
}

/* Whatever is missing is told; a header alone is enough where that is asked for. */
static void test_a_file_cut_anywhere(void **state) {
  (void)state;
  npy_bytes whole = {.length = 0};
  npy_add_array(&whole, 1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}", 8);
  for (size_t length = 6; length < whole.length; length++) {
    npy_bytes cut = whole;
    gm_model *model = NULL;
    cut.length = length;
    npy_check_refused(&cut, GM_ERR_FORMAT, "");
    const bool has_header = length >= whole.length - 8;
    assert_int_equal(npy_open(NULL, &cut, true, &model, NULL) == GM_OK, has_header);
    if (has_header) assert_int_equal(npy_tensor_of(model, 0).bytes, 8);
    gm_model_close(model);
  }
  npy_add_number(&whole, 0, 1);
  npy_check_refused(&whole, GM_ERR_FORMAT, "are 8 bytes, 9 follow");
}

/* ---- host memory, files ---- */

static gm_status attempt_array(const gm_services *services) {
  npy_bytes file = {.length = 0};
  gm_model *model = NULL;
  npy_add_array(&file, 1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}", 8);
  const gm_status status = npy_open(services, &file, false, &model, NULL);
  gm_model_close(model);
  return status;
}

static void test_host_memory_fails(void **state) {
  (void)state;
  fail_each_allocation(attempt_array, 6);
}

static const char *write_file(temp_folder *folder, const char *name, const npy_bytes *file) {
  const char *path = temp_folder_join(folder, name);
  FILE *out = fopen(path, "wb");
  assert_non_null(out);
  assert_int_equal(fwrite(file->at, 1, file->length, out), file->length);
  assert_int_equal(fclose(out), 0);
  return path;
}

static void test_files_are_known_by_their_first_bytes(void **state) {
  (void)state;
  temp_folder folder;
  temp_folder_make(&folder);
  npy_bytes array = {.length = 0};
  gm_model *model = NULL;
  npy_add_array(&array, 1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}", 8);
  assert_int_equal(gm_model_open(NULL, write_file(&folder, "bias.npy", &array), &model, NULL), GM_OK);
  assert_string_equal(npy_tensor_of(model, 0).name, "bias");
  gm_model_close(model);
  assert_int_equal(gm_model_open(NULL, write_file(&folder, "bias", &array), &model, NULL), GM_OK);
  assert_string_equal(npy_tensor_of(model, 0).name, "bias");
  gm_model_close(model);
  temp_folder_remove(&folder);
}

static void test_seeds_of_the_fuzzer(void **state) {
  (void)state;
  seeds_check("npy", 20);
}

static void check_raw(const char *path, gm_tensor_info tensor, gm_status wanted, const char *words) {
  gm_model *model = NULL;
  gm_error err = {0};
  const gm_status status = gm_model_open_raw(NULL, path, &tensor, &model, &err);
  if (status != wanted || (status && !strstr(err.message, words))) {
    fail_msg("%s: %s", gm_status_name(status), err.message);
  }
  assert_string_equal(err.op, status == GM_ERR_NOT_FOUND ? err.op : "gm_model_open_raw");
  assert_null(model);
}

static void test_a_file_that_the_caller_describes(void **state) {
  (void)state;
  temp_folder folder;
  temp_folder_make(&folder);
  npy_bytes file = {.length = 0};
  gm_model *model = NULL;
  for (unsigned i = 0; i < 100; i++) npy_add_number(&file, i, 1);
  char path[512];
  snprintf(path, sizeof path, "%s", write_file(&folder, "weights.bin", &file));
  gm_tensor_info tensor = {
      .struct_size = sizeof tensor, .name = "w", .dtype = GM_DTYPE_F16, .rank = 2, .shape = {3, 4}, .file_offset = 76};
  assert_int_equal(gm_model_open_raw(NULL, path, &tensor, &model, NULL), GM_OK);
  const gm_tensor_info info = npy_tensor_of(model, 0);
  assert_string_equal(info.name, "w");
  assert_int_equal(info.bytes, 24);
  assert_int_equal(info.file_offset, 76);
  assert_int_equal(info.shape[1], 4);
  gm_model_close(model);

  gm_tensor_info wrong = tensor;
  wrong.file_offset = 77;
  check_raw(path, wrong, GM_ERR_FORMAT, "byte 100: it ends before the 24 bytes at 77");
  wrong.file_offset = UINT64_MAX;
  check_raw(path, wrong, GM_ERR_FORMAT, "it ends before");
  wrong = tensor;
  wrong.bytes = 23;
  check_raw(path, wrong, GM_ERR_INVALID_ARGUMENT, "`bytes` is 23, `dtype` and `shape` are 24");
  wrong = tensor;
  wrong.rank = GM_TENSOR_MAX_RANK + 1;
  check_raw(path, wrong, GM_ERR_INVALID_ARGUMENT, "`rank` is 17");
  wrong = tensor;
  wrong.dtype = (gm_dtype)9999;
  check_raw(path, wrong, GM_ERR_INVALID_ARGUMENT, "gm has no such type");
  wrong = tensor;
  wrong.name = "";
  check_raw(path, wrong, GM_ERR_INVALID_ARGUMENT, "`name` is empty");
  wrong.name = NULL;
  check_raw(path, wrong, GM_ERR_INVALID_ARGUMENT, "`name` is NULL");
  wrong = tensor;
  wrong.struct_size = 4;
  check_raw(path, wrong, GM_ERR_INVALID_ARGUMENT, "struct_size");
  check_raw(temp_folder_join(&folder, "none"), tensor, GM_ERR_NOT_FOUND, "no such file");
  assert_int_equal(gm_model_open_raw(NULL, NULL, &tensor, &model, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_model_open_raw(NULL, path, NULL, &model, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_model_open_raw(NULL, path, &tensor, NULL, NULL), GM_ERR_INVALID_ARGUMENT);
  temp_folder_remove(&folder);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_each_version_gives_the_same_table),
      cmocka_unit_test(test_spellings_of_one_header),
      cmocka_unit_test(test_a_header_that_gm_refuses),
      cmocka_unit_test(test_versions_and_lengths),
      cmocka_unit_test(test_a_file_cut_anywhere),
      cmocka_unit_test(test_host_memory_fails),
      cmocka_unit_test(test_files_are_known_by_their_first_bytes),
      cmocka_unit_test(test_seeds_of_the_fuzzer),
      cmocka_unit_test(test_a_file_that_the_caller_describes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

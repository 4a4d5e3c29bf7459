/* GGUF headers: what is read from good ones of each version, and that every bad one is refused with its place. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "core/model/gguf.h"
#include "core/model/model.h"
#include "gm/model_value.h"
#include "support/counted_services.h"
#include "support/gguf_bytes.h"
#include "support/great_many.h"

static gm_status open_bytes(const gm_services *services, const gguf_bytes *file, bool header_only, gm_model **out,
                            gm_error *err) {
  return gm__model_open_memory(services, file->bytes, file->length, "m.gguf", header_only, out, err);
}

static gm_model *open_good(const gguf_bytes *file) {
  gm_model *model = NULL;
  gm_error err = {0};
  if (open_bytes(NULL, file, false, &model, &err) != GM_OK) fail_msg("%s", err.message);
  return model;
}

static void check_bad(gguf_bytes *file, gm_status wanted, const char *words) {
  gm_model *model = NULL;
  gm_error err = {0};
  gm_status status = open_bytes(NULL, file, false, &model, &err);
  if (status != wanted || !strstr(err.message, words)) {
    fail_msg("%s \"%s\", not %s \"%s\"", gm_status_name(status), err.message, gm_status_name(wanted), words);
  }
  assert_null(model);
  gguf_bytes_free(file);
}

/* Every kind of value, two tensors, the second one quantised. */
static void make_good(gguf_bytes *file, uint32_t version) {
  gguf_bytes_begin(file, version, 2, 5);
  gguf_bytes_text(file, "general.architecture", "llama");
  gguf_bytes_u32(file, "general.alignment", 64);
  gguf_bytes_value(file, "x.signed", GGUF_I16, 0xfffe, 2);
  gguf_bytes_array(file, "x.words", GGUF_STRING, 3);
  gguf_bytes_string(file, "one");
  gguf_bytes_string(file, "");
  gguf_bytes_string(file, "three");
  gguf_bytes_array(file, "x.numbers", GGUF_F32, 2);
  gguf_bytes_number(file, 0x3fc00000, 4);
  gguf_bytes_number(file, 0xbf800000, 4);
  gguf_bytes_tensor(file, "a", 0, 0, 2, (uint64_t)3, (uint64_t)5);
  gguf_bytes_tensor(file, "b", 2, 64, 3, (uint64_t)64, (uint64_t)2, (uint64_t)1);
  gguf_bytes_data(file, 64, 64 + 72, 0);
}

static void check_tensors(const gm_model *model, uint64_t data_at) {
  gm_tensor_info info = {.struct_size = sizeof info};
  assert_int_equal(gm_model_tensor_count(model), 2);
  assert_int_equal(gm_model_tensor_bytes(model), 60 + 72);
  assert_int_equal(gm_model_tensor(model, 0, &info, NULL), GM_OK);
  assert_string_equal(info.name, "a");
  assert_int_equal(info.dtype, GM_DTYPE_F32);
  assert_int_equal(info.rank, 2);
  assert_int_equal(info.shape[0], 5);
  assert_int_equal(info.shape[1], 3);
  assert_int_equal(info.file_offset, data_at);
  assert_int_equal(gm_model_tensor(model, 1, &info, NULL), GM_OK);
  assert_int_equal(info.dtype, GM_DTYPE_Q4_0);
  assert_int_equal(info.shape[0] * 100 + info.shape[1] * 10, 120);
  assert_int_equal(info.shape[2], 64);
  assert_int_equal(info.file_offset, data_at + 64);
  assert_int_equal(info.bytes, 72);
}

static void check_values(const gm_model *model) {
  gm_model_value value = {.struct_size = sizeof value};
  const char *key = NULL;
  assert_int_equal(gm_model_value_count(model, 0), 5);
  assert_int_equal(gm_model_value_at(model, 0, 2, &key, &value, NULL), GM_OK);
  assert_string_equal(key, "x.signed");
  assert_int_equal(value.kind, GM_VALUE_I64);
  assert_int_equal(value.i64, -2);
  assert_int_equal(gm_model_find_value(model, "general.architecture", &value, NULL), GM_OK);
  assert_string_equal(value.string, "llama");
  assert_int_equal(value.length, 5);
  assert_int_equal(gm_model_find_value(model, "x.words", &value, NULL), GM_OK);
  assert_int_equal(value.kind, GM_VALUE_ARRAY);
  assert_int_equal(value.element_kind, GM_VALUE_STRING);
  assert_int_equal(value.length, 3);
  assert_int_equal(gm_model_value_element(model, "x.words", 1, &value, NULL), GM_OK);
  assert_string_equal(value.string, "");
  assert_int_equal(gm_model_value_element(model, "x.words", 2, &value, NULL), GM_OK);
  assert_string_equal(value.string, "three");
  assert_int_equal(gm_model_value_element(model, "x.numbers", 1, &value, NULL), GM_OK);
  assert_true(value.kind == GM_VALUE_F64 && value.f64 > -1.5 && value.f64 < -0.5);
}

static void test_each_version(void **state) {
  (void)state;
  for (uint32_t version = 1; version <= 3; version++) {
    gguf_bytes file;
    make_good(&file, version);
    gm_model *model = open_good(&file);
    check_tensors(model, file.length - 64 - 72);
    check_values(model);
    gm_model_close(model);
    gguf_bytes_free(&file);
  }
}

/* The header may end anywhere between two multiples of the alignment, and on one. */
static void test_data_begins_at_the_next_multiple(void **state) {
  (void)state;
  enum { USUAL = 32 };
  static const char name[USUAL + 1] = "01234567890123456789012345678901";
  for (int i = 0; i < USUAL; i++) {
    gguf_bytes file;
    gm_tensor_info info = {.struct_size = sizeof info};
    gguf_bytes_begin(&file, 3, 1, 1);
    gguf_bytes_text(&file, "general.name", name + i);
    gguf_bytes_tensor(&file, "a", 0, 0, 1, (uint64_t)3);
    const uint64_t end = file.length;
    gguf_bytes_data(&file, USUAL, 12, 0);
    gm_model *model = open_good(&file);
    assert_int_equal(gm_model_tensor(model, 0, &info, NULL), GM_OK);
    assert_in_range(info.file_offset, end, end + USUAL - 1);
    assert_int_equal(info.file_offset % USUAL, 0);
    gm_model_close(model);
    gguf_bytes_free(&file);
  }
}

static void test_questions_about_values(void **state) {
  (void)state;
  gguf_bytes file;
  gm_model_value value = {.struct_size = sizeof value}, odd = {.struct_size = 1};
  make_good(&file, 3);
  gm_model *model = open_good(&file);
  assert_int_equal(gm_model_value_count(NULL, 0), 0);
  assert_int_equal(gm_model_value_count(model, 1), 0);
  assert_int_equal(gm_model_value_at(NULL, 0, 0, NULL, &value, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_model_value_at(model, 0, 0, NULL, NULL, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_model_value_at(model, 0, 0, NULL, &odd, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_model_value_at(model, 1, 0, NULL, &value, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_model_value_at(model, 0, 5, NULL, &value, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_model_find_value(model, NULL, &value, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_model_find_value(model, "x", &value, NULL), GM_ERR_NOT_FOUND);
  assert_int_equal(gm_model_value_element(model, "x", 0, &value, NULL), GM_ERR_NOT_FOUND);
  assert_int_equal(gm_model_value_element(model, "x.words", 3, &value, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_model_value_element(model, "x.signed", 0, &value, NULL), GM_ERR_INVALID_ARGUMENT);
  gm_model_close(model);
  gguf_bytes_free(&file);
}

static void test_cut_off_anywhere(void **state) {
  (void)state;
  gguf_bytes file, cut;
  make_good(&file, 3);
  for (uint64_t length = 0; length < file.length; length++) {
    gm_model *model = NULL;
    gm_error err = {0};
    cut = file;
    cut.bytes = malloc(length + 1);
    memcpy(cut.bytes, file.bytes, length);
    cut.length = length;
    assert_int_equal(open_bytes(NULL, &cut, false, &model, &err), GM_ERR_FORMAT);
    assert_true(strlen(err.message) > 10);
    free(cut.bytes);
  }
  gguf_bytes_free(&file);
}

static void test_a_header_alone(void **state) {
  (void)state;
  gguf_bytes file;
  gm_model *model = NULL;
  make_good(&file, 3);
  uint64_t data_at = file.length - 64 - 72;
  file.length = data_at;
  assert_int_equal(open_bytes(NULL, &file, true, &model, NULL), GM_OK);
  check_tensors(model, data_at);
  gm_model_close(model);
  check_bad(&file, GM_ERR_FORMAT, "it is cut off");
}

static void test_bad_beginnings(void **state) {
  (void)state;
  gguf_bytes file;
  gguf_bytes_begin(&file, 0, 0, 0);
  check_bad(&file, GM_ERR_FORMAT, "version 0");
  gguf_bytes_begin(&file, 4, 0, 0);
  check_bad(&file, GM_ERR_NOT_SUPPORTED, "version 4");
  gguf_bytes_begin(&file, 0x03000000, 0, 0);
  check_bad(&file, GM_ERR_NOT_SUPPORTED, "big-endian");
  gguf_bytes_begin(&file, 3, UINT64_MAX, 0);
  check_bad(&file, GM_ERR_FORMAT, "tensors cannot fit");
  gguf_bytes_begin(&file, 3, 0, UINT64_MAX);
  check_bad(&file, GM_ERR_FORMAT, "values cannot fit");
}

/* A file with one value. */
static void begin_value(gguf_bytes *file, const char *key, uint32_t type) {
  gguf_bytes_begin(file, 3, 0, 1);
  gguf_bytes_string(file, key);
  gguf_bytes_number(file, type, 4);
}

static void test_bad_values(void **state) {
  (void)state;
  gguf_bytes file;
  begin_value(&file, "a", 13);
  gguf_bytes_number(&file, 0, 8);
  check_bad(&file, GM_ERR_FORMAT, "type 13");
  begin_value(&file, "a", GGUF_BOOL);
  gguf_bytes_number(&file, 2, 1);
  check_bad(&file, GM_ERR_FORMAT, "neither 0 nor 1");
  begin_value(&file, "a", GGUF_ARRAY);
  gguf_bytes_number(&file, GGUF_ARRAY, 4);
  gguf_bytes_number(&file, 0, 8);
  check_bad(&file, GM_ERR_FORMAT, "array of arrays");
  begin_value(&file, "a", GGUF_STRING);
  gguf_bytes_number(&file, UINT64_MAX, 8);
  check_bad(&file, GM_ERR_FORMAT, "ends inside a string");
  begin_value(&file, "a", GGUF_ARRAY);
  gguf_bytes_number(&file, GGUF_U64, 4);
  gguf_bytes_number(&file, (uint64_t)1 << 61, 8); /* times 8 is 0 */
  check_bad(&file, GM_ERR_FORMAT, "cannot fit");
  begin_value(&file, "", GGUF_U8);
  gguf_bytes_number(&file, 0, 8);
  check_bad(&file, GM_ERR_FORMAT, "a key is not");
  begin_value(&file, "a\nb", GGUF_U8);
  gguf_bytes_number(&file, 0, 8);
  check_bad(&file, GM_ERR_FORMAT, "a key is not");
  begin_value(&file, "\xff", GGUF_U8);
  gguf_bytes_number(&file, 0, 8);
  check_bad(&file, GM_ERR_FORMAT, "a key is not");
}

static void test_keys_and_names_are_there_once(void **state) {
  (void)state;
  gguf_bytes file;
  gguf_bytes_begin(&file, 3, 0, 2);
  gguf_bytes_u32(&file, "key", 1);
  gguf_bytes_u32(&file, "key", 2);
  check_bad(&file, GM_ERR_FORMAT, "key \"key\" is there twice");
  gguf_bytes_begin(&file, 3, 2, 0);
  gguf_bytes_tensor(&file, "t", 24, 0, 1, (uint64_t)1);
  gguf_bytes_tensor(&file, "t", 24, 32, 1, (uint64_t)1);
  gguf_bytes_data(&file, 32, 33, 0);
  check_bad(&file, GM_ERR_FORMAT, "tensor \"t\" is there twice");
}

static void check_bad_alignment(uint32_t type, uint64_t value, int bytes) {
  gguf_bytes file;
  gguf_bytes_begin(&file, 3, 0, 1);
  gguf_bytes_value(&file, "general.alignment", type, value, bytes);
  check_bad(&file, GM_ERR_FORMAT, "general.alignment is no power of two");
}

static void test_bad_alignments(void **state) {
  (void)state;
  check_bad_alignment(GGUF_U32, 0, 4);
  check_bad_alignment(GGUF_U32, 48, 4);
  check_bad_alignment(GGUF_I32, 32, 4);
  check_bad_alignment(GGUF_U64, 32, 8);
}

/* The file has one tensor with two dimensions and 64 bytes of data. */
static void check_bad_tensor(uint32_t type, uint64_t offset, uint64_t inner, uint64_t outer, gm_status wanted,
                             const char *words) {
  gguf_bytes file;
  gguf_bytes_begin(&file, 3, 1, 0);
  gguf_bytes_tensor(&file, "the tensor", type, offset, 2, inner, outer);
  gguf_bytes_data(&file, 32, 64, 0);
  check_bad(&file, wanted, words);
}

static void test_bad_tensors(void **state) {
  (void)state;
  check_bad_tensor(99, 0, 1, 1, GM_ERR_FORMAT, "unknown type 99");
  check_bad_tensor(4, 0, 32, 1, GM_ERR_NOT_SUPPORTED, "Q4_2 was taken out");
  check_bad_tensor(31, 0, 32, 1, GM_ERR_NOT_SUPPORTED, "Q4_0_4_4 was taken out");
  check_bad_tensor(2, 0, 16, 2, GM_ERR_FORMAT, "rows of 16 are no whole blocks of 32 (q4_0)");
  check_bad_tensor(0, 0, UINT64_MAX, 2, GM_ERR_FORMAT, "2^64 bytes or more");
  check_bad_tensor(0, 0, (uint64_t)1 << 62, 1, GM_ERR_FORMAT, "2^64 bytes or more");
  check_bad_tensor(24, 1, 1, 1, GM_ERR_FORMAT, "no multiple of the alignment 32");
  check_bad_tensor(24, 0, 65, 1, GM_ERR_FORMAT, "it is cut off");
  check_bad_tensor(24, UINT64_MAX - 31, 1, 1, GM_ERR_FORMAT, "it is cut off");
}

static void test_tensors_do_not_overlap(void **state) {
  (void)state;
  gguf_bytes file;
  gguf_bytes_begin(&file, 3, 2, 0);
  gguf_bytes_tensor(&file, "b", 24, 32, 1, (uint64_t)1);
  gguf_bytes_tensor(&file, "a", 24, 0, 1, (uint64_t)33);
  gguf_bytes_data(&file, 32, 64, 0);
  check_bad(&file, GM_ERR_FORMAT, "tensor \"b\" begins at 32 of the data, inside the tensor that ends at 33");
}

static void test_more_dimensions_than_ggml_has(void **state) {
  (void)state;
  gguf_bytes file;
  gguf_bytes_begin(&file, 3, 1, 0);
  gguf_bytes_tensor(&file, "t", 24, 0, 5, (uint64_t)1, (uint64_t)1, (uint64_t)1, (uint64_t)1, (uint64_t)1);
  check_bad(&file, GM_ERR_NOT_SUPPORTED, "5 dimensions");
}

/* No bytes, no place: whatever the other dimension is. */
static void test_zero_dimensions_and_scalars(void **state) {
  (void)state;
  gguf_bytes file;
  gm_tensor_info info = {.struct_size = sizeof info};
  gguf_bytes_begin(&file, 3, 2, 0);
  gguf_bytes_tensor(&file, "zero", 0, 0, 2, (uint64_t)0, UINT64_MAX);
  gguf_bytes_tensor(&file, "scalar", 28, 0, 0);
  gguf_bytes_data(&file, 32, 8, 0);
  gm_model *model = open_good(&file);
  assert_int_equal(gm_model_tensor_bytes(model), 8);
  assert_int_equal(gm_model_tensor(model, 1, &info, NULL), GM_OK);
  assert_int_equal(info.rank, 0);
  assert_int_equal(info.bytes, 8);
  gm_model_close(model);
  gguf_bytes_free(&file);
}

/* Each type of ggml that files may have, and the bytes of 256 elements. */
static void test_every_type(void **state) {
  (void)state;
  static const uint32_t types[][2] = {{0, 1024}, {1, 512},  {2, 144},  {3, 160},   {6, 176},   {7, 192},   {8, 272},
                                      {9, 288},  {10, 84},  {11, 110}, {12, 144},  {13, 176},  {14, 210},  {15, 292},
                                      {16, 66},  {17, 74},  {18, 98},  {19, 50},   {20, 144},  {21, 110},  {22, 82},
                                      {23, 136}, {24, 256}, {25, 512}, {26, 1024}, {27, 2048}, {28, 2048}, {29, 56},
                                      {30, 512}, {34, 54},  {35, 66},  {39, 136},  {40, 144},  {41, 36},   {42, 72}};
  for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
    gguf_bytes file;
    gguf_bytes_begin(&file, 3, 1, 0);
    gguf_bytes_tensor(&file, "t", types[i][0], 0, 1, (uint64_t)256);
    gguf_bytes_data(&file, 32, types[i][1], 0);
    gm_model *model = open_good(&file);
    assert_int_equal(gm_model_tensor_bytes(model), types[i][1]);
    gm_model_close(model);
    gguf_bytes_free(&file);
  }
}

static void test_each_host_allocation_failed(void **state) {
  (void)state;
  gguf_bytes file;
  gm_status status = GM_ERR_OUT_OF_HOST_MEMORY;
  make_good(&file, 3);
  for (size_t fail_at = 1; status != GM_OK; fail_at++) {
    counted_services host;
    counted_services_init(&host);
    host.fail_at = fail_at;
    gm_model *model = NULL;
    status = open_bytes(&host.services, &file, false, &model, NULL);
    assert_true(status == GM_OK || status == GM_ERR_OUT_OF_HOST_MEMORY);
    gm_model_close(model);
    counted_services_check(&host);
    assert_true(fail_at < 100);
  }
  gguf_bytes_free(&file);
}

static void check_too_many(gguf_bytes *file, const char *words) {
  counted_services host;
  gm_model *model = NULL;
  gm_error err;
  counted_services_init(&host);
  assert_int_equal(open_bytes(&host.services, file, true, &model, &err), GM_ERR_NOT_SUPPORTED);
  assert_non_null(strstr(err.message, words));
  assert_in_range(host.peak_bytes, 1, 2 * file->length + 65536); /* the header, and a note of nothing */
  counted_services_check(&host);
  gguf_bytes_free(file);
}

/* A million keys, or a list of five million strings, is refused before gm keeps a note of each. */
static void test_more_than_any_model_has(void **state) {
  (void)state;
  gguf_bytes file;
  gguf_bytes_begin(&file, 3, 0, 65537);
  for (int i = 0; i < 65537; i++) gguf_bytes_raw(&file, "0123456789", 10);
  check_too_many(&file, "65537 values, more than gm reads");
  begin_value(&file, "a", GGUF_ARRAY);
  gguf_bytes_number(&file, GGUF_STRING, 4);
  gguf_bytes_number(&file, (1 << 21) + 1, 8);
  for (int i = 0; i <= 1 << 21; i++) gguf_bytes_raw(&file, "\0\0\0\0\0\0\0", 8);
  check_too_many(&file, "2097153 strings in lists, more than gm reads");
  begin_value(&file, "a", GGUF_ARRAY);
  gguf_bytes_number(&file, GGUF_U8, 4);
  gguf_bytes_number(&file, 64 << 20, 8);
  for (int i = 0; i < 64; i++) {
    static const char zeros[1 << 20];
    gguf_bytes_raw(&file, zeros, sizeof zeros);
  }
  check_too_many(&file, "a header of more than 67108864 bytes");
}

/* The header moves many times while it is read; memory stays in proportion. */
static void test_a_million_tensors(void **state) {
  (void)state;
  const uint64_t many = great_many(1000000);
  char name[16];
  gguf_bytes file;
  counted_services host;
  gm_model *model = NULL;
  uint64_t found = 0;
  gguf_bytes_begin(&file, 3, many, 1);
  gguf_bytes_u32(&file, "key", 1);
  for (uint64_t i = 0; i < many; i++) {
    snprintf(name, sizeof name, "t%llu", (unsigned long long)i);
    gguf_bytes_tensor(&file, name, 24, i * 32, 1, (uint64_t)1);
  }
  counted_services_init(&host);
  assert_int_equal(open_bytes(&host.services, &file, true, &model, NULL), GM_OK);
  assert_int_equal(gm_model_tensor_count(model), many);
  assert_int_equal(gm_model_find(model, name, &found, NULL), GM_OK);
  assert_int_equal(found, many - 1);
  assert_true(host.peak_bytes < 10 * file.length);
  gm_model_close(model);
  counted_services_check(&host);
  gguf_bytes_free(&file);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_each_version),
      cmocka_unit_test(test_data_begins_at_the_next_multiple),
      cmocka_unit_test(test_questions_about_values),
      cmocka_unit_test(test_cut_off_anywhere),
      cmocka_unit_test(test_a_header_alone),
      cmocka_unit_test(test_bad_beginnings),
      cmocka_unit_test(test_bad_values),
      cmocka_unit_test(test_keys_and_names_are_there_once),
      cmocka_unit_test(test_bad_alignments),
      cmocka_unit_test(test_bad_tensors),
      cmocka_unit_test(test_tensors_do_not_overlap),
      cmocka_unit_test(test_more_dimensions_than_ggml_has),
      cmocka_unit_test(test_zero_dimensions_and_scalars),
      cmocka_unit_test(test_every_type),
      cmocka_unit_test(test_each_host_allocation_failed),
      cmocka_unit_test(test_more_than_any_model_has),
      cmocka_unit_test(test_a_million_tensors),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The safetensors header: every rule of the format, each broken in turn, from memory. */
#include "core/model/safetensors.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/counted_services.h"
#include "support/fail_each.h"
#include "support/great_many.h"
#include "support/safetensors_bytes.h"

static gm_status parse(const char *header, uint64_t data, gm__contents *out, gm_error *err) {
  safetensors_bytes file = safetensors_bytes_make(header, strlen(header), data, 0);
  gm_status status = gm__safetensors_parse(NULL, file.bytes, file.length, "m.safetensors", out, err);
  safetensors_bytes_free(&file);
  return status;
}

/* `words` must be in the message, which must name the file and the byte `at`. */
static void check_refused(const char *header, uint64_t data, gm_status wanted, uint64_t at, const char *words) {
  gm__contents contents;
  gm_error err = {0};
  gm_status status = parse(header, data, &contents, &err);
  if (status != wanted) fail_msg("%s: %s, %s", header, gm_status_name(status), err.message);
  char place[64];
  snprintf(place, sizeof place, "m.safetensors: byte %" PRIu64 ": ", at);
  if (strncmp(err.message, place, strlen(place)) != 0 || !strstr(err.message, words)) {
    fail_msg("%s:\n  got \"%s\"\n  not \"%s…%s\"", header, err.message, place, words);
  }
  assert_null(contents.header);
  assert_null(contents.tensors);
}

static void check_format(const char *header, uint64_t data, uint64_t at, const char *words) {
  check_refused(header, data, GM_ERR_FORMAT, at, words);
}

static void test_a_good_header_becomes_a_table(void **state) {
  (void)state;
  gm__contents contents;
  gm_error err;
  const char *header =
      "{\"__metadata__\":{\"format\":\"pt\",\"a\\nb\":\"\"},"
      "\"b\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[8,32]},"
      "\"a\":{\"data_offsets\":[0,8],\"note\":{\"x\":[1]},\"shape\":[],\"dtype\":\"I64\"}}   \n";
  assert_int_equal(parse(header, 32, &contents, &err), GM_OK);
  assert_int_equal(contents.tensor_count, 2);
  assert_int_equal(contents.data_bytes, 32);
  assert_int_equal(contents.data_at, 8 + strlen(header));
  const gm__tensor *b = &contents.tensors[0], *a = &contents.tensors[1];
  assert_string_equal(b->name.text, "b");
  assert_int_equal(b->dtype, GM_DTYPE_F32);
  assert_int_equal(b->rank, 2);
  assert_int_equal(contents.dims[b->shape_at], 2);
  assert_int_equal(contents.dims[b->shape_at + 1], 3);
  assert_int_equal(b->begin, 8);
  assert_int_equal(b->bytes, 24);
  assert_int_equal(a->rank, 0);
  assert_int_equal(a->bytes, 8);
  assert_int_equal(contents.by_place[0], 1);
  assert_int_equal(contents.by_place[1], 0);
  assert_int_equal(contents.metadata_count, 2);
  assert_string_equal(contents.metadata[0].key.text, "format");
  assert_string_equal(contents.metadata[0].value.text, "pt");
  assert_string_equal(contents.metadata[1].key.text, "a\nb");
  gm__contents_free(NULL, &contents);
}

typedef struct dtype_case {
  const char *name;
  gm_dtype dtype;
  uint64_t bytes_of_8; /* eight elements */
} dtype_case;

static void test_every_dtype_of_the_format_is_known(void **state) {
  (void)state;
  static const dtype_case cases[] = {
      {"BOOL", GM_DTYPE_BOOL, 8},
      {"U8", GM_DTYPE_U8, 8},
      {"I8", GM_DTYPE_I8, 8},
      {"F8_E4M3", GM_DTYPE_F8_E4M3, 8},
      {"F8_E5M2", GM_DTYPE_F8_E5M2, 8},
      {"F8_E8M0", GM_DTYPE_F8_E8M0, 8},
      {"F8_E4M3FNUZ", GM_DTYPE_F8_E4M3FNUZ, 8},
      {"F8_E5M2FNUZ", GM_DTYPE_F8_E5M2FNUZ, 8},
      {"F4", GM_DTYPE_F4, 4},
      {"F6_E2M3", GM_DTYPE_F6_E2M3, 6},
      {"F6_E3M2", GM_DTYPE_F6_E3M2, 6},
      {"I16", GM_DTYPE_I16, 16},
      {"U16", GM_DTYPE_U16, 16},
      {"F16", GM_DTYPE_F16, 16},
      {"BF16", GM_DTYPE_BF16, 16},
      {"I32", GM_DTYPE_I32, 32},
      {"U32", GM_DTYPE_U32, 32},
      {"F32", GM_DTYPE_F32, 32},
      {"I64", GM_DTYPE_I64, 64},
      {"U64", GM_DTYPE_U64, 64},
      {"F64", GM_DTYPE_F64, 64},
      {"C64", GM_DTYPE_C64, 64},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char header[200];
    gm__contents contents;
    gm_error err;
    snprintf(header, sizeof header, "{\"t\":{\"dtype\":\"%s\",\"shape\":[2,4],\"data_offsets\":[0,%" PRIu64 "]}}",
             cases[i].name, cases[i].bytes_of_8);
    if (parse(header, cases[i].bytes_of_8, &contents, &err) != GM_OK) fail_msg("%s", err.message);
    assert_int_equal(contents.tensors[0].dtype, cases[i].dtype);
    gm__contents_free(NULL, &contents);
  }
}

static void check_accepted(const char *header, uint64_t data, uint64_t tensors) {
  gm__contents contents;
  gm_error err;
  if (parse(header, data, &contents, &err) != GM_OK) fail_msg("%s: %s", header, err.message);
  assert_int_equal(contents.tensor_count, tensors);
  gm__contents_free(NULL, &contents);
}

static void test_unusual_files_that_are_legal(void **state) {
  (void)state;
  check_accepted("{}", 0, 0);
  check_accepted("{\"__metadata__\":{}}      ", 0, 0);
  check_accepted("{\"z\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[0,0]}}", 0, 1);
  check_accepted("{\"z\":{\"dtype\":\"F32\",\"shape\":[18446744073709551615,0],\"data_offsets\":[0,0]}}", 0, 1);
  check_accepted(
      "{\"u\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},"
      "\"z\":{\"dtype\":\"F32\",\"shape\":[3,0],\"data_offsets\":[1,1]}}",
      1, 2);
  check_accepted("{\"d\":{\"dtype\":\"U8\",\"shape\":[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,2],\"data_offsets\":[0,2]}}", 2, 1);
}

static void test_the_length_in_front_is_checked_before_anything_is_allocated(void **state) {
  (void)state;
  static const uint64_t lengths[] = {0, 1, 3, 100000001, UINT64_MAX, UINT64_MAX - 7, (uint64_t)1 << 63};
  for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
    counted_services counted;
    counted_services_init(&counted);
    safetensors_bytes file = safetensors_bytes_make("{}", lengths[i], 0, 0);
    gm__contents contents;
    gm_error err;
    assert_int_equal(gm__safetensors_parse(&counted.services, file.bytes, file.length, "m", &contents, &err),
                     GM_ERR_FORMAT);
    const bool is_another = lengths[i] > 100000000; /* so long a header has no file of this format */
    assert_non_null(strstr(
        err.message, is_another ? "m: byte 0: neither GGUF nor safetensors: a header of " : "m: byte 0: a header "));
    assert_int_equal(counted.calls, 0);
    safetensors_bytes_free(&file);
  }
}

static void test_a_file_cut_at_every_byte_is_refused(void **state) {
  (void)state;
  const char *header = "{\"a\":{\"dtype\":\"F16\",\"shape\":[2,2],\"data_offsets\":[0,8]}}";
  safetensors_bytes file = safetensors_bytes_make(header, strlen(header), 8, 0);
  for (uint64_t length = 0; length < file.length; length++) {
    gm__contents contents;
    gm_error err;
    unsigned char *cut = malloc(length ? length : 1);
    assert_non_null(cut);
    memcpy(cut, file.bytes, length);
    assert_int_equal(gm__safetensors_parse(NULL, cut, length, "m", &contents, &err), GM_ERR_FORMAT);
    free(cut);
  }
  safetensors_bytes_free(&file);
}

static void test_headers_that_are_no_header(void **state) {
  (void)state;
  check_format(" {}", 0, 8, "must begin with '{'");
  check_format("[]", 0, 8, "must begin with '{'");
  check_format("{}x", 0, 10, "something follows");
  check_format("{\"a\":1}", 0, 13, "an object is expected");
  check_format("{\"a\":null}", 0, 13, "an object is expected");
  check_format("{\"__metadata__\":[]}", 0, 24, "an object is expected");
  check_format("{\"__metadata__\":{\"a\":1}}", 0, 29, "a string is expected");
  check_format("{\"a\":{\"x\":[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[", 0, 48, "nested too deep");
}

static void test_a_key_twice_is_refused(void **state) {
  (void)state;
  check_format("{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"shape\":[1],\"data_offsets\":[0,1]}}", 1, 39, "there twice");
  check_format("{\"a\":{\"dtype\":\"U8\",\"d\\u0074ype\":\"U8\"}}", 1, 27, "there twice");
  check_format("{\"__metadata__\":{},\"__metadata__\":{}}", 0, 27, "there twice");
  check_format("{\"__metadata__\":{\"k\":\"1\",\"j\":\"2\",\"\\u006b\":\"3\"}}", 0, 41, "\"k\" is there twice");
}

static void test_wrong_types_in_a_tensor_are_refused(void **state) {
  (void)state;
  check_format("{\"a\":{\"dtype\":7}}", 0, 22, "a string is expected");
  check_format("{\"a\":{\"shape\":{}}}", 0, 22, "an array is expected");
  check_format("{\"a\":{\"shape\":[\"1\"]}}", 0, 23, "an integer is expected");
  check_format("{\"a\":{\"shape\":[NaN]}}", 0, 23, "an integer is expected");
  check_format("{\"a\":{\"shape\":[-1]}}", 0, 23, "not negative");
  check_format("{\"a\":{\"shape\":[1.5]}}", 0, 23, "an integer is expected");
  check_format("{\"a\":{\"shape\":[18446744073709551616]}}", 0, 23, "does not fit 64 bits");
  check_format("{\"a\":{\"data_offsets\":[0]}}", 0, 29, "must be two numbers");
  check_format("{\"a\":{\"data_offsets\":[0,0,0]}}", 0, 29, "must be two numbers");
  check_format("{\"a\":{\"data_offsets\":[0,[]]}}", 0, 32, "an integer is expected");
  check_format("{\"a\":{}}", 0, 9, "\"a\": has no dtype");
  check_format("{\"a\":{\"dtype\":\"U8\"}}", 0, 9, "\"a\": has no shape");
  check_format("{\"a\":{\"dtype\":\"U8\",\"shape\":[]}}", 0, 9, "\"a\": has no data_offsets");
}

#define TENSOR(dtype, shape, offsets) \
  "{\"a\":{\"dtype\":\"" dtype "\",\"shape\":[" shape "],\"data_offsets\":[" offsets "]}}"

static void test_dtype_shape_and_offsets_must_agree(void **state) {
  (void)state;
  check_format(TENSOR("Q4_K", "1", "0,1"), 1, 22, "unknown dtype \"Q4_K\"");
  check_format(TENSOR("f32", "1", "0,4"), 4, 22, "unknown dtype \"f32\"");
  check_format(TENSOR("", "1", "0,4"), 4, 22, "unknown dtype \"\"");
  check_format(TENSOR("U8", "2", "0,1"), 1, 54, "dtype and shape make 2 bytes, data_offsets 1");
  check_format(TENSOR("U8", "", "0,2"), 2, 53, "make 1 bytes, data_offsets 2");
  check_format(TENSOR("U8", "2", "0,3"), 2, 54, "outside the 2 bytes of data");
  check_format(TENSOR("U8", "2", "2,0"), 2, 54, "outside the 2 bytes of data");
  check_format(TENSOR("U8", "1", "18446744073709551615,18446744073709551615"), 1, 54, "outside the 1 bytes");
  check_format(TENSOR("U8", "4294967296,4294967296", "0,0"), 0, 74, "no whole number of bytes");
  check_format(TENSOR("F32", "4611686018427387904", "0,0"), 0, 73, "no whole number of bytes");
  check_format(TENSOR("U8", "18446744073709551615,18446744073709551615", "0,1"), 1, 94, "no whole number of bytes");
  check_format(TENSOR("F4", "3", "0,2"), 2, 54, "no whole number of bytes");
  check_refused(TENSOR("U8", "1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1", "0,1"), 1, GM_ERR_NOT_SUPPORTED, 9,
                "more than 16 dimensions");
}

#define PAIR(first, second)                                         \
  "{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[" first \
  "]},"                                                             \
  "\"b\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[" second "]}}"

static void test_tensors_must_cover_the_data_exactly(void **state) {
  (void)state;
  check_accepted(PAIR("4,8", "0,4"), 8, 2);
  check_format(PAIR("0,4", "2,6"), 6, 61, "\"b\" begins at 2 of the data, inside the tensor that ends at 4");
  check_format(PAIR("0,4", "0,4"), 4, 61, "inside the tensor that ends at 4");
  check_format(PAIR("0,4", "5,9"), 9, 61, "\"b\" begins at 5 of the data, behind a hole that begins at 4");
  check_format(PAIR("1,5", "5,9"), 9, 9, "\"a\" begins at 1 of the data, behind a hole that begins at 0");
  check_format(PAIR("0,4", "4,8"), 11, 8 + strlen(PAIR("0,4", "4,8")) + 8, "3 bytes behind the last tensor");
  check_format("{}", 5, 10, "5 bytes behind the last tensor belong to none");
}

/* The format aligns nothing, and its reference reader loads such files. */
static void test_a_tensor_may_begin_anywhere(void **state) {
  (void)state;
  check_accepted(
      "{\"u\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[0,3]},"
      "\"f\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[3,7]},"
      "\"d\":{\"dtype\":\"F64\",\"shape\":[1],\"data_offsets\":[7,15]}}",
      15, 3);
}

static void test_null_metadata_is_none(void **state) {
  (void)state;
  check_accepted("{\"__metadata__\":null,\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}", 1, 1);
  check_format("{\"__metadata__\":nul}", 0, 24, "a value is expected");
  check_format("{\"__metadata__\":null,\"__metadata__\":null}", 0, 29, "__metadata__ is there twice");
}

/* The largest header that the format allows: one long string is read, and endless brackets are not followed. */
static void test_a_hundred_megabytes_of_json(void **state) {
  (void)state;
  static const char head[] = "{\"__metadata__\":{\"k\":\"", tail[] = "\"}}";
  const size_t all = great_many(100000000);
  gm__contents contents;
  gm_error err;
  char *header = test_malloc(all + 1);
  memset(header, 'x', all);
  header[all] = 0;
  memcpy(header, head, sizeof head - 1);
  memcpy(header + all - (sizeof tail - 1), tail, sizeof tail - 1);
  assert_int_equal(parse(header, 0, &contents, &err), GM_OK);
  assert_int_equal(contents.metadata_count, 1);
  gm__contents_free(NULL, &contents);
  memset(header + sizeof head, '[', all - sizeof head);
  memcpy(header, "{\"a\":", 5);
  memset(header + 5, '[', sizeof head - 5 + 1);
  assert_int_equal(parse(header, 0, &contents, &err), GM_ERR_FORMAT);
  test_free(header);
}

static void test_names_in_messages_carry_no_control_characters(void **state) {
  (void)state;
  check_format("{\"a\\u001b[2J\":{}}", 0, 9, "\"a?[2J\": has no dtype");
}

static void test_a_long_path_is_shown_by_its_end(void **state) {
  (void)state;
  char path[1000];
  memset(path, 'd', sizeof path);
  memcpy(path + sizeof path - 19, "/model.safetensors", 19);
  gm__contents contents;
  gm_error err;
  assert_int_equal(gm__safetensors_parse(NULL, "12", 2, path, &contents, &err), GM_ERR_FORMAT);
  assert_non_null(strstr(err.message, "ddd/model.safetensors: byte 2: neither GGUF nor safetensors: ends inside"));
}

static gm_status parse_metadata(const gm_services *services) {
  static const char header[] =
      "{\"__metadata__\":{\"a\":\"1\",\"b\":\"2\"},\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}}";
  safetensors_bytes file = safetensors_bytes_make(header, sizeof header - 1, 4, 0);
  gm__contents contents;
  const gm_status status = gm__safetensors_parse(services, file.bytes, file.length, "m", &contents, NULL);
  gm__contents_free(services, &contents);
  safetensors_bytes_free(&file);
  return status;
}

static void test_each_host_allocation_failed(void **state) {
  (void)state;
  fail_each_allocation(parse_metadata, 6);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_good_header_becomes_a_table),
      cmocka_unit_test(test_every_dtype_of_the_format_is_known),
      cmocka_unit_test(test_unusual_files_that_are_legal),
      cmocka_unit_test(test_the_length_in_front_is_checked_before_anything_is_allocated),
      cmocka_unit_test(test_a_file_cut_at_every_byte_is_refused),
      cmocka_unit_test(test_headers_that_are_no_header),
      cmocka_unit_test(test_a_key_twice_is_refused),
      cmocka_unit_test(test_wrong_types_in_a_tensor_are_refused),
      cmocka_unit_test(test_dtype_shape_and_offsets_must_agree),
      cmocka_unit_test(test_tensors_must_cover_the_data_exactly),
      cmocka_unit_test(test_a_tensor_may_begin_anywhere),
      cmocka_unit_test(test_null_metadata_is_none),
      cmocka_unit_test(test_a_hundred_megabytes_of_json),
      cmocka_unit_test(test_names_in_messages_carry_no_control_characters),
      cmocka_unit_test(test_a_long_path_is_shown_by_its_end),
      cmocka_unit_test(test_each_host_allocation_failed),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

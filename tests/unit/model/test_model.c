/* A model's table: numbering, names, questions, and what they answer to wrong arguments. */
#include "core/model/model.h"

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

static const char header_of_three[] =
    "{\"__metadata__\":{\"format\":\"pt\"},"
    "\"c\":{\"dtype\":\"F16\",\"shape\":[2,2],\"data_offsets\":[4,12]},"
    "\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]},"
    "\"b\":{\"dtype\":\"F32\",\"shape\":[0,7],\"data_offsets\":[12,12]}}";

static gm_status open_header(const gm_services *services, const char *header, uint64_t data, gm_model **out,
                             gm_error *err) {
  safetensors_bytes file = safetensors_bytes_make(header, strlen(header), data, 0);
  gm_status status = gm__model_open_memory(services, file.bytes, file.length, "m", false, out, err);
  safetensors_bytes_free(&file);
  return status;
}

static gm_model *open_three(void) {
  gm_model *model = NULL;
  assert_int_equal(open_header(NULL, header_of_three, 12, &model, NULL), GM_OK);
  return model;
}

static void test_tensors_are_numbered_in_the_order_of_the_file(void **state) {
  (void)state;
  gm_model *model = open_three();
  static const char *const names[] = {"a", "c", "b"};
  assert_int_equal(gm_model_tensor_count(model), 3);
  assert_int_equal(gm_model_tensor_bytes(model), 12);
  for (uint64_t i = 0; i < 3; i++) {
    gm_tensor_info info = {.struct_size = sizeof info};
    uint64_t found = 77;
    assert_int_equal(gm_model_tensor(model, i, &info, NULL), GM_OK);
    assert_string_equal(info.name, names[i]);
    assert_int_equal(gm_model_find(model, names[i], &found, NULL), GM_OK);
    assert_int_equal(found, i);
  }
  gm_model_close(model);
}

static void test_a_tensor_is_described_in_full(void **state) {
  (void)state;
  gm_model *model = open_three();
  gm_tensor_info info = {.struct_size = sizeof info};
  assert_int_equal(gm_model_tensor(model, 1, &info, NULL), GM_OK);
  assert_int_equal(info.struct_size, sizeof info);
  assert_int_equal(info.dtype, GM_DTYPE_F16);
  assert_int_equal(info.rank, 2);
  assert_int_equal(info.shard, 0);
  assert_int_equal(info.shape[0], 2);
  assert_int_equal(info.shape[1], 2);
  assert_int_equal(info.shape[2], 0);
  assert_int_equal(info.file_offset, 8 + strlen(header_of_three) + 4);
  assert_int_equal(info.bytes, 8);
  assert_int_equal(gm_model_tensor(model, 2, &info, NULL), GM_OK);
  assert_int_equal(info.shape[1], 7);
  assert_int_equal(info.bytes, 0);
  gm_model_close(model);
}

static void test_shards_and_metadata(void **state) {
  (void)state;
  gm_model *model = open_three();
  const char *key = NULL, *value = NULL;
  assert_int_equal(gm_model_shard_count(model), 1);
  assert_string_equal(gm_model_shard_path(model, 0), "m");
  assert_null(gm_model_shard_path(model, 1));
  assert_int_equal(gm_model_metadata_count(model, 0), 1);
  assert_int_equal(gm_model_metadata_count(model, 1), 0);
  assert_int_equal(gm_model_metadata(model, 0, 0, &key, &value, NULL), GM_OK);
  assert_string_equal(key, "format");
  assert_string_equal(value, "pt");
  gm_model_close(model);
}

static void check_argument(gm_status status, const gm_error *err, const char *words) {
  assert_int_equal(status, GM_ERR_INVALID_ARGUMENT);
  if (!strstr(err->message, words)) fail_msg("got \"%s\", not \"%s\"", err->message, words);
}

static void test_wrong_arguments_are_named(void **state) {
  (void)state;
  gm_model *model = open_three();
  gm_error err;
  gm_tensor_info info = {.struct_size = sizeof info};
  uint64_t found;
  const char *key, *value;
  check_argument(gm_model_tensor(NULL, 0, &info, &err), &err, "`model` is NULL");
  check_argument(gm_model_tensor(model, 0, NULL, &err), &err, "`out` is NULL");
  check_argument(gm_model_tensor(model, 3, &info, &err), &err, "`index` is 3, the model has 3 tensors");
  check_argument(gm_model_tensor(model, UINT64_MAX, &info, &err), &err, "`index` is 18446744073709551615");
  info.struct_size = 0;
  check_argument(gm_model_tensor(model, 0, &info, &err), &err, "`out->struct_size` is 0");
  check_argument(gm_model_find(NULL, "a", &found, &err), &err, "`model` is NULL");
  check_argument(gm_model_find(model, NULL, &found, &err), &err, "`name` is NULL");
  check_argument(gm_model_find(model, "a", NULL, &err), &err, "`out` is NULL");
  check_argument(gm_model_metadata(NULL, 0, 0, &key, &value, &err), &err, "`model` is NULL");
  check_argument(gm_model_metadata(model, 1, 0, &key, &value, &err), &err, "`shard` is 1 of 1");
  check_argument(gm_model_metadata(model, 0, 1, &key, &value, &err), &err, "`index` is 1, shard 0 has 1 strings");
  check_argument(gm_model_metadata(model, 0, 0, NULL, &value, &err), &err, "`out_key` is NULL");
  check_argument(gm_model_metadata(model, 0, 0, &key, NULL, &err), &err, "`out_value` is NULL");
  gm_model_close(model);
}

static void test_no_model_has_nothing(void **state) {
  (void)state;
  assert_int_equal(gm_model_tensor_count(NULL), 0);
  assert_int_equal(gm_model_tensor_bytes(NULL), 0);
  assert_int_equal(gm_model_shard_count(NULL), 0);
  assert_null(gm_model_shard_path(NULL, 0));
  assert_int_equal(gm_model_metadata_count(NULL, 0), 0);
  gm_model_close(NULL);
}

static void test_names_that_are_not_there(void **state) {
  (void)state;
  gm_model *model = open_three();
  static const char *const names[] = {"", "A", "aa", "bb", "d", "__metadata__"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    uint64_t found = 77;
    assert_int_equal(gm_model_find(model, names[i], &found, NULL), GM_ERR_NOT_FOUND);
    assert_int_equal(found, 77);
  }
  gm_model_close(model);
}

static void test_a_tensor_twice_is_refused(void **state) {
  (void)state;
  gm_model *model = NULL;
  gm_error err;
  const char *header =
      "{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},"
      "\"b\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[1,2]},"
      "\"\\u0061\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[2,3]}}";
  assert_int_equal(open_header(NULL, header, 3, &model, &err), GM_ERR_FORMAT);
  assert_string_equal(err.message, "m: byte 113: tensor \"a\" is there twice");
  assert_null(model);
}

/* A header of `count` empty tensors whose names share a long beginning: what makes naive look-ups crawl. */
static char *make_many(uint32_t count) {
  char *header = malloc((size_t)count * 120 + 3), *end = header;
  assert_non_null(header);
  *end++ = '{';
  for (uint32_t i = 0; i < count; i++) {
    end += sprintf(end, "%s\"the.same.beginning.%u\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[0,0]}",
                   i ? "," : "", i * 2654435761U);
  }
  strcpy(end, "}");
  return header;
}

static void test_very_many_tensors(void **state) {
  (void)state;
  const uint32_t many = (uint32_t)great_many(1000000);
  char *header = make_many(many);
  counted_services counted;
  counted_services_init(&counted);
  gm_model *model = NULL;
  assert_int_equal(open_header(&counted.services, header, 0, &model, NULL), GM_OK);
  assert_int_equal(gm_model_tensor_count(model), many);
  assert_true(counted.calls < 100);
  uint64_t found = 0;
  assert_int_equal(gm_model_find(model, "the.same.beginning.2654435761", &found, NULL), GM_OK);
  assert_int_equal(found, 1);
  gm_model_close(model);
  counted_services_check(&counted);
  free(header);
}

static gm_status open_and_close(const gm_services *services) {
  gm_model *model = NULL;
  const gm_status status = open_header(services, header_of_three, 12, &model, NULL);
  assert_true((status == GM_OK) == (model != NULL));
  gm_model_close(model);
  return status;
}

static void test_each_host_allocation_failed(void **state) {
  (void)state;
  fail_each_allocation(open_and_close, 10);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_tensors_are_numbered_in_the_order_of_the_file),
      cmocka_unit_test(test_a_tensor_is_described_in_full),
      cmocka_unit_test(test_shards_and_metadata),
      cmocka_unit_test(test_wrong_arguments_are_named),
      cmocka_unit_test(test_no_model_has_nothing),
      cmocka_unit_test(test_names_that_are_not_there),
      cmocka_unit_test(test_a_tensor_twice_is_refused),
      cmocka_unit_test(test_very_many_tensors),
      cmocka_unit_test(test_each_host_allocation_failed),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

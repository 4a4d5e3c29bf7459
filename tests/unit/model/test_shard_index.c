/* The index of a sharded model, from memory: what it says and what is refused. */
#include "core/model/shard_index.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "support/counted_services.h"
#include "support/fail_each.h"

static void test_shards_are_numbered_by_name(void **state) {
  (void)state;
  const char *text =
      "{\"metadata\":{\"total_size\":1e3},\"weight_map\":{\"x\":\"b.safetensors\",\"y\":\"a.safetensors\","
      "\"a\":\"b.safetensors\"}}";
  gm__shard_index index;
  gm_error err;
  assert_int_equal(gm__shard_index_parse(NULL, text, strlen(text), "i.json", &index, &err), GM_OK);
  assert_int_equal(index.count, 3);
  assert_int_equal(index.shard_count, 2);
  assert_string_equal(index.entries[0].tensor.text, "x");
  assert_int_equal(index.entries[0].shard, 1);
  assert_int_equal(index.entries[1].shard, 0);
  assert_int_equal(index.entries[2].shard, 1);
  assert_string_equal(index.entries[index.by_tensor[0]].tensor.text, "a");
  assert_string_equal(index.entries[index.by_tensor[1]].tensor.text, "x");
  assert_string_equal(index.entries[index.by_file[0]].file.text, "a.safetensors");
  gm__shard_index_free(NULL, &index);
}

static void check_refused(const char *text, uint64_t at, const char *words) {
  gm__shard_index index;
  gm_error err;
  assert_int_equal(gm__shard_index_parse(NULL, text, strlen(text), "i.json", &index, &err), GM_ERR_FORMAT);
  char place[64];
  snprintf(place, sizeof place, "i.json: byte %" PRIu64 ": ", at);
  if (strncmp(err.message, place, strlen(place)) != 0 || !strstr(err.message, words)) {
    fail_msg("%s:\n  got \"%s\"\n  not \"%s…%s\"", text, err.message, place, words);
  }
  assert_null(index.text);
  assert_null(index.entries);
}

static void test_what_is_no_index_is_refused(void **state) {
  (void)state;
  check_refused("", 0, "an object is expected");
  check_refused("[]", 0, "an object is expected");
  check_refused("{}", 0, "weight_map is missing");
  check_refused("{\"weight_map\":{}}", 0, "weight_map is empty");
  check_refused("{\"weight_map\":[]}", 14, "an object is expected");
  check_refused("{\"weight_map\":{\"a\":7}}", 19, "a string is expected");
  check_refused("{\"weight_map\":{\"a\":\"s\"}} {}", 25, "something follows");
  check_refused("{\"weight_map\":{\"a\":\"s\"},\"weight_map\":{\"b\":\"s\"}}", 24, "weight_map is there twice");
  check_refused("{\"weight_map\":{\"a\":\"s\",\"b\":\"s\",\"\\u0061\":\"s\"}}", 31, "tensor \"a\" is there twice");
}

static void test_shards_cannot_lead_out_of_the_folder(void **state) {
  (void)state;
  static const char *const names[] = {"",         ".", "..", "../s", "/etc/passwd", "d/s", "..\\\\s", "\\u002e\\u002e",
                                      "a\\u002fb"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    char text[100];
    snprintf(text, sizeof text, "{\"weight_map\":{\"a\":\"%s\"}}", names[i]);
    check_refused(text, 19, "is no plain file name");
  }
}

static void test_an_index_cut_at_every_byte_is_refused(void **state) {
  (void)state;
  const char *text = "{\"metadata\":{},\"weight_map\":{\"a\":\"s\",\"b\":\"s\"}}";
  for (uint64_t length = 0; length < strlen(text); length++) {
    gm__shard_index index;
    assert_int_equal(gm__shard_index_parse(NULL, text, length, "i", &index, NULL), GM_ERR_FORMAT);
  }
}

static gm_status parse_two(const gm_services *services) {
  static const char text[] = "{\"weight_map\":{\"a\":\"s\",\"b\":\"t\"}}";
  gm__shard_index index;
  const gm_status status = gm__shard_index_parse(services, text, sizeof text - 1, "i", &index, NULL);
  gm__shard_index_free(services, &index);
  return status;
}

static void test_each_host_allocation_failed(void **state) {
  (void)state;
  fail_each_allocation(parse_two, 4);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_shards_are_numbered_by_name),
      cmocka_unit_test(test_what_is_no_index_is_refused),
      cmocka_unit_test(test_shards_cannot_lead_out_of_the_folder),
      cmocka_unit_test(test_an_index_cut_at_every_byte_is_refused),
      cmocka_unit_test(test_each_host_allocation_failed),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

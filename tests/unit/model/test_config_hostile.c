/* A hostile config.json costs no more than its bytes: what is looked at and what is taken is counted, not timed. */
#include <stdlib.h>

#include "core/model/json_scan.h"
#include "gm/model_config.h"
#include "support/counted_services.h"
#include "support/test_folder.h"
#include "unit/model/config_json.h"

static uint64_t looks; /* comparisons of a name of the file with one that gm knows */

bool __real_gm__json_text_is(const gm__json_text *text, const char *literal);
bool __wrap_gm__json_text_is(const gm__json_text *text, const char *literal);
int __real_gm__json_text_order(const gm__json_text *text, const char *literal);
int __wrap_gm__json_text_order(const gm__json_text *text, const char *literal);

bool __wrap_gm__json_text_is(const gm__json_text *text, const char *literal) {
  looks++;
  return __real_gm__json_text_is(text, literal);
}

int __wrap_gm__json_text_order(const gm__json_text *text, const char *literal) {
  looks++;
  return __real_gm__json_text_order(text, literal);
}

/* `count` times `piece` between BASE and the end, each behind a comma. */
static char *hostile_text(const char *open, const char *piece, size_t count, const char *close) {
  const size_t step = strlen(piece) + 1, room = strlen(BASE) + strlen(open) + count * step + strlen(close) + 3;
  char *text = malloc(room);
  assert_non_null(text);
  size_t at = (size_t)snprintf(text, room, "{" BASE "%s", open);
  for (size_t i = 0; i < count; i++, at += step) {
    text[at] = ',';
    memcpy(text + at + 1, piece, step - 1);
  }
  snprintf(text + at, room - at, "%s}", close);
  return text;
}

/* A key that gm does not know costs a search, not a look at each that it knows. */
static void test_looks_for_each_key(void **state) {
  (void)state;
  enum { KEYS = 2000, LOOKS = 24 };
  static const char *const opens[] = {"", ",\"text_config\":{\"a\":0", ",\"quantization_config\":{\"a\":0"};
  static const char *const names[] = {"\"a\":1", "\"num_attention_headz\":1", "\"zz\":[1]"};
  for (int open = 0; open < 3; open++) {
    for (int name = 0; name < 3; name++) {
      gm_model_config config = {.struct_size = sizeof config};
      char *text = hostile_text(opens[open], names[name], KEYS, open ? "}" : "");
      looks = 0;
      assert_int_equal(gm__model_config_parse_json(text, strlen(text), "c", "op", &config, NULL), GM_OK);
      assert_in_range(looks, KEYS, KEYS * LOOKS + 200);
      free(text);
    }
  }
}

/* The text is taken once: a second reader of it reads none that is longer than that of any model. */
static void test_bytes_that_a_file_takes(void **state) {
  (void)state;
  enum { KEYS = 500000 };
  counted_services host;
  gm_model_config config = {.struct_size = sizeof config};
  char *text = hostile_text("", "\"a\":1", KEYS, "");
  const size_t bytes = strlen(text);
  counted_services_init(&host);
  const char *path = temp_folder_write(&folder, "c.json", text, bytes);
  free(text);
  assert_int_equal(gm_model_config_load(&host.services, path, &config, NULL), GM_OK);
  assert_in_range(host.peak_bytes, bytes, bytes + (1 << 20));
  assert_false(config.parameters_counted);
  assert_non_null(strstr(config.uncounted, "larger than that of any model"));
  counted_services_check(&host);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_looks_for_each_key),
      cmocka_unit_test_setup_teardown(test_bytes_that_a_file_takes, folder_setup, folder_teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

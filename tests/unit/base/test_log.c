/* One bounded, clean line to the host's log. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/base/log.h"
#include "support/counted_services.h"

static void test_line_and_level_reach_the_hook(void **state) {
  (void)state;
  counted_services host;
  counted_services_init(&host);
  gm__log(&host.services, GM_LOG_WARN, "device %d lost: %s", 3, "gone");
  assert_int_equal(host.last_level, GM_LOG_WARN);
  assert_string_equal(host.last_line, "device 3 lost: gone");
  assert_int_equal(host.lines, 1);
  assert_int_equal(host.calls, 0);
}

static void test_nothing_without_a_hook(void **state) {
  (void)state;
  gm_services services = {0};
  gm__log(&services, GM_LOG_ERROR, "%s", "unheard");
  gm__log(NULL, GM_LOG_ERROR, "%s", "unheard");
}

static void test_long_lines_are_cut(void **state) {
  (void)state;
  counted_services host;
  counted_services_init(&host);
  gm__log(&host.services, GM_LOG_INFO, "%5000s", "x");
  assert_int_equal(strlen(host.last_line), GM__LOG_LINE - 1);
}

static void test_control_characters_cannot_forge_a_line(void **state) {
  (void)state;
  counted_services host;
  counted_services_init(&host);
  gm__log(&host.services, GM_LOG_INFO, "name %s", "a\nERROR: b\x1b[2Jc\x7f \xc3\xa9");
  assert_string_equal(host.last_line, "name a?ERROR: b?[2Jc? \xc3\xa9");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_line_and_level_reach_the_hook),
      cmocka_unit_test(test_nothing_without_a_hook),
      cmocka_unit_test(test_long_lines_are_cut),
      cmocka_unit_test(test_control_characters_cannot_forge_a_line),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

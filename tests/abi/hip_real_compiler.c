/* The real hiprtc, which needs no GPU, compiles gm's programs for cards of several kinds. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/hip/hip_rtc.h"
#include "backends/shared/runtime/runtime_program_text.h"
#include "core/base/alloc.h"

enum { SKIPPED = 77 };

static int real_absent(const char *why) {
  const char *required = getenv("GM_REQUIRE_BACKENDS");
  const bool must = required && strstr(required, "hip");
  printf("%s: %s\n", must ? "failed" : "skipped", why);
  return must ? 1 : SKIPPED;
}

/* An object for the card, or a bundle of such. */
static bool real_is_code(const gm__runtime_code *code) {
  return code->size > 64 && (memcmp(code->bytes, "\177ELF", 4) == 0 || memcmp(code->bytes, "__CLANG_", 8) == 0);
}

static int real_compile(const gm__hip_driver *driver, const char *architecture, const char *text) {
  gm__runtime_code code = {.bytes = NULL};
  gm_error err = {0};
  const gm_status status = gm__hip_rtc_compile(driver, architecture, text, &code, &err);
  printf("%s: %s, %zu bytes %s\n", architecture, gm_status_name(status), code.size, err.message);
  if (status != GM_OK) return 1;
  const bool good = real_is_code(&code);
  gm__hip_rtc_release(driver, &code);
  return good ? 0 : 1;
}

/* A source that is no program is an error with the compiler's own words. (A card that the compiler does not know is
 * not tried: that of 5.2 ends the process.) */
static int real_refuse(const gm__hip_driver *driver) {
  gm__runtime_code code = {.bytes = NULL};
  gm_error err = {0};
  const gm_status status = gm__hip_rtc_compile(driver, "gfx90a", "no program", &code, &err);
  printf("no program: %s, %s\n", gm_status_name(status), err.message);
  return status == GM_ERR_DRIVER && strstr(err.message, "HIPRTC_ERROR_COMPILATION (6): ") ? 0 : 1;
}

int main(void) {
  static const char *const architectures[] = {"gfx900", "gfx906", "gfx90a", "gfx1030"};
  gm__hip_driver driver = {.base.services = gm__default_services()};
  gm__runtime_driver *base = &driver.base;
  gm_error err = {0};
  char text[8192] = ""; /* all programs as one: it compiles faster */
  int failed = 0;
  for (int id = 0; id < GM__RUNTIME_PROGRAMS; id++) {
    snprintf(text + strlen(text), sizeof text - strlen(text), "%s\n", gm__runtime_program_texts[id]);
  }
  base->host = (gm_backend_host){.struct_size = sizeof base->host, .services = base->services, .options = ""};
  const gm__dynlib_spec spec = gm__hip_library(&base->host);
  if (gm__dynlib_open(base->services, &spec, &base->lib, &err) != GM_OK) return real_absent(err.message);
  gm__dynlib_keep(base->lib);
  if (gm__hip_resolve(&base->host, base->lib, &driver.hip, &err) != GM_OK) return real_absent(err.message);
  if (driver.hip.simulated) return real_absent("libamdhip64 is a simulated one");
  driver.hip.hipRuntimeGetVersion(&driver.version);
  printf("HIP %d\n", driver.version);
  for (size_t i = 0; i < sizeof architectures / sizeof architectures[0]; i++) {
    failed += real_compile(&driver, architectures[i], text);
  }
  failed += real_refuse(&driver);
  gm__dynlib_close(base->lib);
  return failed ? 1 : 0;
}

/* The real hiprtc, which needs no GPU, compiles gm's program for cards of several kinds. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/hip/hip_rtc.h"
#include "core/base/alloc.h"

enum { SKIPPED = 77 };

static const char program_text[] =
#define GM__HIP_PROGRAM(...) "extern \"C\" __global__ " #__VA_ARGS__
#include "backends/hip/hip_program.def"
#undef GM__HIP_PROGRAM
    ;

static int real_absent(const char *why) {
  const char *required = getenv("GM_REQUIRE_BACKENDS");
  const bool must = required && strstr(required, "hip");
  printf("%s: %s\n", must ? "failed" : "skipped", why);
  return must ? 1 : SKIPPED;
}

/* An object for the card, or a bundle of such. */
static bool real_is_code(const gm__hip_code *code) {
  return code->size > 64 && (memcmp(code->bytes, "\177ELF", 4) == 0 || memcmp(code->bytes, "__CLANG_", 8) == 0);
}

static int real_compile(const gm__hip_driver *driver, const char *architecture) {
  gm__hip_code code = {NULL, 0};
  gm_error err = {0};
  const gm_status status = gm__hip_rtc_compile(driver, architecture, program_text, &code, &err);
  printf("%s: %s, %zu bytes %s\n", architecture, gm_status_name(status), code.size, err.message);
  if (status != GM_OK) return 1;
  const bool good = real_is_code(&code);
  gm__hip_rtc_release(driver, &code);
  return good ? 0 : 1;
}

/* A source that is no program is an error with the compiler's own words. (A card that the compiler does not know is
 * not tried: that of 5.2 ends the process.) */
static int real_refuse(const gm__hip_driver *driver) {
  gm__hip_code code = {NULL, 0};
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
  int failed = 0;
  base->host = (gm_backend_host){.struct_size = sizeof base->host, .services = base->services, .options = ""};
  const gm__dynlib_spec spec = gm__hip_library(&base->host);
  if (gm__dynlib_open(base->services, &spec, &base->lib, &err) != GM_OK) return real_absent(err.message);
  gm__dynlib_keep(base->lib);
  if (gm__hip_resolve(&base->host, base->lib, &driver.hip, &err) != GM_OK) return real_absent(err.message);
  if (driver.hip.simulated) return real_absent("libamdhip64 is a simulated one");
  driver.hip.hipRuntimeGetVersion(&driver.version);
  printf("HIP %d\n", driver.version);
  for (size_t i = 0; i < sizeof architectures / sizeof architectures[0]; i++) {
    failed += real_compile(&driver, architectures[i]);
  }
  failed += real_refuse(&driver);
  gm__dynlib_close(base->lib);
  return failed ? 1 : 0;
}

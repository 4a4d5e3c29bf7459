/* The real libamdhip64 on a machine without an AMD GPU: "unavailable, no device", and the process lives. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/hip/hip_backend.h"
#include "core/base/alloc.h"

enum { SKIPPED = 77 };

static int real_absent(const char *why) {
  const char *required = getenv("GM_REQUIRE_BACKENDS");
  const bool must = required && strstr(required, "hip");
  printf("%s: %s\n", must ? "failed" : "skipped", why);
  return must ? 1 : SKIPPED;
}

int main(void) {
  const gm_backend_host host = {.struct_size = sizeof host, .services = gm__default_services(), .options = ""};
  gm_driver_info info = {.struct_size = sizeof info};
  gm_error err = {0};
  const gm_status status = gm__hip_backend.probe(&host, GM_PROBE_ACTIVE, &info, &err);
  printf("%s: %s\n", gm_status_name(status), status == GM_OK ? info.library : err.message);
  if (status == GM_OK) return real_absent("there is a device");
  if (strstr(err.message, "not found (tried")) return real_absent("no libamdhip64 is installed");
  if (status != GM_ERR_UNAVAILABLE || !strstr(err.message, "finds no device")) return 1;
  void *driver = NULL;
  return gm__hip_backend.init(&host, &driver, &err) == GM_ERR_UNAVAILABLE && !driver ? 0 : 1;
}

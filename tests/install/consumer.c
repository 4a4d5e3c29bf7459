/* A consumer of the installed package: C and C++ compile this same file. Opens the one device that is always there. */
#include <gm/gm.h>
#include <stdio.h>
#include <string.h>

static int failed(const gm_error *err) {
  fprintf(stderr, "%s: %s: %s\n", gm_status_name(err->status), err->op, err->message);
  return 1;
}

int main(void) {
  char headers[32];
  snprintf(headers, sizeof headers, "%d.%d.%d", GM_VERSION_MAJOR, GM_VERSION_MINOR, GM_VERSION_PATCH);
  if (strcmp(headers, gm_version_string()) != 0 || gm_version() != GM_VERSION_NUMBER) return 1;

  gm_error err;
  gm_context *ctx;
  gm_device *device;
  if (gm_context_create(NULL, &ctx, &err) != GM_OK) return failed(&err);
  if (gm_device_open_index(ctx, "cpu", 0, &device, &err) != GM_OK) return failed(&err);
  printf("gm %s on %s\n", gm_version_string(), gm_device_get_info(device)->name);
  if (gm_device_close(device, &err) != GM_OK || gm_context_destroy(ctx, &err) != GM_OK) return failed(&err);
  return 0;
}

/* A consumer of the installed package: C and C++ compile this same file. */
#include <gm/status.h>
#include <gm/version.h>
#include <stdio.h>
#include <string.h>

int main(void) {
  char headers[32];
  snprintf(headers, sizeof headers, "%d.%d.%d", GM_VERSION_MAJOR, GM_VERSION_MINOR, GM_VERSION_PATCH);
  if (strcmp(headers, gm_version_string()) != 0) return 1;
  printf("gm %s: %s\n", gm_version_string(), gm_status_text(GM_OK));
  return strcmp(gm_status_name(GM_OK), "GM_OK") != 0;
}

#include "tests/simulated/cuda/sim_name.h"

#include <string.h>

static bool name_suffix_ok(const char *suffix) {
  if (strncmp(suffix, "_v", 2) == 0) {
    suffix += 2;
    suffix += strspn(suffix, "0123456789");
  }
  return !*suffix || strcmp(suffix, "_ptsz") == 0 || strcmp(suffix, "_ptds") == 0;
}

bool sim_name_matches(const char *pattern, const char *name) {
  size_t length = strlen(pattern);
  return strncmp(pattern, name, length) == 0 && name_suffix_ok(name + length);
}

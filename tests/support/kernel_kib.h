/* The kernel's counts of this process. Include cmocka.h first. */
#ifndef GM_TESTS_SUPPORT_KERNEL_KIB_H
#define GM_TESTS_SUPPORT_KERNEL_KIB_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The kilobytes in the line of the file that begins with `key`, which must be there. */
static inline long kernel_kib(const char *path, const char *key) {
  FILE *file = fopen(path, "r");
  assert_non_null(file);
  char line[256];
  long kib = -1;
  while (fgets(line, sizeof line, file)) {
    if (strncmp(line, key, strlen(key)) == 0) kib = strtol(line + strlen(key), NULL, 10);
  }
  fclose(file);
  assert_true(kib >= 0);
  return kib;
}

#endif

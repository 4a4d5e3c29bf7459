/* The common parts of the fuzz targets and their driver. */
#ifndef GM_TESTS_FUZZ_FUZZ_H
#define GM_TESTS_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

/* Holds in release builds too; a fuzzer and a test both see an abort. */
#define fuzz_require(condition) fuzz_check((condition), #condition, __FILE__, __LINE__)

static inline void fuzz_check(int holds, const char *condition, const char *file, int line) {
  if (holds) return;
  fprintf(stderr, "%s:%d: does not hold: %s\n", file, line, condition);
  abort();
}

#endif

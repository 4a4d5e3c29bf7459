/* For programs whose contexts ignore the environment: the libraries that it names all the same, which is how a test
 * gets a simulated driver. */
#ifndef GM_TESTS_SUPPORT_NAMED_LIBRARIES_H
#define GM_TESTS_SUPPORT_NAMED_LIBRARIES_H

#include <stdio.h>
#include <stdlib.h>

/* For gm_context_params.libraries: "cuda=FILE" from GM_CUDA_LIBRARY; NULL: none is named. Static storage. */
static inline const char *named_libraries(void) {
  static char libraries[256];
  const char *cuda = getenv("GM_CUDA_LIBRARY");
  if (!cuda || !*cuda) return NULL;
  snprintf(libraries, sizeof libraries, "cuda=%s", cuda);
  return libraries;
}

#endif

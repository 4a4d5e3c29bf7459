/* For programs whose contexts ignore the environment: the libraries that it names all the same, which is how a test
 * gets a simulated driver. */
#ifndef GM_TESTS_SUPPORT_NAMED_LIBRARIES_H
#define GM_TESTS_SUPPORT_NAMED_LIBRARIES_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

/* For gm_context_params.libraries: "cuda=FILE,hip=FILE" from GM_CUDA_LIBRARY and GM_HIP_LIBRARY; NULL: none is named.
 * Static storage. */
static inline const char *named_libraries(void) {
  static char libraries[512];
  const char *cuda = getenv("GM_CUDA_LIBRARY"), *hip = getenv("GM_HIP_LIBRARY");
  const bool has_cuda = cuda && *cuda, has_hip = hip && *hip;
  if (!has_cuda && !has_hip) return NULL;
  snprintf(libraries, sizeof libraries, "%s%s%s%s%s", has_cuda ? "cuda=" : "", has_cuda ? cuda : "",
           has_cuda && has_hip ? "," : "", has_hip ? "hip=" : "", has_hip ? hip : "");
  return libraries;
}

#endif

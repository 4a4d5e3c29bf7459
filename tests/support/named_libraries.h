/* For programs whose contexts ignore the environment. They name the libraries and switches that a context takes from it
 * all the same: that is how a test gets a simulated driver. */
#ifndef GM_TESTS_SUPPORT_NAMED_LIBRARIES_H
#define GM_TESTS_SUPPORT_NAMED_LIBRARIES_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* For gm_context_params.libraries: "cuda=FILE,…" from GM_CUDA_LIBRARY and the like; NULL: none is named. Static
 * storage. */
static inline const char *named_libraries(void) {
  static const char *const names[][2] = {{"cuda", "GM_CUDA_LIBRARY"},
                                         {"hip", "GM_HIP_LIBRARY"},
                                         {"opencl", "GM_OPENCL_LIBRARY"},
                                         {"vulkan", "GM_VULKAN_LIBRARY"}};
  static char libraries[1024];
  libraries[0] = '\0';
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    const char *file = getenv(names[i][1]);
    const size_t length = strlen(libraries);
    if (!file || !*file) continue;
    snprintf(libraries + length, sizeof libraries - length, "%s%s=%s", length ? "," : "", names[i][0], file);
  }
  return libraries[0] ? libraries : NULL;
}

/* For gm_context_params.backend_options: `own` with GM_OPENCL_OPTIONS behind it. Static storage. */
static inline const char *named_options(const char *own) {
  static char options[256];
  const char *opencl = getenv("GM_OPENCL_OPTIONS");
  snprintf(options, sizeof options, "%s%s%s", own, opencl ? ";opencl:" : "", opencl ? opencl : "");
  return options;
}

#endif

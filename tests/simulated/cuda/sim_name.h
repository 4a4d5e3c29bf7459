/* Names of entry points. */
#ifndef GM_TESTS_SIMULATED_CUDA_SIM_NAME_H
#define GM_TESTS_SIMULATED_CUDA_SIM_NAME_H

#include <stdbool.h>

/* Does `pattern` ("cuMemAlloc" or "cuMemAlloc_v2") mean the entry point `name`? */
bool sim_name_matches(const char *pattern, const char *name);

#endif

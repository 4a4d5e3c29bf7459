/* The table of entry points, and the search of cuGetProcAddress in it. */
#ifndef GM_TESTS_SIMULATED_CUDA_SIM_SYMBOL_H
#define GM_TESTS_SIMULATED_CUDA_SIM_SYMBOL_H

#include "tests/simulated/cuda/sim_call.h"

typedef struct sim_symbol {
  const char *name;
  int since; /* CUDA version, 1000 * major + 10 * minor */
  unsigned needs;
} sim_symbol;

extern const sim_symbol sim_symbols[SIM_ID_COUNT];

#endif

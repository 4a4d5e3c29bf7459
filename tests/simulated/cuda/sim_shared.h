/* Managed memory: host memory that devices reach at the same address. Wants the lock. */
#ifndef GM_TESTS_SIMULATED_CUDA_SIM_SHARED_H
#define GM_TESTS_SIMULATED_CUDA_SIM_SHARED_H

#include "tests/simulated/cuda/sim_range.h"

CUresult sim_shared_destroy(sim_range *range);

#endif

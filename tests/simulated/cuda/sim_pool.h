/* Stream-ordered memory. A free takes effect when its stream gets there: then the memory is poisoned. Its own stream
 * may have it again at once, others only after that. Wants the lock. */
#ifndef GM_TESTS_SIMULATED_CUDA_SIM_POOL_H
#define GM_TESTS_SIMULATED_CUDA_SIM_POOL_H

#include "tests/simulated/cuda/sim_range.h"

/* After a wait for work of `device`: pools give back what is above their threshold. */
void sim_pool_synchronized(int device);

/* At once, all work being done. */
CUresult sim_pool_give_back(sim_range *range);

int sim_pool_count(void); /* without the default ones */

#endif

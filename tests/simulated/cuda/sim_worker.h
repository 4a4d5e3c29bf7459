/* The threads that do the streams' work: one for the device, one for host functions. So a host function that blocks
 * blocks its own stream alone. */
#ifndef GM_TESTS_SIMULATED_CUDA_SIM_WORKER_H
#define GM_TESTS_SIMULATED_CUDA_SIM_WORKER_H

#include <stdbool.h>

#include "tests/simulated/cuda/sim_queue.h"

/* Does the first operation of a queue in the calling thread, and finishes it. Wants the lock, and gives it away
 * meanwhile.
 */
void sim_worker_do(sim_op *op, sim_queue *queue);

/* Wants the lock. False: the threads could not be started. */
bool sim_worker_start(void);

/* Is this one of the threads? From there (host functions) every call answers CUDA_ERROR_NOT_PERMITTED. */
bool sim_worker_is_current(void);

#endif

/* Copies as operations of a queue. Wants the lock. */
#ifndef GM_TESTS_SIMULATED_CUDA_SIM_COPY_H
#define GM_TESTS_SIMULATED_CUDA_SIM_COPY_H

#include <stdint.h>
#include <time.h>

#include "tests/simulated/cuda/sim_queue.h"

typedef enum sim_wait { SIM_NO_WAIT, SIM_WAIT } sim_wait;

CUresult sim_copy_add(sim_queue *queue, uint64_t to, uint64_t from, uint64_t bytes, sim_wait wait);

/* A copy as the link model sees it, on a queue of `device`; nothing without one. */
gm__link_op sim_copy_link(int device, uint64_t to, uint64_t from, uint64_t bytes);

/* Without the lock: takes as long as the scripted bandwidth says. */
void sim_copy_slowly(uint64_t bytes);

#endif

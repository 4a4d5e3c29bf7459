/* Contexts: primary and created, the stack of current ones of each thread, and peer access. Wants the lock. */
#ifndef GM_TESTS_SIMULATED_CUDA_SIM_CONTEXT_H
#define GM_TESTS_SIMULATED_CUDA_SIM_CONTEXT_H

#include <stdbool.h>
#include <stdint.h>

#include "tests/simulated/cuda/sim_cuda_api.h"
#include "tests/simulated/cuda/sim_queue.h"

struct CUctx_st {
  uint64_t id; /* never used again, unlike the handle */
  int device;
  unsigned flags;
  bool primary;
  CUresult sticky;
  uint64_t peers; /* bit n: access to device n is enabled */
  sim_queue *legacy;
};

CUcontext sim_context_current(void); /* NULL: none */
bool sim_context_is_live(CUcontext context);
int sim_context_count(int device); /* -1: of all devices */

/* Every context of the device answers `code` from now on; CUDA_SUCCESS: works again. */
void sim_context_lose(int device, CUresult code);
int sim_context_primary_references(void);

#endif

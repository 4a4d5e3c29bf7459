/* Memory handles of cuMemCreate. Wants the lock. */
#ifndef GM_TESTS_SIMULATED_CUDA_SIM_VMM_H
#define GM_TESTS_SIMULATED_CUDA_SIM_VMM_H

#include "tests/simulated/cuda/sim_phys.h"

typedef struct sim_handle {
  sim_phys *phys;
  uint64_t bytes;
  unsigned references; /* of the program; mappings hold phys */
  unsigned mappings;
  CUmemAllocationProp prop;
} sim_handle;

sim_handle *sim_vmm_handle(CUmemGenericAllocationHandle handle); /* NULL: it is none */

/* A handle with one reference; takes `phys`, also on failure (0). */
CUmemGenericAllocationHandle sim_vmm_make(sim_phys *phys, uint64_t bytes, const CUmemAllocationProp *prop);

int sim_vmm_handles(void);
uint64_t sim_vmm_reservations(void);

#endif

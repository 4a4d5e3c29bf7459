/* Modules and launches: images are searched for names of kernels that are known as C functions. Wants the lock. */
#ifndef GM_TESTS_SIMULATED_CUDA_SIM_MODULE_H
#define GM_TESTS_SIMULATED_CUDA_SIM_MODULE_H

#include <stdbool.h>

#include "tests/simulated/cuda/sim_control.h"
#include "tests/simulated/cuda/sim_cuda_api.h"

enum { SIM_KERNEL_ARGUMENTS = 16 };

bool sim_module_register(const char *name, sim_kernel *kernel, const size_t *sizes, size_t count);
void sim_module_drop_context(CUcontext context);
int sim_module_count(void);

#endif

/* The kernels that the simulated driver knows by itself. Wants the lock. */
#ifndef GM_TESTS_SIMULATED_CUDA_SIM_KERNELS_H
#define GM_TESTS_SIMULATED_CUDA_SIM_KERNELS_H

void sim_kernels_register(void); /* once; later calls do nothing */

#endif

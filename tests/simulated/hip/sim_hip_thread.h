/* HIP's state of a thread: its current device, whose context is that of the simulated CUDA, and its last error. */
#ifndef GM_TESTS_SIMULATED_HIP_SIM_HIP_THREAD_H
#define GM_TESTS_SIMULATED_HIP_SIM_HIP_THREAD_H

#include "tests/simulated/cuda/sim_cuda_api.h"
#include "tests/simulated/hip/sim_hip_api.h"

/* Makes the context of the thread's device current, and the context itself the first time. */
CUresult sim_hip_context(void);

/* The context of a device, made the first time. */
CUresult sim_hip_context_of(int device, CUcontext *out);

/* The answer of an entry: a failure is remembered for the thread. The numbers are the same. */
hipError_t sim_hip_answer(CUresult result);

/* The device that a context is of; -1: none of HIP's. */
int sim_hip_device_of(CUcontext context);

#endif

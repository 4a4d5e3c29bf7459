/* The part of HIP that the simulated libamdhip64.so answers: what gm calls, and what an engine needs beside it. */
#ifndef GM_TESTS_SIMULATED_HIP_SIM_HIP_API_H
#define GM_TESTS_SIMULATED_HIP_SIM_HIP_API_H

#include <stdbool.h>

#include "backends/hip/hip_abi.h"

typedef struct ihipGraph *hipGraph_t;

#pragma GCC visibility push(default)

#define X(need, fault, symbol, parameters, arguments) hipError_t symbol parameters;
#include "backends/hip/hip_syms.def"
#undef X

hipError_t hipLaunchHostFunc(hipStream_t stream, void (*function)(void *), void *user);
hipError_t hipStreamBeginCapture(hipStream_t stream, hipStreamCaptureMode mode);
hipError_t hipStreamEndCapture(hipStream_t stream, hipGraph_t *out);
hipError_t hipGraphDestroy(hipGraph_t graph);

/* As simCudaControl (tests/simulated/cuda/sim_control.h), but that contexts are no leaks: HIP keeps its own for the
 * life of the process. */
int simHipControl(const char *command, char *reply, size_t capacity);

#pragma GCC visibility pop

#endif

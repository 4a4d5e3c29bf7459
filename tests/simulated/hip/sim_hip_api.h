/* The part of HIP that the simulated libamdhip64.so answers: what gm calls, and what an engine needs beside it. */
#ifndef GM_TESTS_SIMULATED_HIP_SIM_HIP_API_H
#define GM_TESTS_SIMULATED_HIP_SIM_HIP_API_H

#include <stdbool.h>

#include "backends/hip/hip_abi.h"
#include "backends/shared/link_model.h"

typedef struct ihipGraph *hipGraph_t;
typedef struct hipGraphExec *hipGraphExec_t;

#pragma GCC visibility push(default)

#define X(need, fault, symbol, parameters, arguments) hipError_t symbol parameters;
#include "backends/hip/hip_syms.def"
#undef X

hipError_t hipDeviceSynchronize(void);
hipError_t hipLaunchHostFunc(hipStream_t stream, void (*function)(void *), void *user);
hipError_t hipStreamBeginCapture(hipStream_t stream, hipStreamCaptureMode mode);
hipError_t hipStreamEndCapture(hipStream_t stream, hipGraph_t *out);
hipError_t hipStreamGetCaptureInfo(hipStream_t stream, hipStreamCaptureStatus *state, unsigned long long *id);
hipError_t hipGraphDestroy(hipGraph_t graph);
hipError_t hipGraphInstantiateWithFlags(hipGraphExec_t *out, hipGraph_t graph, unsigned long long flags);
hipError_t hipGraphLaunch(hipGraphExec_t exec, hipStream_t stream);
hipError_t hipGraphExecDestroy(hipGraphExec_t exec);

/* Like simCudaControl (tests/simulated/cuda/sim_control.h), but that contexts are no leaks: HIP keeps its own for the
 * life of the process. */
int simHipControl(const char *command, char *reply, size_t capacity);

/* Does what simCudaJournal does. */
uint64_t simHipJournal(gm__link_entry *out, uint64_t capacity);

#pragma GCC visibility pop

#endif

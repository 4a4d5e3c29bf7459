/* The questions that tests may ask of the simulated libhiprtc.so beside hiprtc's entries; looked up with dlsym. */
#ifndef GM_TESTS_SIMULATED_HIP_SIM_HIPRTC_H
#define GM_TESTS_SIMULATED_HIP_SIM_HIPRTC_H

#include "backends/hip/hip_rtc_abi.h"

#pragma GCC visibility push(default)

#define X(need, fault, symbol, parameters, arguments) hiprtcResult symbol parameters;
#include "backends/hip/hip_rtc_syms.def"
#undef X

/* "zero": counts at 0, nothing scripted. "calls NAME": how often it was called since; "programs": how many live.
 * "fail NAME N CODE": its N-th call from now on answers CODE, once. "size BYTES": what hiprtcGetCodeSize says; "none":
 * success without a program. -1: unknown. Thread-safe. */
long simHiprtcControl(const char *command);

#pragma GCC visibility pop

#endif

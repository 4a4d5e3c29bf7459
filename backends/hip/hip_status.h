/* HIP's error numbers as statuses. Thread-safe, no state. */
#ifndef GM_BACKENDS_HIP_STATUS_H
#define GM_BACKENDS_HIP_STATUS_H

#include <stdbool.h>

#include "backends/hip/hip_abi.h"
#include "gm/status.h"

/* GM_OK for hipSuccess; numbers that nobody knows are GM_ERR_DRIVER. */
gm_status gm__hip_status(int code);

/* "hipErrorOutOfMemory"; "unknown code" for a number without a name. Static storage. */
const char *gm__hip_code_name(int code);

/* The answer of a call that gives something back: done, or there is nothing left to give back to. */
bool gm__hip_released(hipError_t code);

/* Fill `err` with the code, its name and what it means to the caller; returns gm__hip_status(code). */
gm_status gm__hip_fail(gm_error *err, hipError_t code, const char *op);

/* The same where the call says more than the number: out of memory of what. */
gm_status gm__hip_fail_as(gm_error *err, gm_status status, hipError_t code, const char *op);

/* The driver said success, and what it gave cannot be: `what` tells. GM_ERR_DRIVER. */
gm_status gm__hip_nonsense(gm_error *err, const char *op, const char *what);

#endif

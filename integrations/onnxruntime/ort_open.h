/* The table of functions of one ONNX Runtime in the process. A process can have several: Python's module is one. */
#ifndef GM_INTEGRATIONS_ONNXRUNTIME_ORT_OPEN_H
#define GM_INTEGRATIONS_ONNXRUNTIME_ORT_OPEN_H

#include "ort_abi.h"

/* The oldest and the newest version 1.N whose allocators gm knows. A newer one is used as the newest. */
enum { GM_ORT_OLDEST = 19, GM_ORT_NEWEST = ORT_SINCE_SHRINK };

/* Returns the table, and the version that it has. gm tries calls at known positions first, whose answers show that the
 * table is what it should be. NULL: gm_engines_why has the reason. */
const ort_api *gm_ort_open(const struct OrtApiBase *base, uint32_t *out_version);

/* Returns gm_engines_why as a status of ONNX Runtime. NULL: there is no ONNX Runtime behind `base`. */
struct OrtStatus *gm_ort_failure(const struct OrtApiBase *base);

/* Ends a function that ONNX Runtime called, because there is no memory: throws std::runtime_error with
 * gm_engines_why. ONNX Runtime's own allocators throw, too, and it turns that into its error. It does not look whether
 * an allocation of an OrtAllocator returned NULL, and crashes then (seen with 1.32).
 *
 * Returns where no libstdc++ is loaded. */
void gm_ort_raise(void);

#endif

/* Driver calls, bytes and time of a session on ONNX Runtime's arena, without it, and on gm, in one go. The time is that
 * of the processor for a run, in the fastest round. */
#ifndef GM_INTEGRATIONS_ONNXRUNTIME_CHECK_FIGURES_H
#define GM_INTEGRATIONS_ONNXRUNTIME_CHECK_FIGURES_H

#include "check_ort.h"
#include "gm/gm.h"

/* Prints a row for each. `pool` is what serves a session with env_allocators. False: a session failed. */
bool check_figures_print(const check_ort *on, const check_model *model, gm_pool *pool);

#endif

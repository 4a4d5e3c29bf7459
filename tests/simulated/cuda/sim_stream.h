/* Stream handles. Wants the lock, but for sim_stream_own. */
#ifndef GM_TESTS_SIMULATED_CUDA_SIM_STREAM_H
#define GM_TESTS_SIMULATED_CUDA_SIM_STREAM_H

#include <stdbool.h>

#include "tests/simulated/cuda/sim_cuda_api.h"
#include "tests/simulated/cuda/sim_queue.h"

enum { SIM_STREAM_GREATEST_PRIORITY = -5 };

/* While set, the null stream of this thread is its own: for the forms that have no stream to name. */
extern _Thread_local bool sim_stream_null_is_per_thread;

/* The null stream becomes that of the calling thread. */
static inline CUstream sim_stream_own(CUstream stream) { return stream ? stream : CU_STREAM_PER_THREAD; }

/* The queue of a handle, CUDA_ERROR_INVALID_HANDLE when it is none. */
CUresult sim_stream_queue(CUstream stream, sim_queue **out);

void sim_stream_drop_context(CUcontext context);
int sim_stream_count(void);

#endif

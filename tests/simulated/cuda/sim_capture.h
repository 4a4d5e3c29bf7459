/* Captures: a stream whose work is recorded into a graph instead of done, those that joined it through events, and what
 * is forbidden meanwhile. Wants the lock. */
#ifndef GM_TESTS_SIMULATED_CUDA_SIM_CAPTURE_H
#define GM_TESTS_SIMULATED_CUDA_SIM_CAPTURE_H

#include "tests/simulated/cuda/sim_cuda_api.h"
#include "tests/simulated/cuda/sim_queue.h"

CUresult sim_capture_add(sim_queue *queue, sim_op *op); /* takes `op`, also on failure */
CUresult sim_capture_record(sim_queue *queue, CUevent event);
CUresult sim_capture_wait(sim_queue *queue, CUevent event);

/* CUDA_SUCCESS where nothing is captured; otherwise the error, and the capture is broken by the attempt. */
CUresult sim_capture_forbids_unsafe(void);
CUresult sim_capture_forbids_wait(sim_queue *queue);
CUresult sim_capture_forbids_legacy(sim_queue *queue);
CUresult sim_capture_forbids_event(CUevent event);

void sim_capture_forget(sim_queue *queue); /* the queue goes */
int sim_capture_graphs(void);              /* graphs and executable graphs that live */

#endif

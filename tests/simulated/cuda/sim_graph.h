/* Graphs as captures make them: a list of operations that is done in one line. Wants the lock. */
#ifndef GM_TESTS_SIMULATED_CUDA_SIM_GRAPH_H
#define GM_TESTS_SIMULATED_CUDA_SIM_GRAPH_H

#include "tests/simulated/cuda/sim_cuda_api.h"
#include "tests/simulated/cuda/sim_queue.h"

CUgraph sim_graph_create(void);
void sim_graph_add(CUgraph graph, sim_op *op); /* takes it */
void sim_graph_destroy(CUgraph graph);

#endif

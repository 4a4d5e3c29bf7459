#include "tests/simulated/cuda/sim_graph.h"

#include <stdlib.h>
#include <string.h>

#include "tests/simulated/cuda/sim_call.h"
#include "tests/simulated/cuda/sim_capture.h"
#include "tests/simulated/cuda/sim_slab.h"
#include "tests/simulated/cuda/sim_stream.h"

typedef struct graph_ops {
  sim_op *head, *tail;
} graph_ops;

struct CUgraph_st {
  graph_ops ops;
};
struct CUgraphExec_st {
  graph_ops ops;
};

static sim_slab graph_slab = {.item_bytes = sizeof(struct CUgraph_st)};
static sim_slab graph_exec_slab = {.item_bytes = sizeof(struct CUgraphExec_st)};

int sim_capture_graphs(void) { return graph_slab.live_count + graph_exec_slab.live_count; }
CUgraph sim_graph_create(void) { return sim_slab_take(&graph_slab); }

static void graph_append(graph_ops *ops, sim_op *op) {
  op->next = NULL;
  if (ops->tail) ops->tail->next = op;
  if (!ops->tail) ops->head = op;
  ops->tail = op;
}

static void graph_clear(graph_ops *ops) {
  for (sim_op *op = ops->head, *next; op; op = next) {
    next = op->next;
    free(op);
  }
}

void sim_graph_add(CUgraph graph, sim_op *op) { graph_append(&graph->ops, op); }

void sim_graph_destroy(CUgraph graph) {
  graph_clear(&graph->ops);
  sim_slab_give(&graph_slab, graph);
}

static sim_op *graph_copy_op(const sim_op *op) {
  sim_op *copy = sim_op_create(op->bytes);
  if (!copy) return NULL;
  memcpy(copy, op, op->bytes);
  copy->next = NULL;
  return copy;
}

static CUresult graph_instantiate(CUgraphExec *out, CUgraph graph) {
  if (!out || !sim_slab_is_live(&graph_slab, graph)) return CUDA_ERROR_INVALID_VALUE;
  CUgraphExec exec = sim_slab_take(&graph_exec_slab);
  if (!exec) return CUDA_ERROR_OUT_OF_MEMORY;
  for (const sim_op *op = graph->ops.head; op; op = op->next) {
    sim_op *copy = graph_copy_op(op);
    if (copy) graph_append(&exec->ops, copy);
  }
  *out = exec;
  return CUDA_SUCCESS;
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec *out, CUgraph graph, unsigned long long flags) {
  CUresult result = sim_enter(sim_id_cuGraphInstantiateWithFlags);
  if (result) return result;
  return sim_leave(flags > 15 ? CUDA_ERROR_INVALID_VALUE : graph_instantiate(out, graph));
}

static CUresult graph_launch(CUgraphExec exec, CUstream stream) {
  sim_queue *queue = NULL;
  if (!sim_slab_is_live(&graph_exec_slab, exec)) return CUDA_ERROR_INVALID_VALUE;
  CUresult result = sim_stream_queue(stream, &queue);
  for (const sim_op *op = exec->ops.head; op && !result; op = op->next)
    result = sim_queue_add(queue, graph_copy_op(op));
  return result;
}

CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream) {
  CUresult result = sim_enter(sim_id_cuGraphLaunch);
  if (result) return result;
  return sim_leave(graph_launch(exec, stream));
}

CUresult cuGraphExecDestroy(CUgraphExec exec) {
  CUresult result = sim_enter(sim_id_cuGraphExecDestroy);
  if (result) return result;
  if (!sim_slab_is_live(&graph_exec_slab, exec)) return sim_leave(CUDA_ERROR_INVALID_VALUE);
  graph_clear(&exec->ops);
  sim_slab_give(&graph_exec_slab, exec);
  return sim_leave(CUDA_SUCCESS);
}

CUresult cuGraphDestroy(CUgraph graph) {
  CUresult result = sim_enter(sim_id_cuGraphDestroy);
  if (result) return result;
  if (!sim_slab_is_live(&graph_slab, graph)) return sim_leave(CUDA_ERROR_INVALID_VALUE);
  sim_graph_destroy(graph);
  return sim_leave(CUDA_SUCCESS);
}

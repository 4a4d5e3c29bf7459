#include "tests/simulated/cuda/sim_capture.h"

#include <stdlib.h>

#include "tests/simulated/cuda/sim_call.h"
#include "tests/simulated/cuda/sim_context.h"
#include "tests/simulated/cuda/sim_event.h"
#include "tests/simulated/cuda/sim_graph.h"
#include "tests/simulated/cuda/sim_stream.h"

struct sim_capture {
  sim_capture *next;
  uint64_t id;
  uint64_t context_id;
  CUstreamCaptureMode mode;
  pthread_t thread;
  bool broken;
  sim_queue *origin;
  CUgraph graph;
};

static sim_capture *captures;
static uint64_t capture_next_id = 1;
static _Thread_local CUstreamCaptureMode capture_thread_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;

static CUresult capture_break(sim_capture *capture, CUresult why) {
  capture->broken = true;
  return why;
}

CUresult sim_capture_add(sim_queue *queue, sim_op *op) {
  sim_capture *capture = queue->capture;
  if (capture->broken || op->settle) {
    if (op->settle) op->settle(op, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    free(op);
    if (capture->broken) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    return capture_break(capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  }
  sim_graph_add(capture->graph, op);
  queue->captured++;
  queue->unjoined = queue != capture->origin;
  return CUDA_SUCCESS;
}

CUresult sim_capture_record(sim_queue *queue, CUevent event) {
  if (queue->capture->broken) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  event->capture = queue->capture;
  event->captured_on = queue;
  event->captured = queue->captured;
  return CUDA_SUCCESS;
}

CUresult sim_capture_wait(sim_queue *queue, CUevent event) {
  sim_capture *capture = event->capture;
  if (!capture) return capture_break(queue->capture, CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
  if (capture->broken) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  if (queue->capture && queue->capture != capture) {
    queue->capture->broken = true;
    return capture_break(capture, CUDA_ERROR_STREAM_CAPTURE_MERGE);
  }
  if (queue->legacy) return capture_break(capture, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
  if (event->captured_on != queue && event->captured == event->captured_on->captured)
    event->captured_on->unjoined = false;
  if (!queue->capture) {
    queue->capture = capture;
    queue->captured = 0;
    queue->unjoined = true;
  }
  return CUDA_SUCCESS;
}

CUresult sim_capture_forbids_unsafe(void) {
  if (capture_thread_mode == CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_SUCCESS;
  for (sim_capture *capture = captures; capture; capture = capture->next) {
    bool mine = pthread_equal(capture->thread, pthread_self()) && capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED;
    bool any = capture_thread_mode == CU_STREAM_CAPTURE_MODE_GLOBAL && capture->mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
    if (mine || any) return capture_break(capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  }
  return CUDA_SUCCESS;
}

CUresult sim_capture_forbids_wait(sim_queue *queue) {
  if (queue->capture) return capture_break(queue->capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  return sim_capture_forbids_legacy(queue);
}

/* The capture that the legacy stream would wait for: it waits for blocking streams, and what is captured never runs. */
static sim_capture *capture_behind(const sim_queue *queue) {
  if (!queue->legacy) return NULL;
  for (sim_capture *capture = captures; capture; capture = capture->next) {
    bool blocking = !(capture->origin->flags & CU_STREAM_NON_BLOCKING);
    if (capture->context_id == queue->context_id && blocking) return capture;
  }
  return NULL;
}

CUresult sim_capture_forbids_legacy(sim_queue *queue) {
  sim_capture *capture = capture_behind(queue);
  return capture ? capture_break(capture, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT) : CUDA_SUCCESS;
}

CUresult sim_capture_forbids_event(CUevent event) { return capture_break(event->capture, CUDA_ERROR_CAPTURED_EVENT); }

static void capture_end(sim_capture *capture) {
  for (sim_queue *queue = sim_queues; queue; queue = queue->next) {
    if (queue->capture != capture) continue;
    queue->capture = NULL;
    queue->unjoined = false;
  }
  sim_event_forget_capture(capture);
  for (sim_capture **link = &captures; *link; link = &(*link)->next) {
    if (*link != capture) continue;
    *link = capture->next;
    break;
  }
  free(capture);
}

void sim_capture_forget(sim_queue *queue) {
  sim_capture *capture = queue->capture;
  if (!capture) return;
  if (capture->origin == queue) {
    sim_graph_destroy(capture->graph);
    capture_end(capture);
    return;
  }
  capture->broken = true;
  queue->capture = NULL;
}

static CUresult capture_begin(CUstream stream, CUstreamCaptureMode mode) {
  sim_queue *queue = NULL;
  if (mode > CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_ERROR_INVALID_VALUE;
  CUresult result = sim_stream_queue(stream, &queue);
  if (result) return result;
  if (queue->legacy) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  if (queue->capture) return CUDA_ERROR_INVALID_VALUE;
  sim_capture *capture = calloc(1, sizeof *capture);
  CUgraph graph = capture ? sim_graph_create() : NULL;
  if (!graph) {
    free(capture);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  *capture = (sim_capture){.next = captures, .id = capture_next_id++, .context_id = queue->context_id, .mode = mode};
  capture->thread = pthread_self();
  capture->origin = queue;
  capture->graph = graph;
  captures = capture;
  queue->capture = capture;
  queue->captured = 0;
  return CUDA_SUCCESS;
}

CUresult cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode) {
  CUresult result = sim_enter(sim_id_cuStreamBeginCapture_v2);
  if (result) return result;
  return sim_leave(capture_begin(stream, mode));
}

static bool capture_unjoined(const sim_capture *capture) {
  for (const sim_queue *queue = sim_queues; queue; queue = queue->next)
    if (queue->capture == capture && queue->unjoined) return true;
  return false;
}

static CUresult capture_finish(CUstream stream, CUgraph *out) {
  sim_queue *queue = NULL;
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  CUresult result = sim_stream_queue(stream, &queue);
  if (result) return result;
  sim_capture *capture = queue->capture;
  if (!capture) return CUDA_ERROR_INVALID_VALUE;
  if (capture->origin != queue) return capture_break(capture, CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
  bool other_thread =
      capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED && !pthread_equal(capture->thread, pthread_self());
  if (other_thread) return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
  if (capture->broken)
    result = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  else if (capture_unjoined(capture))
    result = CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
  *out = result ? NULL : capture->graph;
  if (result) sim_graph_destroy(capture->graph);
  capture_end(capture);
  return result;
}

CUresult cuStreamEndCapture(CUstream stream, CUgraph *out) {
  CUresult result = sim_enter(sim_id_cuStreamEndCapture);
  if (result) return result;
  return sim_leave(capture_finish(stream, out));
}

static CUresult capture_ask(CUstream stream, CUstreamCaptureStatus *out, uint64_t *id_out, CUgraph *graph_out) {
  sim_queue *queue = NULL;
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  CUresult result = sim_stream_queue(stream, &queue);
  if (result) return result;
  if (capture_behind(queue)) return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT; /* asking invalidates nothing */
  const sim_capture *capture = queue->capture;
  *out = CU_STREAM_CAPTURE_STATUS_NONE;
  if (!capture) return CUDA_SUCCESS;
  *out = capture->broken ? CU_STREAM_CAPTURE_STATUS_INVALIDATED : CU_STREAM_CAPTURE_STATUS_ACTIVE;
  if (!capture->broken && id_out) *id_out = capture->id;
  if (!capture->broken && graph_out) *graph_out = capture->graph;
  return CUDA_SUCCESS;
}

CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus *out) {
  CUresult result = sim_enter(sim_id_cuStreamIsCapturing);
  if (result) return result;
  return sim_leave(capture_ask(stream, out, NULL, NULL));
}

CUresult cuStreamGetCaptureInfo(CUstream stream, CUstreamCaptureStatus *out, uint64_t *id_out) {
  CUresult result = sim_enter(sim_id_cuStreamGetCaptureInfo);
  if (result) return result;
  return sim_leave(capture_ask(stream, out, id_out, NULL));
}

/* Dependencies are not told: the graph is one line of work. */
CUresult cuStreamGetCaptureInfo_v2(CUstream stream, CUstreamCaptureStatus *out, uint64_t *id_out, CUgraph *graph_out,
                                   const CUgraphNode **nodes_out, size_t *count_out) {
  CUresult result = sim_enter(sim_id_cuStreamGetCaptureInfo_v2);
  if (result) return result;
  if (nodes_out) *nodes_out = NULL;
  if (count_out) *count_out = 0;
  return sim_leave(capture_ask(stream, out, id_out, graph_out));
}

CUresult cuStreamGetCaptureInfo_v3(CUstream stream, CUstreamCaptureStatus *out, uint64_t *id_out, CUgraph *graph_out,
                                   const CUgraphNode **nodes_out, const CUgraphEdgeData **edges_out,
                                   size_t *count_out) {
  CUresult result = sim_enter(sim_id_cuStreamGetCaptureInfo_v3);
  if (result) return result;
  if (nodes_out) *nodes_out = NULL;
  if (edges_out) *edges_out = NULL;
  if (count_out) *count_out = 0;
  return sim_leave(capture_ask(stream, out, id_out, graph_out));
}

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode) {
  CUresult result = sim_enter(sim_id_cuThreadExchangeStreamCaptureMode);
  if (result) return result;
  if (!mode || *mode > CU_STREAM_CAPTURE_MODE_RELAXED) return sim_leave(CUDA_ERROR_INVALID_VALUE);
  CUstreamCaptureMode before = capture_thread_mode;
  capture_thread_mode = *mode;
  *mode = before;
  return sim_leave(CUDA_SUCCESS);
}

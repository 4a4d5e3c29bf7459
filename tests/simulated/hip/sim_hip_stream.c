/* Streams and events: those of the simulated CUDA, of the thread's current device. */
#include "tests/simulated/hip/sim_hip_thread.h"

static CUstream stream_of(hipStream_t stream) { return (CUstream)(void *)stream; }
static CUevent event_of(hipEvent_t event) { return (CUevent)(void *)event; }

hipError_t hipStreamCreateWithFlags(hipStream_t *out, unsigned int flags) {
  CUstream stream = NULL;
  CUresult result = sim_hip_context();
  if (!result) result = cuStreamCreate(&stream, flags);
  if (!result) *out = (hipStream_t)(void *)stream;
  return sim_hip_answer(result);
}

hipError_t hipStreamDestroy(hipStream_t stream) {
  const CUresult result = sim_hip_context();
  return sim_hip_answer(result ? result : cuStreamDestroy_v2(stream_of(stream)));
}

hipError_t hipStreamQuery(hipStream_t stream) {
  const CUresult result = sim_hip_context();
  return sim_hip_answer(result ? result : cuStreamQuery(stream_of(stream)));
}

hipError_t hipStreamSynchronize(hipStream_t stream) {
  const CUresult result = sim_hip_context();
  return sim_hip_answer(result ? result : cuStreamSynchronize(stream_of(stream)));
}

hipError_t hipDeviceSynchronize(void) {
  const CUresult result = sim_hip_context();
  return sim_hip_answer(result ? result : cuCtxSynchronize());
}

hipError_t hipStreamWaitEvent(hipStream_t stream, hipEvent_t event, unsigned int flags) {
  const CUresult result = sim_hip_context();
  return sim_hip_answer(result ? result : cuStreamWaitEvent(stream_of(stream), event_of(event), flags));
}

hipError_t hipStreamGetDevice(hipStream_t stream, hipDevice_t *device) {
  CUcontext context = NULL;
  CUresult result = sim_hip_context();
  if (!result) result = cuStreamGetCtx(stream_of(stream), &context);
  if (!result) *device = sim_hip_device_of(context);
  return sim_hip_answer(result);
}

hipError_t hipStreamIsCapturing(hipStream_t stream, hipStreamCaptureStatus *state) {
  CUstreamCaptureStatus found = CU_STREAM_CAPTURE_STATUS_NONE;
  CUresult result = sim_hip_context();
  if (!result) result = cuStreamIsCapturing(stream_of(stream), &found);
  if (!result) *state = (hipStreamCaptureStatus)found;
  return sim_hip_answer(result);
}

hipError_t hipThreadExchangeStreamCaptureMode(hipStreamCaptureMode *mode) {
  CUstreamCaptureMode wanted = (CUstreamCaptureMode)*mode;
  CUresult result = cuInit(0);
  if (!result) result = cuThreadExchangeStreamCaptureMode(&wanted);
  if (!result) *mode = (hipStreamCaptureMode)wanted;
  return sim_hip_answer(result);
}

hipError_t hipStreamBeginCapture(hipStream_t stream, hipStreamCaptureMode mode) {
  const CUresult result = sim_hip_context();
  return sim_hip_answer(result ? result : cuStreamBeginCapture_v2(stream_of(stream), (CUstreamCaptureMode)mode));
}

hipError_t hipStreamEndCapture(hipStream_t stream, hipGraph_t *out) {
  CUgraph graph = NULL;
  CUresult result = sim_hip_context();
  if (!result) result = cuStreamEndCapture(stream_of(stream), &graph);
  if (!result) *out = (hipGraph_t)(void *)graph;
  return sim_hip_answer(result);
}

hipError_t hipGraphDestroy(hipGraph_t graph) {
  const CUresult result = sim_hip_context();
  return sim_hip_answer(result ? result : cuGraphDestroy((CUgraph)(void *)graph));
}

hipError_t hipStreamGetCaptureInfo(hipStream_t stream, hipStreamCaptureStatus *state, unsigned long long *id) {
  CUstreamCaptureStatus found = CU_STREAM_CAPTURE_STATUS_NONE;
  uint64_t number = 0;
  CUresult result = sim_hip_context();
  if (!result) result = cuStreamGetCaptureInfo(stream_of(stream), &found, &number);
  if (!result) *state = (hipStreamCaptureStatus)found;
  if (!result && id) *id = number;
  return sim_hip_answer(result);
}

hipError_t hipGraphInstantiateWithFlags(hipGraphExec_t *out, hipGraph_t graph, unsigned long long flags) {
  CUgraphExec exec = NULL;
  CUresult result = sim_hip_context();
  if (!result) result = cuGraphInstantiateWithFlags(&exec, (CUgraph)(void *)graph, flags);
  if (!result) *out = (hipGraphExec_t)(void *)exec;
  return sim_hip_answer(result);
}

hipError_t hipGraphLaunch(hipGraphExec_t exec, hipStream_t stream) {
  const CUresult result = sim_hip_context();
  return sim_hip_answer(result ? result : cuGraphLaunch((CUgraphExec)(void *)exec, stream_of(stream)));
}

hipError_t hipGraphExecDestroy(hipGraphExec_t exec) {
  const CUresult result = sim_hip_context();
  return sim_hip_answer(result ? result : cuGraphExecDestroy((CUgraphExec)(void *)exec));
}

hipError_t hipLaunchHostFunc(hipStream_t stream, void (*function)(void *), void *user) {
  const CUresult result = sim_hip_context();
  return sim_hip_answer(result ? result : cuLaunchHostFunc(stream_of(stream), function, user));
}

hipError_t hipEventCreateWithFlags(hipEvent_t *out, unsigned int flags) {
  CUevent event = NULL;
  CUresult result = sim_hip_context();
  if (!result) result = cuEventCreate(&event, flags);
  if (!result) *out = (hipEvent_t)(void *)event;
  return sim_hip_answer(result);
}

hipError_t hipEventDestroy(hipEvent_t event) {
  const CUresult result = sim_hip_context();
  return sim_hip_answer(result ? result : cuEventDestroy_v2(event_of(event)));
}

hipError_t hipEventRecord(hipEvent_t event, hipStream_t stream) {
  const CUresult result = sim_hip_context();
  return sim_hip_answer(result ? result : cuEventRecord(event_of(event), stream_of(stream)));
}

hipError_t hipEventQuery(hipEvent_t event) {
  const CUresult result = sim_hip_context();
  return sim_hip_answer(result ? result : cuEventQuery(event_of(event)));
}

hipError_t hipEventSynchronize(hipEvent_t event) {
  const CUresult result = sim_hip_context();
  return sim_hip_answer(result ? result : cuEventSynchronize(event_of(event)));
}

/* Entries of the runtime that have nothing to do on the fake device, and whose answers no allocator here reads. No
 * header is included: the arguments that callers pass do not matter. */
/* Its later arguments differ from version to version, and none is asked for: nothing is captured. */
int cudaStreamGetCaptureInfo(void *stream, int *out_status);
int cudaStreamGetCaptureInfo(void *stream, int *out_status) {
  (void)stream;
  return *out_status = 0;
}

#define FAKE_DONE(name) \
  int name(void);       \
  int name(void) { return 0; }

FAKE_DONE(cudaDeviceEnablePeerAccess)
FAKE_DONE(cudaDeviceGetDefaultMemPool)
FAKE_DONE(cudaDeviceGetGraphMemAttribute)
FAKE_DONE(cudaDeviceSetGraphMemAttribute)
FAKE_DONE(cudaDeviceSynchronize)
FAKE_DONE(cudaEventDestroy)
FAKE_DONE(cudaEventQuery)
FAKE_DONE(cudaEventRecord)
FAKE_DONE(cudaEventRecordWithFlags)
FAKE_DONE(cudaEventSynchronize)
FAKE_DONE(cudaGraphNodeGetDependencies)
FAKE_DONE(cudaIpcCloseMemHandle)
FAKE_DONE(cudaIpcGetMemHandle)
FAKE_DONE(cudaIpcOpenMemHandle)
FAKE_DONE(cudaMemPoolCreate)
FAKE_DONE(cudaMemPoolDestroy)
FAKE_DONE(cudaMemPoolGetAttribute)
FAKE_DONE(cudaMemPoolSetAccess)
FAKE_DONE(cudaMemPoolSetAttribute)
FAKE_DONE(cudaMemPoolTrimTo)
FAKE_DONE(cudaMemcpy)
FAKE_DONE(cudaMemcpyAsync)
FAKE_DONE(cudaMemcpyPeerAsync)
FAKE_DONE(cudaMemsetAsync)
FAKE_DONE(cudaSetDevice)
FAKE_DONE(cudaStreamDestroy)
FAKE_DONE(cudaStreamQuery)
FAKE_DONE(cudaStreamSynchronize)
FAKE_DONE(cudaStreamWaitEvent)
FAKE_DONE(cudaThreadExchangeStreamCaptureMode)

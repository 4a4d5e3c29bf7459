/* Between devices. */
#include "tests/simulated/hip/sim_hip_thread.h"

hipError_t hipDeviceCanAccessPeer(int *can, int device, int peer) {
  return sim_hip_answer(cuDeviceCanAccessPeer(can, device, peer));
}

hipError_t hipDeviceGetP2PAttribute(int *value, hipDeviceP2PAttr what, int device, int peer) {
  const CUdevice_P2PAttribute same = what == hipDevP2PAttrPerformanceRank
                                         ? CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK
                                         : CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED;
  return sim_hip_answer(cuDeviceGetP2PAttribute(value, same, device, peer));
}

hipError_t hipDeviceEnablePeerAccess(int peer, unsigned int flags) {
  CUcontext context = NULL;
  CUresult result = sim_hip_context();
  if (!result) result = sim_hip_context_of(peer, &context);
  return sim_hip_answer(result ? result : cuCtxEnablePeerAccess(context, flags));
}

hipError_t hipDeviceDisablePeerAccess(int peer) {
  CUcontext context = NULL;
  CUresult result = sim_hip_context();
  if (!result) result = sim_hip_context_of(peer, &context);
  return sim_hip_answer(result ? result : cuCtxDisablePeerAccess(context));
}

hipError_t hipMemcpyPeerAsync(void *dst, int dst_device, const void *src, int src_device, size_t bytes,
                              hipStream_t stream) {
  CUcontext to = NULL, from = NULL;
  CUresult result = sim_hip_context();
  if (!result) result = sim_hip_context_of(dst_device, &to);
  if (!result) result = sim_hip_context_of(src_device, &from);
  return sim_hip_answer(result ? result
                               : cuMemcpyPeerAsync((CUdeviceptr)(uintptr_t)dst, to, (CUdeviceptr)(uintptr_t)src, from,
                                                   bytes, (CUstream)(void *)stream));
}

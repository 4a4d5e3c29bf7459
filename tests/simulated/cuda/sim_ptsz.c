/* The forms whose null stream is that of the calling thread. */
#include "tests/simulated/cuda/sim_cuda_api.h"
#include "tests/simulated/cuda/sim_stream.h"

CUresult cuMemPrefetchAsync_ptsz(CUdeviceptr address, size_t count, CUdevice device, CUstream stream) {
  return cuMemPrefetchAsync(address, count, device, sim_stream_own(stream));
}

CUresult cuMemPrefetchAsync_v2_ptsz(CUdeviceptr address, size_t count, CUmemLocation location, unsigned int flags,
                                    CUstream stream) {
  return cuMemPrefetchAsync_v2(address, count, location, flags, sim_stream_own(stream));
}

CUresult cuMemAllocAsync_ptsz(CUdeviceptr *address, size_t bytesize, CUstream stream) {
  return cuMemAllocAsync(address, bytesize, sim_stream_own(stream));
}

CUresult cuMemAllocFromPoolAsync_ptsz(CUdeviceptr *address, size_t bytesize, CUmemoryPool pool, CUstream stream) {
  return cuMemAllocFromPoolAsync(address, bytesize, pool, sim_stream_own(stream));
}

CUresult cuMemFreeAsync_ptsz(CUdeviceptr address, CUstream stream) {
  return cuMemFreeAsync(address, sim_stream_own(stream));
}

CUresult cuStreamQuery_ptsz(CUstream stream) { return cuStreamQuery(sim_stream_own(stream)); }

CUresult cuStreamSynchronize_ptsz(CUstream stream) { return cuStreamSynchronize(sim_stream_own(stream)); }

CUresult cuStreamWaitEvent_ptsz(CUstream stream, CUevent event, unsigned int flags) {
  return cuStreamWaitEvent(sim_stream_own(stream), event, flags);
}

CUresult cuStreamGetPriority_ptsz(CUstream stream, int *priority) {
  return cuStreamGetPriority(sim_stream_own(stream), priority);
}

CUresult cuStreamGetFlags_ptsz(CUstream stream, unsigned int *flags) {
  return cuStreamGetFlags(sim_stream_own(stream), flags);
}

CUresult cuStreamGetId_ptsz(CUstream stream, unsigned long long *stream_id) {
  return cuStreamGetId(sim_stream_own(stream), stream_id);
}

CUresult cuStreamGetCtx_ptsz(CUstream stream, CUcontext *pctx) { return cuStreamGetCtx(sim_stream_own(stream), pctx); }

CUresult cuStreamAddCallback_ptsz(CUstream stream, CUstreamCallback callback, void *user, unsigned int flags) {
  return cuStreamAddCallback(sim_stream_own(stream), callback, user, flags);
}

CUresult cuLaunchHostFunc_ptsz(CUstream stream, CUhostFn function, void *user) {
  return cuLaunchHostFunc(sim_stream_own(stream), function, user);
}

CUresult cuStreamBeginCapture_v2_ptsz(CUstream stream, CUstreamCaptureMode mode) {
  return cuStreamBeginCapture_v2(sim_stream_own(stream), mode);
}

CUresult cuStreamEndCapture_ptsz(CUstream stream, CUgraph *graph) {
  return cuStreamEndCapture(sim_stream_own(stream), graph);
}

CUresult cuStreamIsCapturing_ptsz(CUstream stream, CUstreamCaptureStatus *capture_status) {
  return cuStreamIsCapturing(sim_stream_own(stream), capture_status);
}

CUresult cuStreamGetCaptureInfo_ptsz(CUstream stream, CUstreamCaptureStatus *capture_status_out, uint64_t *id_out) {
  return cuStreamGetCaptureInfo(sim_stream_own(stream), capture_status_out, id_out);
}

CUresult cuStreamGetCaptureInfo_v2_ptsz(CUstream stream, CUstreamCaptureStatus *capture_status_out, uint64_t *id_out,
                                        CUgraph *graph_out, const CUgraphNode **dependencies_out,
                                        size_t *num_dependencies_out) {
  return cuStreamGetCaptureInfo_v2(sim_stream_own(stream), capture_status_out, id_out, graph_out, dependencies_out,
                                   num_dependencies_out);
}

CUresult cuStreamGetCaptureInfo_v3_ptsz(CUstream stream, CUstreamCaptureStatus *capture_status_out, uint64_t *id_out,
                                        CUgraph *graph_out, const CUgraphNode **dependencies_out,
                                        const CUgraphEdgeData **edge_data_out, size_t *num_dependencies_out) {
  return cuStreamGetCaptureInfo_v3(sim_stream_own(stream), capture_status_out, id_out, graph_out, dependencies_out,
                                   edge_data_out, num_dependencies_out);
}

CUresult cuGraphLaunch_ptsz(CUgraphExec graph, CUstream stream) { return cuGraphLaunch(graph, sim_stream_own(stream)); }

CUresult cuEventRecord_ptsz(CUevent event, CUstream stream) { return cuEventRecord(event, sim_stream_own(stream)); }

CUresult cuEventRecordWithFlags_ptsz(CUevent event, CUstream stream, unsigned int flags) {
  return cuEventRecordWithFlags(event, sim_stream_own(stream), flags);
}

CUresult cuMemcpy_ptds(CUdeviceptr dst, CUdeviceptr src, size_t bytes) {
  sim_stream_null_is_per_thread = true;
  CUresult result = cuMemcpy(dst, src, bytes);
  sim_stream_null_is_per_thread = false;
  return result;
}

CUresult cuMemcpyPeer_ptds(CUdeviceptr dst, CUcontext dst_context, CUdeviceptr src, CUcontext src_context,
                           size_t bytes) {
  sim_stream_null_is_per_thread = true;
  CUresult result = cuMemcpyPeer(dst, dst_context, src, src_context, bytes);
  sim_stream_null_is_per_thread = false;
  return result;
}

CUresult cuMemcpyHtoD_v2_ptds(CUdeviceptr dst, const void *src, size_t bytes) {
  sim_stream_null_is_per_thread = true;
  CUresult result = cuMemcpyHtoD_v2(dst, src, bytes);
  sim_stream_null_is_per_thread = false;
  return result;
}

CUresult cuMemcpyDtoH_v2_ptds(void *dst, CUdeviceptr src, size_t bytes) {
  sim_stream_null_is_per_thread = true;
  CUresult result = cuMemcpyDtoH_v2(dst, src, bytes);
  sim_stream_null_is_per_thread = false;
  return result;
}

CUresult cuMemcpyDtoD_v2_ptds(CUdeviceptr dst, CUdeviceptr src, size_t bytes) {
  sim_stream_null_is_per_thread = true;
  CUresult result = cuMemcpyDtoD_v2(dst, src, bytes);
  sim_stream_null_is_per_thread = false;
  return result;
}

CUresult cuMemcpy2D_v2_ptds(const CUDA_MEMCPY2D *copy) {
  sim_stream_null_is_per_thread = true;
  CUresult result = cuMemcpy2D_v2(copy);
  sim_stream_null_is_per_thread = false;
  return result;
}

CUresult cuMemcpy2DUnaligned_v2_ptds(const CUDA_MEMCPY2D *copy) {
  sim_stream_null_is_per_thread = true;
  CUresult result = cuMemcpy2DUnaligned_v2(copy);
  sim_stream_null_is_per_thread = false;
  return result;
}

CUresult cuMemcpy3D_v2_ptds(const CUDA_MEMCPY3D *copy) {
  sim_stream_null_is_per_thread = true;
  CUresult result = cuMemcpy3D_v2(copy);
  sim_stream_null_is_per_thread = false;
  return result;
}

CUresult cuMemcpyAsync_ptsz(CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream) {
  return cuMemcpyAsync(dst, src, bytes, sim_stream_own(stream));
}

CUresult cuMemcpyPeerAsync_ptsz(CUdeviceptr dst, CUcontext dst_context, CUdeviceptr src, CUcontext src_context,
                                size_t bytes, CUstream stream) {
  return cuMemcpyPeerAsync(dst, dst_context, src, src_context, bytes, sim_stream_own(stream));
}

CUresult cuMemcpyHtoDAsync_v2_ptsz(CUdeviceptr dst, const void *src, size_t bytes, CUstream stream) {
  return cuMemcpyHtoDAsync_v2(dst, src, bytes, sim_stream_own(stream));
}

CUresult cuMemcpyDtoHAsync_v2_ptsz(void *dst, CUdeviceptr src, size_t bytes, CUstream stream) {
  return cuMemcpyDtoHAsync_v2(dst, src, bytes, sim_stream_own(stream));
}

CUresult cuMemcpyDtoDAsync_v2_ptsz(CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream) {
  return cuMemcpyDtoDAsync_v2(dst, src, bytes, sim_stream_own(stream));
}

CUresult cuMemcpy2DAsync_v2_ptsz(const CUDA_MEMCPY2D *copy, CUstream stream) {
  return cuMemcpy2DAsync_v2(copy, sim_stream_own(stream));
}

CUresult cuMemcpy3DAsync_v2_ptsz(const CUDA_MEMCPY3D *copy, CUstream stream) {
  return cuMemcpy3DAsync_v2(copy, sim_stream_own(stream));
}

CUresult cuMemcpyBatchAsync_ptsz(CUdeviceptr *dsts, CUdeviceptr *srcs, size_t *sizes, size_t count,
                                 CUmemcpyAttributes *attrs, size_t *attr_idxs, size_t num_attrs, size_t *fail_idx,
                                 CUstream stream) {
  return cuMemcpyBatchAsync(dsts, srcs, sizes, count, attrs, attr_idxs, num_attrs, fail_idx, sim_stream_own(stream));
}

CUresult cuMemcpyBatchAsync_v2_ptsz(CUdeviceptr *dsts, CUdeviceptr *srcs, size_t *sizes, size_t count,
                                    CUmemcpyAttributes *attrs, size_t *attr_idxs, size_t num_attrs, CUstream stream) {
  return cuMemcpyBatchAsync_v2(dsts, srcs, sizes, count, attrs, attr_idxs, num_attrs, sim_stream_own(stream));
}

CUresult cuMemsetD8_v2_ptds(CUdeviceptr dst, unsigned char value, size_t count) {
  sim_stream_null_is_per_thread = true;
  CUresult result = cuMemsetD8_v2(dst, value, count);
  sim_stream_null_is_per_thread = false;
  return result;
}

CUresult cuMemsetD16_v2_ptds(CUdeviceptr dst, unsigned short value, size_t count) {
  sim_stream_null_is_per_thread = true;
  CUresult result = cuMemsetD16_v2(dst, value, count);
  sim_stream_null_is_per_thread = false;
  return result;
}

CUresult cuMemsetD32_v2_ptds(CUdeviceptr dst, unsigned int value, size_t count) {
  sim_stream_null_is_per_thread = true;
  CUresult result = cuMemsetD32_v2(dst, value, count);
  sim_stream_null_is_per_thread = false;
  return result;
}

CUresult cuMemsetD8Async_ptsz(CUdeviceptr dst, unsigned char value, size_t count, CUstream stream) {
  return cuMemsetD8Async(dst, value, count, sim_stream_own(stream));
}

CUresult cuMemsetD16Async_ptsz(CUdeviceptr dst, unsigned short value, size_t count, CUstream stream) {
  return cuMemsetD16Async(dst, value, count, sim_stream_own(stream));
}

CUresult cuMemsetD32Async_ptsz(CUdeviceptr dst, unsigned int value, size_t count, CUstream stream) {
  return cuMemsetD32Async(dst, value, count, sim_stream_own(stream));
}

CUresult cuLaunchKernel_ptsz(CUfunction f, unsigned int grid_dim_x, unsigned int grid_dim_y, unsigned int grid_dim_z,
                             unsigned int block_dim_x, unsigned int block_dim_y, unsigned int block_dim_z,
                             unsigned int shared_mem_bytes, CUstream stream, void **kernel_params, void **extra) {
  return cuLaunchKernel(f, grid_dim_x, grid_dim_y, grid_dim_z, block_dim_x, block_dim_y, block_dim_z, shared_mem_bytes,
                        sim_stream_own(stream), kernel_params, extra);
}

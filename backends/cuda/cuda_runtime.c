#include "backends/cuda/cuda_runtime.h"

#include <string.h>

#include "backends/cuda/cuda_context.h"
#include "backends/cuda/cuda_device.h"
#include "backends/cuda/cuda_info.h"
#include "backends/cuda/cuda_kernel.h"
#include "backends/cuda/cuda_open.h"
#include "backends/cuda/cuda_pointer.h"
#include "backends/cuda/cuda_program.h"
#include "backends/cuda/cuda_status.h"
#include "backends/cuda/cuda_vmm.h"
#include "backends/shared/runtime/runtime_native.h"
#include "core/base/env.h"
#include "core/base/error.h"
#include "gm/native_cuda.h"

_Static_assert(sizeof(gm_cuda_device) == sizeof(gm__runtime_native_device) &&
                   offsetof(gm_cuda_device, ordinal) == offsetof(gm__runtime_native_device, ordinal) &&
                   offsetof(gm_cuda_device, context) == offsetof(gm__runtime_native_device, context) &&
                   offsetof(gm_cuda_stream, stream) == offsetof(gm__runtime_native_stream, stream) &&
                   offsetof(gm_cuda_point, event) == offsetof(gm__runtime_native_point, event) &&
                   offsetof(gm_cuda_memory, pointer) == offsetof(gm__runtime_native_memory, pointer) &&
                   offsetof(gm_cuda_memory, bytes) == offsetof(gm__runtime_native_memory, bytes),
               "CUDA's native structs are those of the shared code");
_Static_assert((int)CUDA_SUCCESS == GM__RUNTIME_SUCCESS && (int)CUDA_ERROR_OUT_OF_MEMORY == GM__RUNTIME_OUT_OF_MEMORY &&
                   (int)CUDA_ERROR_DEINITIALIZED == GM__RUNTIME_DEINITIALIZED &&
                   (int)CUDA_ERROR_NOT_READY == GM__RUNTIME_NOT_READY &&
                   (int)CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED == GM__RUNTIME_PEER_ENABLED &&
                   (int)CUDA_ERROR_PEER_ACCESS_NOT_ENABLED == GM__RUNTIME_PEER_NOT_ENABLED &&
                   (int)CUDA_ERROR_STREAM_CAPTURE_IMPLICIT == GM__RUNTIME_CAPTURE_IMPLICIT &&
                   (int)CUDA_ERROR_UNKNOWN == GM__RUNTIME_UNKNOWN,
               "CUDA's numbers are those of the shared code");
_Static_assert(CU_MEM_ADVISE_SET_READ_MOSTLY == 1 && CU_MEM_ADVISE_UNSET_READ_MOSTLY == 2 &&
                   CU_MEM_ADVISE_SET_PREFERRED_LOCATION == 3 && CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION == 4 &&
                   CU_MEM_ADVISE_SET_ACCESSED_BY == 5 && CU_MEM_ADVISE_UNSET_ACCESSED_BY == 6,
               "CUDA numbers advices as the shared code does");
_Static_assert(sizeof(CUipcMemHandle) == GM_SHARE_IPC_BYTES, "room for CUDA's handle");

static const gm__cuda_syms *cu(const void *device) { return gm__cuda_of(device); }

/* Memory */

static int cuda_room(const void *device, size_t *room, size_t *total) {
  return (int)cu(device)->cuMemGetInfo_v2(room, total);
}
static int cuda_alloc(const void *device, uint64_t bytes, gm__runtime_word *out) {
  return (int)cu(device)->cuMemAlloc_v2(out, (size_t)bytes);
}
static int cuda_alloc_pinned(const void *device, uint64_t bytes, gm__runtime_word *out) {
  void *host = NULL;
  const unsigned flags = CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP;
  const CUresult code = cu(device)->cuMemHostAlloc(&host, (size_t)bytes, flags);
  *out = (uintptr_t)host;
  return (int)code;
}
static int cuda_alloc_managed(const void *device, uint64_t bytes, gm__runtime_word *out) {
  return (int)cu(device)->cuMemAllocManaged(out, (size_t)bytes, CU_MEM_ATTACH_GLOBAL);
}
static int cuda_free(const void *device, uint64_t handle) { return (int)cu(device)->cuMemFree_v2(handle); }
static int cuda_free_pinned(const void *device, uint64_t handle) {
  return (int)cu(device)->cuMemFreeHost((void *)(uintptr_t)handle);
}
static int cuda_pinned_address(const void *device, uint64_t host, gm__runtime_word *out) {
  return (int)cu(device)->cuMemHostGetDevicePointer_v2(out, (void *)(uintptr_t)host, 0);
}

/* Registering pins nothing where the device uses the host's page tables. It succeeds, and CUDA promises no more. CUDA
 * refuses memory that is mapped read-only, unless the flags say so and the device can read it. */
static int cuda_host_register(const void *device, void *pointer, uint64_t bytes) {
  const gm__cuda_driver *driver = (const gm__cuda_driver *)((const gm__runtime_device *)device)->driver;
  const int ordinal = ((const gm__runtime_device *)device)->ordinal;
  const unsigned flags = CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP;
  const CUresult code = driver->cu.cuMemHostRegister_v2(pointer, (size_t)bytes, flags);
  if (code == CUDA_SUCCESS || code == CUDA_ERROR_OUT_OF_MEMORY || code == CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED ||
      gm__code_find(&gm__cuda_codes, (int)code)->status == GM_ERR_DEVICE_LOST ||
      gm__cuda_attribute(driver, ordinal, CU_DEVICE_ATTRIBUTE_READ_ONLY_HOST_REGISTER_SUPPORTED, 0) <= 0) {
    return (int)code;
  }
  const CUresult again = driver->cu.cuMemHostRegister_v2(pointer, (size_t)bytes, flags | CU_MEMHOSTREGISTER_READ_ONLY);
  return (int)(again == CUDA_SUCCESS ? again : code);
}
static int cuda_host_unregister(const void *device, void *pointer) {
  return (int)cu(device)->cuMemHostUnregister(pointer);
}

/* Streams and events */

static int cuda_stream_create(const void *device, void **out) {
  CUstream stream = NULL;
  const CUresult code = cu(device)->cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
  *out = stream;
  return (int)code;
}
static int cuda_stream_destroy(const void *device, void *stream) { return (int)cu(device)->cuStreamDestroy_v2(stream); }
static int cuda_stream_query(const void *device, void *stream) { return (int)cu(device)->cuStreamQuery(stream); }
static int cuda_stream_sync(const void *device, void *stream) { return (int)cu(device)->cuStreamSynchronize(stream); }
static int cuda_device_sync(const void *device, void *object) {
  (void)object;
  return (int)cu(device)->cuCtxSynchronize();
}
static int cuda_stream_capturing(const void *device, uint64_t stream, gm__runtime_word *out) {
  CUstreamCaptureStatus state = CU_STREAM_CAPTURE_STATUS_NONE;
  if (!cu(device)->cuStreamIsCapturing) return CUDA_SUCCESS;
  const CUresult code = cu(device)->cuStreamIsCapturing((CUstream)(uintptr_t)stream, &state);
  *out = state;
  return (int)code;
}
static int cuda_stream_id(const void *device, uint64_t stream, gm__runtime_word *out) {
  if (!cu(device)->cuStreamGetId) return CUDA_SUCCESS;
  return (int)cu(device)->cuStreamGetId((CUstream)(uintptr_t)stream, out);
}

/* The default streams belong to the current context. Any other stream has a context, which must be the device's. */
static gm_status cuda_stream_check(gm__runtime_device *device, void *stream, gm_error *err) {
  const gm__cuda_syms *syms = cu(device);
  CUcontext context = NULL;
  if (stream == CU_STREAM_PER_THREAD && !syms->cuStreamGetId) {
    return gm__fail(err, GM_ERR_NOT_SUPPORTED, "cuda",
                    "`stream` is CU_STREAM_PER_THREAD, another stream in each thread that CUDA before 12 gives no "
                    "number to: lend one that was created");
  }
  if (stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD || !syms->cuStreamGetCtx) return GM_OK;
  const CUresult code = syms->cuStreamGetCtx(stream, &context);
  if (code != CUDA_SUCCESS) return gm__runtime_fail(device, (int)code, "cuStreamGetCtx", err);
  if (context == device->context) return GM_OK;
  return gm__bad_argument(err, "cuda", "`stream` belongs to another context than the device");
}

static int cuda_event_create(const void *device, void **out) {
  CUevent event = NULL;
  const CUresult code = cu(device)->cuEventCreate(&event, CU_EVENT_DISABLE_TIMING);
  *out = event;
  return (int)code;
}
static int cuda_event_destroy(const void *device, void *event) { return (int)cu(device)->cuEventDestroy_v2(event); }
static int cuda_event_query(const void *device, void *event) { return (int)cu(device)->cuEventQuery(event); }
static int cuda_event_sync(const void *device, void *event) { return (int)cu(device)->cuEventSynchronize(event); }
static int cuda_event_record(const void *device, void *stream, void *event) {
  return (int)cu(device)->cuEventRecord(event, stream);
}
static int cuda_stream_wait_event(const void *device, void *stream, void *event) {
  return (int)cu(device)->cuStreamWaitEvent(stream, event, 0);
}

/* Copies and fills */

static int cuda_copy(const void *device, gm__runtime_way way, uint64_t to, uint64_t from, uint64_t bytes,
                     void *stream) {
  const size_t count = (size_t)bytes;
  switch (way) {
    case GM__RUNTIME_TO_DEVICE:
      return (int)cu(device)->cuMemcpyHtoDAsync_v2(to, (const void *)(uintptr_t)from, count, stream);
    case GM__RUNTIME_TO_HOST: return (int)cu(device)->cuMemcpyDtoHAsync_v2((void *)(uintptr_t)to, from, count, stream);
    case GM__RUNTIME_ON_DEVICE: return (int)cu(device)->cuMemcpyDtoDAsync_v2(to, from, count, stream);
    default: return (int)cu(device)->cuMemcpyAsync(to, from, count, stream);
  }
}
static int cuda_copy_box(const void *device, const gm__runtime_box *box, void *stream) {
  const gm__runtime_side *src = &box->src, *dst = &box->dst;
  const CUDA_MEMCPY3D copy = {.srcMemoryType = src->host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE,
                              .srcHost = (const void *)(uintptr_t)src->at,
                              .srcDevice = src->at,
                              .srcPitch = (size_t)src->row_pitch,
                              .srcHeight = (size_t)(box->slices > 1 ? src->slice_pitch / src->row_pitch : box->rows),
                              .dstMemoryType = dst->host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE,
                              .dstHost = (void *)(uintptr_t)dst->at,
                              .dstDevice = dst->at,
                              .dstPitch = (size_t)dst->row_pitch,
                              .dstHeight = (size_t)(box->slices > 1 ? dst->slice_pitch / dst->row_pitch : box->rows),
                              .WidthInBytes = (size_t)box->row_bytes,
                              .Height = (size_t)box->rows,
                              .Depth = (size_t)box->slices};
  return (int)cu(device)->cuMemcpy3DAsync_v2(&copy, stream);
}
static int cuda_set_bytes(const void *device, uint64_t at, uint32_t value, uint64_t count, void *stream) {
  return (int)cu(device)->cuMemsetD8Async(at, (unsigned char)value, (size_t)count, stream);
}
static int cuda_set_words(const void *device, uint64_t at, uint32_t value, uint64_t count, void *stream) {
  return (int)cu(device)->cuMemsetD32Async(at, value, (size_t)count, stream);
}

/* gm's programs */

static int cuda_module_load(const void *device, const void *code, void **out) {
  CUmodule module = NULL;
  const CUresult answer = cu(device)->cuModuleLoadData(&module, code);
  *out = module;
  return (int)answer;
}
static int cuda_module_function(const void *device, void *module, const char *name, void **out) {
  CUfunction function = NULL;
  const CUresult answer = cu(device)->cuModuleGetFunction(&function, module, name);
  *out = function;
  return (int)answer;
}
static int cuda_module_unload(const void *device, void *module) { return (int)cu(device)->cuModuleUnload(module); }
static int cuda_launch(const void *device, void *function, uint32_t blocks, uint32_t threads, void *stream,
                       void **parameters) {
  return (int)cu(device)->cuLaunchKernel(function, blocks, 1, 1, threads, 1, 1, 0, stream, parameters, NULL);
}

/* Managed memory. CUDA 12.2 gave both calls a location in place of a device number. gm uses the older forms where the
 * newer are missing. */

static CUmemLocation cuda_location(const void *device, gm_managed_place place) {
  if (place == GM_MANAGED_ON_HOST) return (CUmemLocation){.type = CU_MEM_LOCATION_TYPE_HOST};
  return (CUmemLocation){.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = ((const gm__runtime_device *)device)->ordinal};
}
static CUdevice cuda_place(const void *device, gm_managed_place place) {
  return place == GM_MANAGED_ON_DEVICE ? ((const gm__runtime_device *)device)->ordinal : CU_DEVICE_CPU;
}
static int cuda_prefetch(const void *device, uint64_t at, uint64_t bytes, gm_managed_place place, void *stream) {
  const gm__cuda_syms *syms = cu(device);
  const size_t count = (size_t)bytes;
  if (!syms->cuMemPrefetchAsync_v2) {
    return (int)syms->cuMemPrefetchAsync(at, count, cuda_place(device, place), stream);
  }
  return (int)syms->cuMemPrefetchAsync_v2(at, count, cuda_location(device, place), 0, stream);
}
static int cuda_advise(const void *device, uint64_t at, uint64_t bytes, int advice, gm_managed_place place) {
  const gm__cuda_syms *syms = cu(device);
  const CUmem_advise said = (CUmem_advise)advice;
  if (!syms->cuMemAdvise_v2) return (int)syms->cuMemAdvise(at, (size_t)bytes, said, cuda_place(device, place));
  return (int)syms->cuMemAdvise_v2(at, (size_t)bytes, said, cuda_location(device, place));
}

/* Between devices */

static bool cuda_peer_reaches(const void *device, const gm__runtime_device *other) {
  const int from = ((const gm__runtime_device *)device)->ordinal;
  int can = 0;
  return cu(device)->cuDeviceCanAccessPeer(&can, from, other->ordinal) == CUDA_SUCCESS && can > 0;
}
/* Pairs that older drivers let in. */
static const char *cuda_peer_why(const void *device) {
  static const char variable[] = "CUDA_DISABLE_IOMMU_ACS_P2P_CAPABILITY_CHECK";
  const gm__cuda_driver *driver = (const gm__cuda_driver *)((const gm__runtime_device *)device)->driver;
  const char *off = gm__env(variable);
  if (driver->version < 13050 || (off && strcmp(off, "1") == 0)) return NULL;
  return "since CUDA 13.5 the driver also refuses pairs for the machine's IOMMU or PCIe ACS; "
         "CUDA_DISABLE_IOMMU_ACS_P2P_CAPABILITY_CHECK=1 leaves that check out";
}
static int cuda_peer_attribute(const void *device, const gm__runtime_device *other, bool atomics, int otherwise) {
  const CUdevice_P2PAttribute what =
      atomics ? CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED : CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK;
  const int from = ((const gm__runtime_device *)device)->ordinal;
  int value = otherwise;
  if (!cu(device)->cuDeviceGetP2PAttribute) return otherwise;
  return cu(device)->cuDeviceGetP2PAttribute(&value, what, from, other->ordinal) == CUDA_SUCCESS ? value : otherwise;
}
static int cuda_peer_enable(const void *device, const gm__runtime_device *other) {
  return (int)cu(device)->cuCtxEnablePeerAccess(other->context, 0);
}
static int cuda_peer_disable(const void *device, const gm__runtime_device *other) {
  return (int)cu(device)->cuCtxDisablePeerAccess(other->context);
}
static int cuda_peer_copy(const void *device, uint64_t to, const gm__runtime_device *other, uint64_t from,
                          uint64_t bytes, void *stream) {
  CUcontext own = ((const gm__runtime_device *)device)->context;
  return (int)cu(device)->cuMemcpyPeerAsync(to, own, from, other->context, (size_t)bytes, stream);
}

/* Between processes */

static int cuda_address_range(const void *device, uint64_t address, gm__runtime_word *base, size_t *bytes) {
  return (int)cu(device)->cuMemGetAddressRange_v2(base, bytes, address);
}
static int cuda_ipc_get(const void *device, uint64_t base, void *out_handle) {
  CUipcMemHandle handle = {{0}};
  const CUresult code = cu(device)->cuIpcGetMemHandle(&handle, base);
  memcpy(out_handle, handle.reserved, sizeof handle.reserved);
  return (int)code;
}
static int cuda_ipc_open(const void *device, const void *handle, gm__runtime_word *out) {
  CUipcMemHandle given;
  memcpy(given.reserved, handle, sizeof given.reserved);
  return (int)cu(device)->cuIpcOpenMemHandle_v2(out, given, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
}
static int cuda_ipc_close(const void *device, uint64_t address) {
  return (int)cu(device)->cuIpcCloseMemHandle(address);
}
static int cuda_fd_export(const void *device, uint64_t handle, gm__runtime_word *out) {
  int fd = -1;
  const CUresult code =
      cu(device)->cuMemExportToShareableHandle(&fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
  *out = (gm__runtime_word)fd;
  return (int)code;
}
static int cuda_fd_import(const void *device, uint64_t fd, gm__runtime_word *out) {
  return (int)cu(device)->cuMemImportFromShareableHandle(out, (void *)(uintptr_t)fd,
                                                         CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
}

/* Physical memory */

static CUmemAllocationProp cuda_vmm_props(const void *device, bool shareable) {
  CUmemAllocationProp wanted = {.type = CU_MEM_ALLOCATION_TYPE_PINNED};
  wanted.requestedHandleTypes = shareable ? CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR : CU_MEM_HANDLE_TYPE_NONE;
  wanted.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  wanted.location.id = ((const gm__runtime_device *)device)->ordinal;
  return wanted;
}
static int cuda_vmm_granularity(const void *device, uint64_t shareable, gm__runtime_word *out) {
  const CUmemAllocationProp wanted = cuda_vmm_props(device, shareable != 0);
  size_t granule = 0;
  const CUresult code = cu(device)->cuMemGetAllocationGranularity(&granule, &wanted, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
  *out = granule;
  return (int)code;
}
static int cuda_vmm_create(const void *device, bool shareable, uint64_t bytes, gm__runtime_word *out_handle) {
  const CUmemAllocationProp wanted = cuda_vmm_props(device, shareable);
  return (int)cu(device)->cuMemCreate(out_handle, (size_t)bytes, &wanted, 0);
}
static int cuda_vmm_release(const void *device, uint64_t handle) { return (int)cu(device)->cuMemRelease(handle); }

const gm__runtime gm__cuda_runtime = {
    .name = "cuda",
    .shown = "CUDA",
    .component = "CUDA driver",
    .api = GM_API_CUDA,
    .codes = &gm__cuda_codes,
    .default_stream = CU_STREAM_LEGACY,
    .library = gm__cuda_library,
    .kernel_present = gm__cuda_kernel_present,
    .kernel_cards = gm__cuda_kernel_cards,
    .kernel_version = gm__cuda_kernel_version,
    .kernel_owner = "NVIDIA's",
    .kernel_trace = "/proc/driver/nvidia",
    .init_op = "cuInit",
    .check_options = gm__cuda_check_options,
    .start = gm__cuda_start,
    .stop = gm__cuda_stop,
    .describe = gm__cuda_describe,
    .figures = gm__cuda_figures,
    .share_kinds = gm__cuda_share_kinds,
    .driver_bytes = sizeof(gm__cuda_driver),
    .device_bytes = sizeof(gm__cuda_device),
    .device_drop = gm__cuda_device_drop,
    .enter = gm__cuda_enter,
    .leave = gm__cuda_leave,
    .memory_room = cuda_room,
    .memory_alloc = {{"cuMemAlloc", cuda_alloc},
                     {"cuMemHostAlloc", cuda_alloc_pinned},
                     {"cuMemAllocManaged", cuda_alloc_managed}},
    .memory_free = {{"cuMemFree", cuda_free}, {"cuMemFreeHost", cuda_free_pinned}, {"cuMemFree", cuda_free}},
    .pinned_address = {"cuMemHostGetDevicePointer", cuda_pinned_address},
    .pointer_op = "cuPointerGetAttribute",
    .pointer_ask = gm__cuda_pointer_ask,
    .most_registered = UINT64_C(256) << 30, /* less than 512 GiB on the drivers of today */
    .host_register_op = "cuMemHostRegister",
    .host_register = cuda_host_register,
    .host_unregister = {"cuMemHostUnregister", cuda_host_unregister},
    .stream_create = {"cuStreamCreate", cuda_stream_create},
    .stream_destroy = {"cuStreamDestroy", cuda_stream_destroy},
    .stream_query = {"cuStreamQuery", cuda_stream_query},
    .stream_sync = {"cuStreamSynchronize", cuda_stream_sync},
    .device_sync = {"cuCtxSynchronize", cuda_device_sync},
    .stream_capturing = {"cuStreamIsCapturing", cuda_stream_capturing},
    .stream_id = {"cuStreamGetId", cuda_stream_id},
    .stream_check = cuda_stream_check,
    .event_create = {"cuEventCreate", cuda_event_create},
    .event_destroy = {"cuEventDestroy", cuda_event_destroy},
    .event_query = {"cuEventQuery", cuda_event_query},
    .event_sync = {"cuEventSynchronize", cuda_event_sync},
    .event_record = {"cuEventRecord", cuda_event_record},
    .stream_wait_event = {"cuStreamWaitEvent", cuda_stream_wait_event},
    .copy_ops = {"cuMemcpyAsync", "cuMemcpyHtoDAsync", "cuMemcpyDtoHAsync", "cuMemcpyDtoDAsync", "cuMemcpyAsync"},
    .copy = cuda_copy,
    .copy_box_op = "cuMemcpy3DAsync",
    .box_slices = true,
    .copy_box = cuda_copy_box,
    .fill_way = GM__RUNTIME_ON_DEVICE,
    .set_bytes = {"cuMemsetD8Async", cuda_set_bytes},
    .set_words = {"cuMemsetD32Async", cuda_set_words},
    .program_code = gm__cuda_program_code,
    .module_load = {"cuModuleLoadData", cuda_module_load},
    .module_function = {"cuModuleGetFunction", cuda_module_function},
    .module_unload = cuda_module_unload,
    .launch_op = "cuLaunchKernel",
    .launch = cuda_launch,
    .prefetch_op = "cuMemPrefetchAsync",
    .prefetch = cuda_prefetch,
    .advise_op = "cuMemAdvise",
    .advise = cuda_advise,
    .peer_reaches_op = "cuDeviceCanAccessPeer",
    .peer_reaches = cuda_peer_reaches,
    .peer_why = cuda_peer_why,
    .peer_attribute = cuda_peer_attribute,
    .peer_enable = {"cuCtxEnablePeerAccess", cuda_peer_enable},
    .peer_disable = {"cuCtxDisablePeerAccess", cuda_peer_disable},
    .peer_copy_op = "cuMemcpyPeerAsync",
    .peer_copy = cuda_peer_copy,
    .address_range_op = "cuMemGetAddressRange",
    .address_range = cuda_address_range,
    .ipc_get_op = "cuIpcGetMemHandle",
    .ipc_get = cuda_ipc_get,
    .ipc_open_op = "cuIpcOpenMemHandle",
    .ipc_open = cuda_ipc_open,
    .ipc_close = {"cuIpcCloseMemHandle", cuda_ipc_close},
    .fd_export = {"cuMemExportToShareableHandle", cuda_fd_export},
    .fd_import = {"cuMemImportFromShareableHandle", cuda_fd_import},
    .vmm_granularity = {"cuMemGetAllocationGranularity", cuda_vmm_granularity},
    .vmm_create_op = "cuMemCreate",
    .vmm_create = cuda_vmm_create,
    .vmm_release = {"cuMemRelease", cuda_vmm_release},
    .vmm_open_op = "cuMemSetAccess",
    .vmm_open = gm__cuda_vmm_open,
};

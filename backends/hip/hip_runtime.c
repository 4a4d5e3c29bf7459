#include "backends/hip/hip_runtime.h"

#include <string.h>

#include "backends/hip/hip_current.h"
#include "backends/hip/hip_fill.h"
#include "backends/hip/hip_info.h"
#include "backends/hip/hip_kernel.h"
#include "backends/hip/hip_open.h"
#include "backends/hip/hip_pointer.h"
#include "backends/hip/hip_program.h"
#include "backends/hip/hip_status.h"
#include "backends/hip/hip_vmm.h"
#include "backends/shared/runtime/runtime_copy.h"
#include "backends/shared/runtime/runtime_native.h"
#include "core/base/error.h"
#include "gm/native_hip.h"

_Static_assert(sizeof(gm_hip_device) == sizeof(gm__runtime_native_device) &&
                   offsetof(gm_hip_device, ordinal) == offsetof(gm__runtime_native_device, ordinal) &&
                   offsetof(gm_hip_device, context) == offsetof(gm__runtime_native_device, context) &&
                   offsetof(gm_hip_stream, stream) == offsetof(gm__runtime_native_stream, stream) &&
                   offsetof(gm_hip_point, event) == offsetof(gm__runtime_native_point, event) &&
                   offsetof(gm_hip_memory, pointer) == offsetof(gm__runtime_native_memory, pointer) &&
                   offsetof(gm_hip_memory, bytes) == offsetof(gm__runtime_native_memory, bytes),
               "HIP's native structs are those of the shared code");
_Static_assert((int)hipSuccess == GM__RUNTIME_SUCCESS && (int)hipErrorOutOfMemory == GM__RUNTIME_OUT_OF_MEMORY &&
                   (int)hipErrorDeinitialized == GM__RUNTIME_DEINITIALIZED &&
                   (int)hipErrorNotReady == GM__RUNTIME_NOT_READY &&
                   (int)hipErrorPeerAccessAlreadyEnabled == GM__RUNTIME_PEER_ENABLED &&
                   (int)hipErrorPeerAccessNotEnabled == GM__RUNTIME_PEER_NOT_ENABLED &&
                   (int)hipErrorStreamCaptureImplicit == GM__RUNTIME_CAPTURE_IMPLICIT &&
                   (int)hipErrorUnknown == GM__RUNTIME_UNKNOWN,
               "HIP's numbers are those of the shared code");
_Static_assert(hipMemAdviseSetReadMostly == 1 && hipMemAdviseUnsetReadMostly == 2 &&
                   hipMemAdviseSetPreferredLocation == 3 && hipMemAdviseUnsetPreferredLocation == 4 &&
                   hipMemAdviseSetAccessedBy == 5 && hipMemAdviseUnsetAccessedBy == 6,
               "HIP numbers advices as the shared code does");
_Static_assert((int)hipMemcpyHostToHost == GM__RUNTIME_HOST_TO_HOST &&
                   (int)hipMemcpyHostToDevice == GM__RUNTIME_TO_DEVICE &&
                   (int)hipMemcpyDeviceToHost == GM__RUNTIME_TO_HOST &&
                   (int)hipMemcpyDeviceToDevice == GM__RUNTIME_ON_DEVICE &&
                   (int)hipMemcpyDefault == GM__RUNTIME_ANY_WAY,
               "HIP numbers the ways of a copy as the shared code does");
_Static_assert(sizeof(hipIpcMemHandle_t) == GM_SHARE_IPC_BYTES, "room for HIP's handle");

enum { HIP_PER_THREAD = 2 }; /* as a stream's handle */

static const gm__hip_syms *hip(const void *device) { return gm__hip_of(device); }
static int hip_version(const void *device) {
  return ((const gm__hip_driver *)((const gm__runtime_device *)device)->driver)->version;
}

/* Memory. gm does not use hipMallocAsync. It was seen to zero or corrupt memory, to keep memory after running out, and
 * to ignore its release threshold (rocm-systems#10943, #11642, #11690). gm's pool gives the same order over plain
 * hipMalloc. */

static int hip_room(const void *device, size_t *room, size_t *total) {
  return (int)hip(device)->hipMemGetInfo(room, total);
}
static int hip_alloc(const void *device, uint64_t bytes, gm__runtime_word *out) {
  void *pointer = NULL;
  const hipError_t code = hip(device)->hipMalloc(&pointer, (size_t)bytes);
  *out = gm__hip_word(pointer);
  return (int)code;
}
static int hip_alloc_pinned(const void *device, uint64_t bytes, gm__runtime_word *out) {
  void *pointer = NULL;
  const unsigned flags = hipHostMallocPortable | hipHostMallocMapped;
  const hipError_t code = hip(device)->hipHostMalloc(&pointer, (size_t)bytes, flags);
  *out = gm__hip_word(pointer);
  return (int)code;
}
static int hip_alloc_managed(const void *device, uint64_t bytes, gm__runtime_word *out) {
  void *pointer = NULL;
  const hipError_t code = hip(device)->hipMallocManaged(&pointer, (size_t)bytes, hipMemAttachGlobal);
  *out = gm__hip_word(pointer);
  return (int)code;
}
static int hip_free(const void *device, uint64_t handle) { return (int)hip(device)->hipFree(gm__hip_at(handle)); }
static int hip_free_pinned(const void *device, uint64_t handle) {
  return (int)hip(device)->hipHostFree(gm__hip_at(handle));
}
static int hip_pinned_address(const void *device, uint64_t host, gm__runtime_word *out) {
  void *address = NULL;
  const hipError_t code = hip(device)->hipHostGetDevicePointer(&address, gm__hip_at(host), 0);
  *out = gm__hip_word(address);
  return (int)code;
}

static int hip_host_register(const void *device, void *pointer, uint64_t bytes) {
  const unsigned flags = hipHostRegisterPortable | hipHostRegisterMapped;
  return (int)hip(device)->hipHostRegister(pointer, (size_t)bytes, flags);
}
static int hip_host_unregister(const void *device, void *pointer) {
  return (int)hip(device)->hipHostUnregister(pointer);
}

/* Streams and events */

static int hip_stream_create(const void *device, void **out) {
  hipStream_t stream = NULL;
  const hipError_t code = hip(device)->hipStreamCreateWithFlags(&stream, hipStreamNonBlocking);
  *out = stream;
  return (int)code;
}
static int hip_stream_destroy(const void *device, void *stream) { return (int)hip(device)->hipStreamDestroy(stream); }
static int hip_stream_query(const void *device, void *stream) { return (int)hip(device)->hipStreamQuery(stream); }
static int hip_stream_sync(const void *device, void *stream) { return (int)hip(device)->hipStreamSynchronize(stream); }
static int hip_stream_capturing(const void *device, uint64_t stream, gm__runtime_word *out) {
  hipStreamCaptureStatus state = hipStreamCaptureStatusNone;
  if (!hip(device)->hipStreamIsCapturing) return hipSuccess;
  const hipError_t code = hip(device)->hipStreamIsCapturing(gm__hip_at(stream), &state);
  *out = state;
  return (int)code;
}

/* The null stream belongs to the current device. Any other stream has a device, which must be this one. */
static gm_status hip_stream_check(gm__runtime_device *device, void *stream, gm_error *err) {
  hipDevice_t owner = -1;
  if (stream == (void *)HIP_PER_THREAD) {
    return gm__fail(
        err, GM_ERR_NOT_SUPPORTED, "hip",
        "`stream` is hipStreamPerThread, another stream in each thread that HIP gives no number to: lend one "
        "that was created");
  }
  if (!stream || !hip(device)->hipStreamGetDevice) return GM_OK;
  const hipError_t code = hip(device)->hipStreamGetDevice(stream, &owner);
  if (code != hipSuccess) return gm__runtime_fail(device, (int)code, "hipStreamGetDevice", err);
  if (owner == device->ordinal) return GM_OK;
  return gm__bad_argument(err, "hip", "`stream` belongs to device %d, and this is device %d", (int)owner,
                          device->ordinal);
}

static int hip_event_create(const void *device, void **out) {
  hipEvent_t event = NULL;
  const hipError_t code = hip(device)->hipEventCreateWithFlags(&event, hipEventDisableTiming);
  *out = event;
  return (int)code;
}
static int hip_event_destroy(const void *device, void *event) { return (int)hip(device)->hipEventDestroy(event); }
static int hip_event_query(const void *device, void *event) { return (int)hip(device)->hipEventQuery(event); }
static int hip_event_sync(const void *device, void *event) { return (int)hip(device)->hipEventSynchronize(event); }
static int hip_event_record(const void *device, void *stream, void *event) {
  return (int)hip(device)->hipEventRecord(event, stream);
}
static int hip_stream_wait_event(const void *device, void *stream, void *event) {
  return (int)hip(device)->hipStreamWaitEvent(stream, event, 0);
}

/* Copies and fills */

static int hip_copy(const void *device, gm__runtime_way way, uint64_t to, uint64_t from, uint64_t bytes, void *stream) {
  return (int)hip(device)->hipMemcpyAsync(gm__hip_at(to), gm__hip_at(from), (size_t)bytes, (hipMemcpyKind)way, stream);
}
/* hipMemcpy2D: the structs of HIP's 3D copies name kinds of memory by numbers that differ between versions. */
static int hip_copy_box(const void *device, const gm__runtime_box *box, void *stream) {
  const gm__runtime_side *src = &box->src, *dst = &box->dst;
  const hipMemcpyKind kind = (hipMemcpyKind)gm__runtime_way_of(src->host, dst->host);
  return (int)hip(device)->hipMemcpy2DAsync(gm__hip_at(dst->at), (size_t)dst->row_pitch, gm__hip_at(src->at),
                                            (size_t)src->row_pitch, (size_t)box->row_bytes, (size_t)box->rows, kind,
                                            stream);
}
static int hip_set_bytes(const void *device, uint64_t at, uint32_t value, uint64_t count, void *stream) {
  return (int)hip(device)->hipMemsetD8Async(gm__hip_at(at), (unsigned char)value, (size_t)count, stream);
}
static int hip_set_words(const void *device, uint64_t at, uint32_t value, uint64_t count, void *stream) {
  return (int)hip(device)->hipMemsetD32Async(gm__hip_at(at), (int)value, (size_t)count, stream);
}

/* gm's programs */

static int hip_module_load(const void *device, const void *code, void **out) {
  hipModule_t module = NULL;
  const hipError_t answer = hip(device)->hipModuleLoadData(&module, code);
  *out = module;
  return (int)answer;
}
static int hip_module_function(const void *device, void *module, const char *name, void **out) {
  hipFunction_t function = NULL;
  const hipError_t answer = hip(device)->hipModuleGetFunction(&function, module, name);
  *out = function;
  return (int)answer;
}
static int hip_module_unload(const void *device, void *module) { return (int)hip(device)->hipModuleUnload(module); }
static int hip_launch(const void *device, void *function, uint32_t blocks, uint32_t threads, void *stream,
                      void **parameters) {
  return (int)hip(device)->hipModuleLaunchKernel(function, blocks, 1, 1, threads, 1, 1, 0, stream, parameters, NULL);
}

/* Managed memory. On an integrated device HIP charges it to the process's group, but not hipMalloc's memory. A size
 * that fits as one may not fit as the other. */

static int hip_place(const void *device, gm_managed_place place) {
  return place == GM_MANAGED_ON_DEVICE ? ((const gm__runtime_device *)device)->ordinal : hipCpuDeviceId;
}
static int hip_prefetch(const void *device, uint64_t at, uint64_t bytes, gm_managed_place place, void *stream) {
  return (int)hip(device)->hipMemPrefetchAsync(gm__hip_at(at), (size_t)bytes, hip_place(device, place), stream);
}
static int hip_advise(const void *device, uint64_t at, uint64_t bytes, int advice, gm_managed_place place) {
  return (int)hip(device)->hipMemAdvise(gm__hip_at(at), (size_t)bytes, (hipMemoryAdvise)advice,
                                        hip_place(device, place));
}

/* Between devices */

static bool hip_peer_reaches(const void *device, const gm__runtime_device *other) {
  const int from = ((const gm__runtime_device *)device)->ordinal;
  int can = 0;
  return hip(device)->hipDeviceCanAccessPeer(&can, from, other->ordinal) == hipSuccess && can > 0;
}
static int hip_peer_attribute(const void *device, const gm__runtime_device *other, bool atomics, int otherwise) {
  const hipDeviceP2PAttr what = atomics ? hipDevP2PAttrNativeAtomicSupported : hipDevP2PAttrPerformanceRank;
  const int from = ((const gm__runtime_device *)device)->ordinal;
  int value = otherwise;
  if (!hip(device)->hipDeviceGetP2PAttribute) return otherwise;
  return hip(device)->hipDeviceGetP2PAttribute(&value, what, from, other->ordinal) == hipSuccess ? value : otherwise;
}
static int hip_peer_enable(const void *device, const gm__runtime_device *other) {
  return (int)hip(device)->hipDeviceEnablePeerAccess(other->ordinal, 0);
}
static int hip_peer_disable(const void *device, const gm__runtime_device *other) {
  return (int)hip(device)->hipDeviceDisablePeerAccess(other->ordinal);
}
static int hip_peer_copy(const void *device, uint64_t to, const gm__runtime_device *other, uint64_t from,
                         uint64_t bytes, void *stream) {
  const int own = ((const gm__runtime_device *)device)->ordinal;
  return (int)hip(device)->hipMemcpyPeerAsync(gm__hip_at(to), own, gm__hip_at(from), other->ordinal, (size_t)bytes,
                                              stream);
}

/* Between processes. Two things differ between versions. hipIpcMemLazyEnablePeerAccess was 0 once and is 1 now, and HIP
 * refuses the other value. Before 7.1 the import takes the address of the descriptor, later its number. */

static int hip_address_range(const void *device, uint64_t address, gm__runtime_word *base, size_t *bytes) {
  hipDeviceptr_t first = NULL;
  const hipError_t code = hip(device)->hipMemGetAddressRange(&first, bytes, gm__hip_at(address));
  *base = gm__hip_word(first);
  return (int)code;
}
static int hip_ipc_get(const void *device, uint64_t base, void *out_handle) {
  hipIpcMemHandle_t handle = {{0}};
  const hipError_t code = hip(device)->hipIpcGetMemHandle(&handle, gm__hip_at(base));
  memcpy(out_handle, handle.reserved, sizeof handle.reserved);
  return (int)code;
}
static int hip_ipc_open(const void *device, const void *handle, gm__runtime_word *out) {
  const unsigned flags = hip_version(device) >= GM__HIP_6;
  hipIpcMemHandle_t given;
  void *opened = NULL;
  memcpy(given.reserved, handle, sizeof given.reserved);
  hipError_t code = hip(device)->hipIpcOpenMemHandle(&opened, given, flags);
  if (code == hipErrorInvalidValue) code = hip(device)->hipIpcOpenMemHandle(&opened, given, !flags);
  *out = gm__hip_word(opened);
  return (int)code;
}
static int hip_ipc_close(const void *device, uint64_t address) {
  return (int)hip(device)->hipIpcCloseMemHandle(gm__hip_at(address));
}
static int hip_fd_export(const void *device, uint64_t handle, gm__runtime_word *out) {
  int fd = -1;
  const hipError_t code =
      hip(device)->hipMemExportToShareableHandle(&fd, gm__hip_at(handle), hipMemHandleTypePosixFileDescriptor, 0);
  *out = (gm__runtime_word)fd;
  return (int)code;
}
static int hip_fd_import(const void *device, uint64_t fd, gm__runtime_word *out) {
  hipMemGenericAllocationHandle_t handle = NULL;
  int number = (int)fd;
  void *given = hip_version(device) >= GM__HIP_7_1 ? gm__hip_at(fd) : (void *)&number;
  const hipError_t code =
      hip(device)->hipMemImportFromShareableHandle(&handle, given, hipMemHandleTypePosixFileDescriptor);
  *out = gm__hip_word(handle);
  return (int)code;
}

/* Physical memory */

static hipMemAllocationProp hip_vmm_props(const void *device, bool shareable) {
  hipMemAllocationProp wanted = {.type = hipMemAllocationTypePinned};
  wanted.requestedHandleType = shareable ? hipMemHandleTypePosixFileDescriptor : hipMemHandleTypeNone;
  wanted.location.type = hipMemLocationTypeDevice;
  wanted.location.id = ((const gm__runtime_device *)device)->ordinal;
  return wanted;
}
static int hip_vmm_granularity(const void *device, uint64_t shareable, gm__runtime_word *out) {
  const hipMemAllocationProp wanted = hip_vmm_props(device, shareable != 0);
  size_t granule = 0;
  const hipError_t code =
      hip(device)->hipMemGetAllocationGranularity(&granule, &wanted, hipMemAllocationGranularityMinimum);
  *out = granule;
  return (int)code;
}
static int hip_vmm_create(const void *device, bool shareable, uint64_t bytes, gm__runtime_word *out_handle) {
  const hipMemAllocationProp wanted = hip_vmm_props(device, shareable);
  hipMemGenericAllocationHandle_t handle = NULL;
  const hipError_t code = hip(device)->hipMemCreate(&handle, (size_t)bytes, &wanted, 0);
  *out_handle = gm__hip_word(handle);
  return (int)code;
}
static int hip_vmm_release(const void *device, uint64_t handle) {
  return (int)hip(device)->hipMemRelease(gm__hip_at(handle));
}

const gm__runtime gm__hip_runtime = {
    .name = "hip",
    .shown = "HIP",
    .component = "HIP library",
    .api = GM_API_HIP,
    .codes = &gm__hip_codes,
    .default_stream = NULL,
    .library = gm__hip_library,
    .kernel_present = gm__hip_kernel_present,
    .kernel_cards = gm__hip_kernel_cards,
    .kernel_owner = "AMD's",
    .kernel_trace = "/sys/class/kfd",
    .init_op = "hipInit",
    .check_options = gm__hip_check_options,
    .start = gm__hip_start,
    .describe = gm__hip_describe,
    .figures = gm__hip_figures,
    .share_kinds = gm__hip_share_kinds,
    .driver_bytes = sizeof(gm__hip_driver),
    .device_bytes = sizeof(gm__hip_device),
    .device_init = gm__hip_device_init,
    .device_clear = gm__hip_device_clear,
    .enter = gm__hip_enter,
    .leave = gm__hip_leave,
    .memory_room = hip_room,
    .memory_alloc = {{"hipMalloc", hip_alloc},
                     {"hipHostMalloc", hip_alloc_pinned},
                     {"hipMallocManaged", hip_alloc_managed}},
    .memory_free = {{"hipFree", hip_free}, {"hipHostFree", hip_free_pinned}, {"hipFree", hip_free}},
    .pinned_address = {"hipHostGetDevicePointer", hip_pinned_address},
    .pointer_op = "hipPointerGetAttributes",
    .pointer_ask = gm__hip_pointer_ask,
    .most_registered = UINT64_MAX,
    .host_register_op = "hipHostRegister",
    .host_register = hip_host_register,
    .host_unregister = {"hipHostUnregister", hip_host_unregister},
    .stream_create = {"hipStreamCreateWithFlags", hip_stream_create},
    .stream_destroy = {"hipStreamDestroy", hip_stream_destroy},
    .stream_query = {"hipStreamQuery", hip_stream_query},
    .stream_sync = {"hipStreamSynchronize", hip_stream_sync},
    .stream_capturing = {"hipStreamIsCapturing", hip_stream_capturing},
    .stream_check = hip_stream_check,
    .event_create = {"hipEventCreateWithFlags", hip_event_create},
    .event_destroy = {"hipEventDestroy", hip_event_destroy},
    .event_query = {"hipEventQuery", hip_event_query},
    .event_sync = {"hipEventSynchronize", hip_event_sync},
    .event_record = {"hipEventRecord", hip_event_record},
    .stream_wait_event = {"hipStreamWaitEvent", hip_stream_wait_event},
    .copy_ops = {"hipMemcpyAsync", "hipMemcpyAsync", "hipMemcpyAsync", "hipMemcpyAsync", "hipMemcpyAsync"},
    .copy = hip_copy,
    .copy_box_op = "hipMemcpy2DAsync",
    .box_slices = false,
    .copy_box = hip_copy_box,
    .fill_way = GM__RUNTIME_ANY_WAY,
    .set_bytes = {"hipMemsetD8Async", hip_set_bytes},
    .set_words = {"hipMemsetD32Async", hip_set_words},
    .set_ring = gm__hip_fill_ring,
    .program_code = gm__hip_program_code,
    .program_code_release = gm__hip_program_code_release,
    .module_load = {"hipModuleLoadData", hip_module_load},
    .module_function = {"hipModuleGetFunction", hip_module_function},
    .module_unload = hip_module_unload,
    .launch_op = "hipModuleLaunchKernel",
    .launch = hip_launch,
    .prefetch_op = "hipMemPrefetchAsync",
    .prefetch = hip_prefetch,
    .advise_op = "hipMemAdvise",
    .advise = hip_advise,
    .peer_reaches_op = "hipDeviceCanAccessPeer",
    .peer_reaches = hip_peer_reaches,
    .peer_attribute = hip_peer_attribute,
    .peer_enable = {"hipDeviceEnablePeerAccess", hip_peer_enable},
    .peer_disable = {"hipDeviceDisablePeerAccess", hip_peer_disable},
    .peer_copy_op = "hipMemcpyPeerAsync",
    .peer_copy = hip_peer_copy,
    .address_range_op = "hipMemGetAddressRange",
    .address_range = hip_address_range,
    .ipc_get_op = "hipIpcGetMemHandle",
    .ipc_get = hip_ipc_get,
    .ipc_open_op = "hipIpcOpenMemHandle",
    .ipc_open = hip_ipc_open,
    .ipc_close = {"hipIpcCloseMemHandle", hip_ipc_close},
    .fd_export = {"hipMemExportToShareableHandle", hip_fd_export},
    .fd_import = {"hipMemImportFromShareableHandle", hip_fd_import},
    .vmm_granularity = {"hipMemGetAllocationGranularity", hip_vmm_granularity},
    .vmm_create_op = "hipMemCreate",
    .vmm_create = hip_vmm_create,
    .vmm_release = {"hipMemRelease", hip_vmm_release},
    .vmm_open_op = "hipMemSetAccess",
    .vmm_open = gm__hip_vmm_open,
};

/* Between processes: memory handles as file descriptors, allocations and events by IPC handle. Shared memory is a
 * memfd. An IPC handle says which file of which process, so its owner must still be there, as with a real driver. */
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/simulated/cuda/sim_call.h"
#include "tests/simulated/cuda/sim_context.h"
#include "tests/simulated/cuda/sim_device.h"
#include "tests/simulated/cuda/sim_event.h"
#include "tests/simulated/cuda/sim_queue.h"
#include "tests/simulated/cuda/sim_range.h"
#include "tests/simulated/cuda/sim_vmm.h"

typedef struct share_handle {
  char mark[8];
  int pid, file, device, flags;
  uint64_t at, bytes, id;
} share_handle;

_Static_assert(sizeof(share_handle) <= CU_IPC_HANDLE_SIZE, "fits");

static const char share_memory_mark[8] = "simmem1";
static const char share_event_mark[8] = "simevt1";

static CUresult share_export(void *out, CUmemGenericAllocationHandle handle, CUmemAllocationHandleType type) {
  const sim_handle *item = sim_vmm_handle(handle);
  if (!out || !item || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) return CUDA_ERROR_INVALID_VALUE;
  if (!(item->prop.requestedHandleTypes & CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)) return CUDA_ERROR_INVALID_VALUE;
  int file = fcntl(item->phys->file, F_DUPFD_CLOEXEC, 3);
  if (file < 0) return CUDA_ERROR_OPERATING_SYSTEM;
  memcpy(out, &file, sizeof file);
  return CUDA_SUCCESS;
}

CUresult cuMemExportToShareableHandle(void *out, CUmemGenericAllocationHandle handle, CUmemAllocationHandleType type,
                                      unsigned long long flags) {
  CUresult result = sim_enter(sim_id_cuMemExportToShareableHandle);
  if (result) return result;
  return sim_leave(flags ? CUDA_ERROR_INVALID_VALUE : share_export(out, handle, type));
}

/* The descriptor stays the caller's. */
static CUresult share_import(CUmemGenericAllocationHandle *out, void *os_handle, CUmemAllocationHandleType type) {
  if (!out || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) return CUDA_ERROR_INVALID_VALUE;
  int given = (int)(intptr_t)os_handle, device = -1;
  uint64_t bytes = 0;
  if (!sim_phys_describe(given, &device, &bytes) || !sim_device_exists(device)) return CUDA_ERROR_INVALID_VALUE;
  int file = fcntl(given, F_DUPFD_CLOEXEC, 3);
  if (file < 0) return CUDA_ERROR_OPERATING_SYSTEM;
  sim_phys *phys = NULL;
  CUresult result = sim_phys_open(device, file, 0, bytes, &phys);
  if (result) return result;
  CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                              .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                              .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device}};
  *out = sim_vmm_make(phys, bytes, &prop);
  return *out ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *out, void *os_handle,
                                        CUmemAllocationHandleType type) {
  CUresult result = sim_enter(sim_id_cuMemImportFromShareableHandle);
  if (result) return result;
  return sim_leave(share_import(out, os_handle, type));
}

CUresult cuIpcGetMemHandle(CUipcMemHandle *out, CUdeviceptr address) {
  CUresult result = sim_enter(sim_id_cuIpcGetMemHandle);
  if (result) return result;
  const sim_range *range = sim_range_find(address);
  if (!out || !range || range->kind != SIM_DEVICE || range->at != address) return sim_leave(CUDA_ERROR_INVALID_VALUE);
  share_handle handle = {.pid = (int)getpid(), .file = range->phys->file, .device = range->device};
  memcpy(handle.mark, share_memory_mark, sizeof handle.mark);
  handle.at = range->phys->at;
  handle.bytes = range->bytes;
  handle.id = range->id;
  memset(out, 0, sizeof *out);
  memcpy(out->reserved, &handle, sizeof handle);
  return sim_leave(CUDA_SUCCESS);
}

static int share_open_file(const share_handle *handle) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/fd/%d", handle->pid, handle->file);
  return open(path, O_RDWR | O_CLOEXEC);
}

/* Memory that this context opened before; NULL: it did not. */
static sim_range *share_opened(const share_handle *handle) {
  for (sim_range *range = sim_range_after(0); range; range = sim_range_after(range->at + range->bytes)) {
    bool same = range->kind == SIM_OPENED && range->context == sim_context_current() &&
                range->handle == (uint64_t)handle->pid << 32 && range->freed_on == handle->id;
    if (same) return range;
  }
  return NULL;
}

static CUresult share_open(CUdeviceptr *out, const share_handle *handle) {
  int file = share_open_file(handle);
  if (file < 0) return CUDA_ERROR_MAP_FAILED;
  sim_phys *phys = NULL;
  uint64_t bytes = (handle->bytes + 4095) / 4096 * 4096;
  CUresult result = sim_phys_open(handle->device, file, handle->at, bytes, &phys);
  if (result) return result;
  CUcontext context = sim_context_current();
  sim_range like = {.bytes = handle->bytes, .kind = SIM_OPENED, .phys = phys, .context = context, .references = 1};
  like.device = handle->device;
  like.handle = (uint64_t)handle->pid << 32;
  like.freed_on = handle->id;
  if (sim_range_claim(bytes, 4096, &like.at)) {
    if (sim_range_add(&like)) return *out = like.at, CUDA_SUCCESS;
    sim_range_unclaim(like.at);
  }
  sim_phys_release(phys);
  return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuIpcOpenMemHandle_v2(CUdeviceptr *out, CUipcMemHandle given, unsigned flags) {
  CUresult result = sim_enter(sim_id_cuIpcOpenMemHandle_v2);
  if (result) return result;
  share_handle handle;
  memcpy(&handle, given.reserved, sizeof handle);
  if (!out || flags != CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS) return sim_leave(CUDA_ERROR_INVALID_VALUE);
  if (memcmp(handle.mark, share_memory_mark, sizeof handle.mark) != 0) return sim_leave(CUDA_ERROR_INVALID_VALUE);
  if (!sim_device_exists(handle.device)) return sim_leave(CUDA_ERROR_INVALID_DEVICE);
  if (handle.pid == (int)getpid()) return sim_leave(CUDA_ERROR_INVALID_CONTEXT);
  sim_range *opened = share_opened(&handle);
  if (!opened) return sim_leave(share_open(out, &handle));
  opened->references++;
  *out = opened->at;
  return sim_leave(CUDA_SUCCESS);
}

CUresult cuIpcCloseMemHandle(CUdeviceptr address) {
  CUresult result = sim_enter(sim_id_cuIpcCloseMemHandle);
  if (result) return result;
  const sim_range *range = sim_range_find(address);
  if (!range || range->at != address || range->kind != SIM_OPENED) return sim_leave(CUDA_ERROR_INVALID_VALUE);
  sim_queue_wait_device(range->device);
  sim_range *still = sim_range_find(address);
  if (!still || still->kind != SIM_OPENED) return sim_leave(CUDA_ERROR_INVALID_VALUE);
  if (--still->references == 0) sim_range_destroy(still);
  return sim_leave(CUDA_SUCCESS);
}

static sim_event_page *share_map_page(int file) {
  void *page = mmap(NULL, sizeof(sim_event_page), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  return page == MAP_FAILED ? NULL : page;
}

/* From now on its records are seen by all. */
static CUresult share_event_page(CUevent event) {
  if (event->page) return CUDA_SUCCESS;
  int file = memfd_create("simcuda-event", MFD_CLOEXEC);
  if (file < 0) return CUDA_ERROR_OPERATING_SYSTEM;
  event->page = ftruncate(file, 4096) == 0 ? share_map_page(file) : NULL;
  if (!event->page) {
    close(file);
    return CUDA_ERROR_OPERATING_SYSTEM;
  }
  event->file = file;
  return CUDA_SUCCESS;
}

CUresult cuIpcGetEventHandle(CUipcEventHandle *out, CUevent event) {
  CUresult result = sim_enter(sim_id_cuIpcGetEventHandle);
  if (result) return result;
  if (!sim_event_is_live(event)) return sim_leave(CUDA_ERROR_INVALID_HANDLE);
  if (!out || !(event->flags & CU_EVENT_INTERPROCESS)) return sim_leave(CUDA_ERROR_INVALID_VALUE);
  share_handle handle = {.pid = (int)getpid(), .flags = (int)event->flags};
  result = share_event_page(event);
  if (result) return sim_leave(result);
  memcpy(handle.mark, share_event_mark, sizeof handle.mark);
  handle.file = event->file;
  memset(out, 0, sizeof *out);
  memcpy(out->reserved, &handle, sizeof handle);
  return sim_leave(CUDA_SUCCESS);
}

static CUresult share_open_event(CUevent *out, const share_handle *handle) {
  if (!out || memcmp(handle->mark, share_event_mark, sizeof handle->mark) != 0) return CUDA_ERROR_INVALID_VALUE;
  if (handle->pid == (int)getpid()) return CUDA_ERROR_INVALID_CONTEXT;
  int file = share_open_file(handle);
  if (file < 0) return CUDA_ERROR_MAP_FAILED;
  sim_event_page *page = share_map_page(file);
  CUevent event = page ? sim_event_create((unsigned)handle->flags) : NULL;
  if (!event) {
    close(file);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  event->page = page;
  event->file = file;
  *out = event;
  return CUDA_SUCCESS;
}

CUresult cuIpcOpenEventHandle(CUevent *out, CUipcEventHandle given) {
  CUresult result = sim_enter(sim_id_cuIpcOpenEventHandle);
  if (result) return result;
  share_handle handle;
  memcpy(&handle, given.reserved, sizeof handle);
  return sim_leave(share_open_event(out, &handle));
}

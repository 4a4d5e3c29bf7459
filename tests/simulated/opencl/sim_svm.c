#include <stdlib.h>

#include "simulated/opencl/sim_opencl.h"

/* Memory at an address: the real driver's shared virtual memory, with limits that are kept; unified shared memory is
 * played by it. Each allocation is known, so that a pointer that is none, or is freed twice, is a violation. */

typedef struct svm_block {
  unsigned char *first;
  size_t bytes;
  cl_device_id device;
  cl_unified_shared_memory_type_intel type; /* CL_MEM_TYPE_UNKNOWN_INTEL: plain SVM */
  struct svm_block *next;
} svm_block;

static svm_block *svm_list;

/* The block that holds an address, and the link to it. Under the mutex. */
static svm_block **svm_find(const void *pointer) {
  const unsigned char *at = pointer;
  svm_block **link = &svm_list;
  while (*link && !(at >= (*link)->first && at < (*link)->first + (*link)->bytes)) link = &(*link)->next;
  return link;
}

static void *svm_take(cl_context context, cl_svm_mem_flags flags, size_t bytes, cl_uint align, cl_device_id device,
                      cl_unified_shared_memory_type_intel type) {
  sim_device *of = sim_context_device(context);
  if (!of || bytes == 0 || bytes > sim_largest(of) || (align & (align - 1)) || align > 128) return NULL;
  const bool counts = type != CL_MEM_TYPE_HOST_INTEL;
  if (counts && !sim_room_for(of, bytes)) return NULL;
  unsigned char *first = sim.real.clSVMAlloc(context, flags, bytes, align);
  svm_block *block = first ? calloc(1, sizeof *block) : NULL;
  if (!block) return first;
  *block = (svm_block){first, bytes, device, type, NULL};
  if (counts) sim_account(first, of, bytes);
  pthread_mutex_lock(&sim.mutex);
  block->next = svm_list;
  svm_list = block;
  pthread_mutex_unlock(&sim.mutex);
  return shim_script_is(&sim.script, "hostile", "crooked") ? first + 1 : first;
}

static void svm_give(cl_context context, void *pointer, bool unified) {
  pthread_mutex_lock(&sim.mutex);
  svm_block **link = svm_find(pointer);
  svm_block *block = *link;
  if (!block || unified != (block->type != CL_MEM_TYPE_UNKNOWN_INTEL))
    shim_violation("opencl", "a free of what is none");
  *link = block->next;
  pthread_mutex_unlock(&sim.mutex);
  sim_unaccount(block->first);
  sim.real.clSVMFree(context, block->first);
  free(block);
}

void *sim_svm_alloc(cl_context context, cl_svm_mem_flags flags, size_t bytes, cl_uint align) {
  return svm_take(context, flags, bytes, align, NULL, CL_MEM_TYPE_UNKNOWN_INTEL);
}

void sim_svm_free(cl_context context, void *pointer) { svm_give(context, pointer, false); }

static void *usm_take(cl_context context, cl_device_id device, size_t bytes, cl_uint align,
                      cl_unified_shared_memory_type_intel type, cl_int *errcode) {
  const cl_svm_mem_flags flags = CL_MEM_READ_WRITE | CL_MEM_SVM_FINE_GRAIN_BUFFER;
  void *made = svm_take(context, flags, bytes, align, device, type);
  if (errcode) *errcode = made ? CL_SUCCESS : CL_OUT_OF_RESOURCES;
  return made;
}

static void *usm_host(cl_context context, const cl_mem_properties_intel *properties, size_t bytes, cl_uint align,
                      cl_int *errcode) {
  (void)properties;
  return usm_take(context, NULL, bytes, align, CL_MEM_TYPE_HOST_INTEL, errcode);
}

static void *usm_device(cl_context context, cl_device_id device, const cl_mem_properties_intel *properties,
                        size_t bytes, cl_uint align, cl_int *errcode) {
  (void)properties;
  return usm_take(context, device, bytes, align, CL_MEM_TYPE_DEVICE_INTEL, errcode);
}

static void *usm_shared(cl_context context, cl_device_id device, const cl_mem_properties_intel *properties,
                        size_t bytes, cl_uint align, cl_int *errcode) {
  (void)properties;
  return usm_take(context, device, bytes, align, CL_MEM_TYPE_SHARED_INTEL, errcode);
}

static cl_int usm_free(cl_context context, void *pointer) {
  svm_give(context, pointer, true);
  return CL_SUCCESS;
}

static cl_int usm_info(cl_context context, const void *pointer, cl_mem_info_intel what, size_t bytes, void *value,
                       size_t *value_bytes) {
  svm_block found = {.type = CL_MEM_TYPE_UNKNOWN_INTEL};
  (void)context;
  pthread_mutex_lock(&sim.mutex);
  const svm_block *block = *svm_find(pointer);
  if (block && block->type != CL_MEM_TYPE_UNKNOWN_INTEL) found = *block;
  pthread_mutex_unlock(&sim.mutex);
  switch (what) {
    case CL_MEM_ALLOC_TYPE_INTEL: return sim_reply(&found.type, sizeof found.type, bytes, value, value_bytes);
    case CL_MEM_ALLOC_BASE_PTR_INTEL: return sim_reply(&found.first, sizeof found.first, bytes, value, value_bytes);
    case CL_MEM_ALLOC_SIZE_INTEL: return sim_reply(&found.bytes, sizeof found.bytes, bytes, value, value_bytes);
    case CL_MEM_ALLOC_DEVICE_INTEL: return sim_reply(&found.device, sizeof found.device, bytes, value, value_bytes);
    default: return CL_INVALID_VALUE;
  }
}

/* Is there room, where memory is taken when it is used? */
static bool usm_touch(const void *pointer) {
  pthread_mutex_lock(&sim.mutex);
  const svm_block *block = *svm_find(pointer);
  const void *first = block ? block->first : NULL;
  pthread_mutex_unlock(&sim.mutex);
  return !first || sim_touch(first);
}

static cl_int usm_copy(cl_command_queue queue, cl_bool blocking, void *dst, const void *src, size_t bytes,
                       cl_uint waits, const cl_event *wait_list, cl_event *event) {
  sim_turn turn;
  if (!usm_touch(dst) || !usm_touch(src)) return CL_OUT_OF_RESOURCES;
  sim_order_begin(queue, waits, wait_list, event, &turn);
  return sim_order_end(
      queue, &turn,
      sim.real.clEnqueueSVMMemcpy(queue, blocking, dst, src, bytes, turn.waits, turn.wait_list, turn.event));
}

static cl_int usm_fill(cl_command_queue queue, void *dst, const void *pattern, size_t pattern_bytes, size_t bytes,
                       cl_uint waits, const cl_event *wait_list, cl_event *event) {
  if (!usm_touch(dst)) return CL_OUT_OF_RESOURCES;
  return sim.real.clEnqueueSVMMemFill(queue, dst, pattern, pattern_bytes, bytes, waits, wait_list, event);
}

/* usm=old: as the versions of the extension that allow no flags of 0, and know no way to the host. */
static cl_int usm_migrate(cl_command_queue queue, const void *pointer, size_t bytes, cl_mem_migration_flags flags,
                          cl_uint waits, const cl_event *wait_list, cl_event *event) {
  pthread_mutex_lock(&sim.mutex);
  const svm_block *block = *svm_find(pointer);
  const bool known = block && block->type == CL_MEM_TYPE_SHARED_INTEL;
  const bool inside = known && bytes <= (size_t)(block->first + block->bytes - (const unsigned char *)pointer);
  pthread_mutex_unlock(&sim.mutex);
  if (!inside) shim_violation("opencl", "a migration of what is no shared memory");
  if (shim_script_is(&sim.script, "usm", "old") && flags != CL_MIGRATE_MEM_OBJECT_CONTENT_UNDEFINED) {
    return CL_INVALID_VALUE;
  }
  return sim.real.clEnqueueMarkerWithWaitList(queue, waits, wait_list, event);
}

const gm__opencl_usm sim_usm = {.clHostMemAllocINTEL = usm_host,
                                .clDeviceMemAllocINTEL = usm_device,
                                .clSharedMemAllocINTEL = usm_shared,
                                .clMemBlockingFreeINTEL = usm_free,
                                .clGetMemAllocInfoINTEL = usm_info,
                                .clEnqueueMemcpyINTEL = usm_copy,
                                .clEnqueueMemFillINTEL = usm_fill,
                                .clEnqueueMigrateMemINTEL = usm_migrate};

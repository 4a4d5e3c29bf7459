#include <stdlib.h>
#include <string.h>

#include "simulated/opencl/sim_opencl.h"

/* Memory with limits that are kept. With `lazy` a buffer can always be had. The first command that uses it fails when
 * there is no room after all, as on cards whose drivers promise more than there is. */

typedef struct sim_memory {
  const void *handle; /* cl_mem, or an address */
  sim_device *device;
  uint64_t bytes;
  bool touched;
  struct sim_memory *next;
} sim_memory;

static sim_memory *memory_list;

static void *memory_refuse(cl_int code, cl_int *errcode) {
  if (errcode) *errcode = code;
  return NULL;
}

static uint64_t memory_room(const sim_device *device) {
  const uint64_t total = sim_total(device), others = shim_script_number(&sim.script, "others", 0);
  return total > others ? total - others : 0;
}

static bool memory_counts(cl_mem_flags flags) {
  return !(flags & CL_MEM_ALLOC_HOST_PTR) || shim_script_has(&sim.script, "unified") ||
         !shim_script_is(&sim.script, "type", "gpu");
}

void sim_account(const void *handle, sim_device *device, uint64_t bytes) {
  sim_memory *made = calloc(1, sizeof *made);
  if (!made) abort();
  *made = (sim_memory){.handle = handle, .device = device, .bytes = bytes};
  pthread_mutex_lock(&sim.mutex);
  made->next = memory_list;
  memory_list = made;
  device->held += bytes;
  pthread_mutex_unlock(&sim.mutex);
}

bool sim_room_for(const sim_device *device, uint64_t bytes) {
  if (shim_script_has(&sim.script, "lazy")) return true;
  pthread_mutex_lock(&sim.mutex);
  const bool fits = device->held + bytes <= memory_room(device);
  pthread_mutex_unlock(&sim.mutex);
  return fits;
}

cl_mem sim_create_buffer(cl_context context, cl_mem_flags flags, size_t bytes, void *host, cl_int *errcode) {
  sim_device *device = sim_context_device(context);
  if (!device) return sim.real.clCreateBuffer(context, flags, bytes, host, errcode);
  if (bytes > sim_largest(device)) return memory_refuse(CL_INVALID_BUFFER_SIZE, errcode);
  const bool counts = memory_counts(flags) && !(flags & CL_MEM_USE_HOST_PTR); /* that has been counted */
  if (counts && !sim_room_for(device, bytes)) return memory_refuse(CL_MEM_OBJECT_ALLOCATION_FAILURE, errcode);
  cl_mem made = sim.real.clCreateBuffer(context, flags, bytes, host, errcode);
  if (made && counts) sim_account(made, device, bytes);
  return made;
}

cl_mem sim_create_sub_buffer(cl_mem memory, cl_mem_flags flags, cl_buffer_create_type type, const void *region,
                             cl_int *errcode) {
  cl_context context = NULL;
  cl_mem parent = NULL;
  sim.real.clGetMemObjectInfo(memory, CL_MEM_CONTEXT, sizeof context, &context, NULL);
  sim.real.clGetMemObjectInfo(memory, CL_MEM_ASSOCIATED_MEMOBJECT, sizeof parent, &parent, NULL);
  const sim_device *device = sim_context_device(context);
  const uint64_t align = device ? sim_alignment(device) : 0;
  if (parent) return memory_refuse(CL_INVALID_MEM_OBJECT, errcode);
  if (align && ((const cl_buffer_region *)region)->origin % align) {
    return memory_refuse(CL_MISALIGNED_SUB_BUFFER_OFFSET, errcode);
  }
  return sim.real.clCreateSubBuffer(memory, flags, type, region, errcode);
}

/* The last reference goes: no longer counted. Under the mutex. */
static void memory_forget(const void *handle) {
  sim_memory **at = &memory_list;
  while (*at && (*at)->handle != handle) at = &(*at)->next;
  sim_memory *memory = *at;
  if (!memory) return;
  *at = memory->next;
  memory->device->held -= memory->bytes;
  if (memory->touched) memory->device->touched -= memory->bytes;
  free(memory);
}

void sim_unaccount(const void *handle) {
  pthread_mutex_lock(&sim.mutex);
  memory_forget(handle);
  pthread_mutex_unlock(&sim.mutex);
}

cl_int sim_release_memory(cl_mem memory) {
  cl_uint references = 0;
  pthread_mutex_lock(&sim.mutex);
  sim.real.clGetMemObjectInfo(memory, CL_MEM_REFERENCE_COUNT, sizeof references, &references, NULL);
  if (references == 1) memory_forget(memory);
  pthread_mutex_unlock(&sim.mutex);
  return sim.real.clReleaseMemObject(memory);
}

/* Is there room for what the command will touch? */
bool sim_touch(const void *handle) {
  bool room = true;
  if (!shim_script_has(&sim.script, "lazy")) return true;
  pthread_mutex_lock(&sim.mutex);
  sim_memory *at = memory_list;
  while (at && at->handle != handle) at = at->next;
  if (at && !at->touched) {
    room = at->device->touched + at->bytes <= memory_room(at->device);
    at->touched = room;
    if (room) at->device->touched += at->bytes;
  }
  pthread_mutex_unlock(&sim.mutex);
  return room;
}

cl_int sim_write(cl_command_queue queue, cl_mem memory, cl_bool blocking, size_t offset, size_t bytes, const void *host,
                 cl_uint waits, const cl_event *wait_list, cl_event *event) {
  if (!sim_touch(memory)) return CL_MEM_OBJECT_ALLOCATION_FAILURE;
  sim_turn turn;
  sim_order_begin(queue, waits, wait_list, event, &turn);
  return sim_order_end(queue, &turn,
                       sim.real.clEnqueueWriteBuffer(queue, memory, blocking, offset, bytes, host, turn.waits,
                                                     turn.wait_list, turn.event));
}

cl_int sim_fill(cl_command_queue queue, cl_mem memory, const void *pattern, size_t pattern_bytes, size_t offset,
                size_t bytes, cl_uint waits, const cl_event *wait_list, cl_event *event) {
  if (!sim_touch(memory)) return CL_OUT_OF_RESOURCES;
  sim_turn turn;
  sim_order_begin(queue, waits, wait_list, event, &turn);
  return sim_order_end(queue, &turn,
                       sim.real.clEnqueueFillBuffer(queue, memory, pattern, pattern_bytes, offset, bytes, turn.waits,
                                                    turn.wait_list, turn.event));
}

cl_int sim_copy(cl_command_queue queue, cl_mem src, cl_mem dst, size_t src_offset, size_t dst_offset, size_t bytes,
                cl_uint waits, const cl_event *wait_list, cl_event *event) {
  if (!sim_touch(src) || !sim_touch(dst)) return CL_OUT_OF_RESOURCES;
  sim_turn turn;
  sim_order_begin(queue, waits, wait_list, event, &turn);
  return sim_order_end(queue, &turn,
                       sim.real.clEnqueueCopyBuffer(queue, src, dst, src_offset, dst_offset, bytes, turn.waits,
                                                    turn.wait_list, turn.event));
}

cl_int sim_copy_rect(cl_command_queue queue, cl_mem src, cl_mem dst, const size_t *src_origin, const size_t *dst_origin,
                     const size_t *region, size_t src_row_pitch, size_t src_slice_pitch, size_t dst_row_pitch,
                     size_t dst_slice_pitch, cl_uint waits, const cl_event *wait_list, cl_event *event) {
  if (!sim_touch(src) || !sim_touch(dst)) return CL_OUT_OF_RESOURCES;
  return sim.real.clEnqueueCopyBufferRect(queue, src, dst, src_origin, dst_origin, region, src_row_pitch,
                                          src_slice_pitch, dst_row_pitch, dst_slice_pitch, waits, wait_list, event);
}

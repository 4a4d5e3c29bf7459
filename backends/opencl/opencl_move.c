#include "backends/opencl/opencl_move.h"

/* Invariants: no command is "blocking" in OpenCL's sense, since a blocking write may return when the source was read
 * and the bytes have not arrived; who calls sees to an event. Host memory meets shared virtual memory through its
 * buffer (opencl_pointer.c says why). Whether a buffer may be read into shared USM the extension leaves open: the
 * driver's answer is handed on. */

gm__opencl_place gm__opencl_place_of(const gm_memory *memory, uint64_t offset) {
  const gm__opencl_memory *record = gm__opencl_memory_of(memory);
  return (gm__opencl_place){.buffer = record->buffer,
                            .offset = record->origin + offset,
                            .pointer = record->pointer ? record->pointer + (uintptr_t)offset : 0};
}

gm__opencl_place gm__opencl_place_of_host(const void *host) { return (gm__opencl_place){.pointer = (uintptr_t)host}; }

gm_status gm__opencl_move(gm__opencl_device *device, cl_command_queue queue, const gm__opencl_place *dst,
                          const gm__opencl_place *src, uint64_t bytes, cl_event *event, gm_error *err) {
  const gm__opencl_syms *cl = device->cl;
  const size_t to = (size_t)dst->offset, from = (size_t)src->offset, count = (size_t)bytes;
  void *const to_pointer = (void *)dst->pointer, *const from_pointer = (void *)src->pointer;
  const char *op = "clEnqueueMemcpyINTEL";
  cl_int code;
  if (dst->buffer && src->buffer && dst->pointer && src->pointer) {
    op = "clEnqueueSVMMemcpy";
    code = cl->clEnqueueSVMMemcpy(queue, CL_FALSE, to_pointer, from_pointer, count, 0, NULL, event);
  } else if (dst->buffer && src->buffer) {
    op = "clEnqueueCopyBuffer";
    code = cl->clEnqueueCopyBuffer(queue, src->buffer, dst->buffer, from, to, count, 0, NULL, event);
  } else if (dst->buffer) {
    op = "clEnqueueWriteBuffer";
    code = cl->clEnqueueWriteBuffer(queue, dst->buffer, CL_FALSE, to, count, from_pointer, 0, NULL, event);
  } else if (src->buffer) {
    op = "clEnqueueReadBuffer";
    code = cl->clEnqueueReadBuffer(queue, src->buffer, CL_FALSE, from, count, to_pointer, 0, NULL, event);
  } else {
    code = device->kinds.usm.clEnqueueMemcpyINTEL(queue, CL_FALSE, to_pointer, from_pointer, count, 0, NULL, event);
  }
  return code == CL_SUCCESS ? GM_OK : gm__opencl_device_fail(device, code, false, op, err);
}

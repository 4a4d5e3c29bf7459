#include "backends/opencl/opencl_move.h"

#include "backends/opencl/opencl_part.h"

/* Invariants: no command is "blocking" in OpenCL's sense: a blocking write may return before the bytes have arrived.
 * The caller waits for an event. A copy between host memory and SVM uses the buffer over the SVM (opencl_pointer.c says
 * why). The extension does not say whether a buffer can be read into shared USM: gm returns the driver's answer.
 *
 * PoCL compares the host pointer of a plain copy with the beginning of the buffer, and forgets the offset. If they are
 * equal, it drops the copy and answers success. So a copy between a mapping at the buffer's beginning and other bytes
 * of the buffer is lost. PoCL's boxes do not compare: there gm copies a box of one row. */

gm__opencl_place gm__opencl_place_of(const gm_memory *memory, uint64_t offset) {
  const gm__opencl_memory *record = gm__opencl_memory_of(memory);
  return (gm__opencl_place){.buffer = record->buffer,
                            .offset = record->origin + offset,
                            .pointer = record->pointer ? record->pointer + (uintptr_t)offset : 0,
                            .viewed = atomic_load(&record->viewed)};
}

gm__opencl_place gm__opencl_place_of_host(const void *host) { return (gm__opencl_place){.pointer = (uintptr_t)host}; }

static gm_status move_pointers(gm__opencl_device *device, cl_command_queue queue, const gm__opencl_place *dst,
                               const gm__opencl_place *src, uint64_t bytes, cl_event *event, gm_error *err) {
  void *const to = (void *)dst->pointer, *const from = (void *)src->pointer;
  const bool svm = dst->buffer != NULL;
  const cl_int code =
      svm ? device->cl->clEnqueueSVMMemcpy(queue, CL_FALSE, to, from, (size_t)bytes, 0, NULL, event)
          : device->kinds.usm.clEnqueueMemcpyINTEL(queue, CL_FALSE, to, from, (size_t)bytes, 0, NULL, event);
  if (code == CL_SUCCESS) return GM_OK;
  return gm__opencl_device_fail(device, code, false, svm ? "clEnqueueSVMMemcpy" : "clEnqueueMemcpyINTEL", err);
}

/* ---- between host memory and a buffer ---- */

static cl_int move_write(const gm__opencl_device *device, cl_command_queue queue, const gm__opencl_part *to,
                         const void *host, size_t bytes, cl_event *event) {
  const gm__opencl_syms *cl = device->cl;
  const size_t at[3] = {(size_t)to->offset}, none[3] = {0}, box[3] = {bytes, 1, 1};
  if (!device->drops_copies) {
    return cl->clEnqueueWriteBuffer(queue, to->buffer, CL_FALSE, at[0], bytes, host, 0, NULL, event);
  }
  return cl->clEnqueueWriteBufferRect(queue, to->buffer, CL_FALSE, at, none, box, 0, 0, 0, 0, host, 0, NULL, event);
}

static cl_int move_read(const gm__opencl_device *device, cl_command_queue queue, const gm__opencl_part *from,
                        void *host, size_t bytes, cl_event *event) {
  const gm__opencl_syms *cl = device->cl;
  const size_t at[3] = {(size_t)from->offset}, none[3] = {0}, box[3] = {bytes, 1, 1};
  if (!device->drops_copies) {
    return cl->clEnqueueReadBuffer(queue, from->buffer, CL_FALSE, at[0], bytes, host, 0, NULL, event);
  }
  return cl->clEnqueueReadBufferRect(queue, from->buffer, CL_FALSE, at, none, box, 0, 0, 0, 0, host, 0, NULL, event);
}

static cl_int move_copy(const gm__opencl_device *device, cl_command_queue queue, const gm__opencl_sides *sides,
                        size_t bytes, cl_event *event) {
  return device->cl->clEnqueueCopyBuffer(queue, sides->from.buffer, sides->to.buffer, (size_t)sides->from.offset,
                                         (size_t)sides->to.offset, bytes, 0, NULL, event);
}

gm_status gm__opencl_move(gm__opencl_device *device, cl_command_queue queue, const gm__opencl_place *dst,
                          const gm__opencl_place *src, uint64_t bytes, cl_event *event, gm_error *err) {
  const bool pointers = dst->pointer && src->pointer && !dst->buffer == !src->buffer;
  if (pointers) return move_pointers(device, queue, dst, src, bytes, event, err);
  const gm__opencl_range to = {dst->buffer, dst->viewed, dst->offset, bytes};
  const gm__opencl_range from = {src->buffer, src->viewed, src->offset, bytes};
  gm__opencl_sides sides = {.to = {.buffer = NULL}};
  const gm_status status = gm__opencl_sides_open(device, &to, &from, &sides, err);
  if (status != GM_OK) return status;
  const char *op = "clEnqueueCopyBuffer";
  cl_int code;
  if (dst->buffer && src->buffer) {
    code = move_copy(device, queue, &sides, (size_t)bytes, event);
  } else if (dst->buffer) {
    op = device->drops_copies ? "clEnqueueWriteBufferRect" : "clEnqueueWriteBuffer";
    code = move_write(device, queue, &sides.to, (void *)src->pointer, (size_t)bytes, event);
  } else {
    op = device->drops_copies ? "clEnqueueReadBufferRect" : "clEnqueueReadBuffer";
    code = move_read(device, queue, &sides.from, (void *)dst->pointer, (size_t)bytes, event);
  }
  gm__opencl_sides_close(device, &sides);
  return gm__opencl_check(device, code, op, err);
}

/* A layer of OpenCL's loader that counts what programs ask of the driver for buffers. OPENCL_LAYERS names it.
 *
 * The loader calls the layer for the program and for gm alike, whichever way they found their entries. */
#include <pthread.h>
#include <stdint.h>
#include <string.h>

#include <CL/cl_layer.h>

#include "gm/export.h"

/* The calls since check_calls_reset. The bytes of a part of a buffer count once, as the buffer's. */
typedef struct check_calls {
  uint64_t buffers, parts, failures, bytes, live_bytes, peak_bytes;
} check_calls;

GM_API cl_int CL_API_CALL clGetLayerInfo(cl_layer_info name, size_t bytes, void *out, size_t *out_bytes);
GM_API cl_int CL_API_CALL clInitLayer(cl_uint entries, const cl_icd_dispatch *target, cl_uint *out_entries,
                                      const cl_icd_dispatch **out);
GM_API void check_calls_read(check_calls *out);
GM_API void check_calls_reset(void);

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static check_calls count;
static cl_icd_dispatch next, ours;

static void CL_CALLBACK on_destroyed(cl_mem memory, void *bytes) {
  (void)memory;
  pthread_mutex_lock(&lock);
  count.live_bytes -= (uintptr_t)bytes;
  pthread_mutex_unlock(&lock);
}

static cl_mem CL_API_CALL create(cl_context context, cl_mem_flags flags, size_t bytes, void *host, cl_int *out_code) {
  cl_mem memory = next.clCreateBuffer(context, flags, bytes, host, out_code);
  pthread_mutex_lock(&lock);
  if (memory) {
    ++count.buffers;
    count.bytes += bytes;
    count.live_bytes += bytes;
    if (count.live_bytes > count.peak_bytes) count.peak_bytes = count.live_bytes;
  } else {
    ++count.failures;
  }
  pthread_mutex_unlock(&lock);
  if (memory) (void)next.clSetMemObjectDestructorCallback(memory, on_destroyed, (void *)(uintptr_t)bytes); /* NOLINT */
  return memory;
}

static cl_mem CL_API_CALL create_part(cl_mem memory, cl_mem_flags flags, cl_buffer_create_type type, const void *region,
                                      cl_int *out_code) {
  pthread_mutex_lock(&lock);
  ++count.parts;
  pthread_mutex_unlock(&lock);
  return next.clCreateSubBuffer(memory, flags, type, region, out_code);
}

void check_calls_read(check_calls *out) {
  pthread_mutex_lock(&lock);
  *out = count;
  pthread_mutex_unlock(&lock);
}

void check_calls_reset(void) {
  pthread_mutex_lock(&lock);
  count = (check_calls){.live_bytes = count.live_bytes, .peak_bytes = count.live_bytes};
  pthread_mutex_unlock(&lock);
}

cl_int CL_API_CALL clGetLayerInfo(cl_layer_info name, size_t bytes, void *out, size_t *out_bytes) {
  const cl_layer_api_version version = CL_LAYER_API_VERSION_100;
  if (name != CL_LAYER_API_VERSION || (out && bytes < sizeof version)) return CL_INVALID_VALUE;
  if (out) memcpy(out, &version, sizeof version);
  if (out_bytes) *out_bytes = sizeof version;
  return CL_SUCCESS;
}

cl_int CL_API_CALL clInitLayer(cl_uint entries, const cl_icd_dispatch *target, cl_uint *out_entries,
                               const cl_icd_dispatch **out) {
  const size_t known = sizeof next / sizeof(void *);
  memcpy(&next, target, (entries < known ? entries : known) * sizeof(void *));
  ours = next;
  ours.clCreateBuffer = create;
  ours.clCreateSubBuffer = create_part;
  *out_entries = entries < known ? entries : (cl_uint)known;
  *out = &ours;
  return CL_SUCCESS;
}

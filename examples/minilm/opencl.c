/* The operations on an OpenCL device. Queue and kernels are the engine's own; the context is the engine's or gm's. gm
 * adopts the queue. A block is a part of a cl_mem of the context, and gm orders reuse by the queue. */
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <stdbool.h>
#include <string.h>

#include "backend.h"
#include "gm/native_opencl.h"

enum { MOST_PLATFORMS = 16 };

/* How the work of an operation is divided: an item for each column or one for all, and so many rows for each item. */
typedef struct work_shape {
  const char *kernel;
  uint32_t all_columns, rows;
} work_shape;

static const work_shape shapes[MINILM_OPS] = {
    [MINILM_EMBED] = {"embed", 0, 1},       [MINILM_LINEAR] = {"linear", 0, 4},     [MINILM_GELU] = {"gelu", 0, 1},
    [MINILM_SCORES] = {"scores", 0, 1},     [MINILM_SOFTMAX] = {"softmax", 1, 1},   [MINILM_MIX] = {"mix_values", 0, 1},
    [MINILM_ADD_NORM] = {"add_norm", 1, 1}, [MINILM_MEAN] = {"mean_of_rows", 0, 1}, [MINILM_UNIT] = {"unit", 1, 1}};

static gm_status said(cl_int code, const char *op, gm_error *err) {
  if (code == CL_SUCCESS) return GM_OK;
  const gm_status status = minilm_fail(err, GM_ERR_DRIVER, op, "OpenCL answered %d", code);
  if (err) err->native_code = code;
  return status;
}

static bool fits(cl_platform_id platform, const char *wanted) {
  char name[128];
  if (clGetPlatformInfo(platform, CL_PLATFORM_NAME, sizeof name, name, NULL) != CL_SUCCESS) return false;
  return !wanted || strstr(name, wanted) != NULL;
}

static gm_status absent(const char *wanted, gm_error *err) {
  return minilm_fail(err, GM_ERR_UNAVAILABLE, "minilm_open", "no OpenCL device on a platform named like `%s`",
                     wanted ? wanted : "");
}

/* The first device of a platform whose name contains `wanted`, GPUs before others. */
static gm_status choose(minilm_backend *backend, const char *wanted, gm_error *err) {
  const cl_device_type types[] = {CL_DEVICE_TYPE_GPU, CL_DEVICE_TYPE_ALL};
  cl_platform_id platforms[MOST_PLATFORMS];
  cl_uint count = 0;
  if (clGetPlatformIDs(MOST_PLATFORMS, platforms, &count) != CL_SUCCESS) count = 0;
  count = count < MOST_PLATFORMS ? count : MOST_PLATFORMS;
  for (cl_uint i = 0; i < 2 * count; i++) {
    cl_device_id device;
    if (!fits(platforms[i % count], wanted)) continue;
    if (clGetDeviceIDs(platforms[i % count], types[i / count], 1, &device, NULL) != CL_SUCCESS) continue;
    backend->opencl.device = device;
    return GM_OK;
  }
  return absent(wanted, err);
}

static gm_status make_context(minilm_backend *backend, gm_error *err) {
  cl_device_id device = backend->opencl.device;
  cl_int code = CL_SUCCESS;
  backend->opencl.context = clCreateContext(NULL, 1, &device, NULL, NULL, &code);
  return said(code, "clCreateContext", err);
}

static gm_status make_queue(minilm_backend *backend, gm_error *err) {
  minilm_opencl *cl = &backend->opencl;
  cl_int code = clGetDeviceInfo(cl->device, CL_DEVICE_NAME, sizeof backend->name, backend->name, NULL);
  if (code != CL_SUCCESS) return said(code, "clGetDeviceInfo", err);
  cl->queue = clCreateCommandQueue(cl->context, cl->device, 0, &code);
  return said(code, "clCreateCommandQueue", err);
}

static gm_status build(minilm_opencl *cl, gm_error *err) {
  cl_device_id device = cl->device;
  cl_int code = CL_SUCCESS;
  cl->program = clCreateProgramWithSource(cl->context, minilm_kernel_lines, (const char **)minilm_kernels, NULL, &code);
  if (code == CL_SUCCESS) code = clBuildProgram(cl->program, 1, &device, NULL, NULL, NULL);
  if (code != CL_SUCCESS) return said(code, "clBuildProgram", err);
  for (int op = 0; code == CL_SUCCESS && op < MINILM_OPS; op++) {
    cl->kernels[op] = clCreateKernel(cl->program, shapes[op].kernel, &code);
  }
  return said(code, "clCreateKernel", err);
}

/* gm makes nothing of its own on the context, and destroys nothing of the engine's. */
static gm_status adopt_device(minilm_backend *backend, gm_context *ctx, gm_error *err) {
  const gm_opencl_device device = {.head = {sizeof device, GM_API_OPENCL},
                                   .device = (uintptr_t)backend->opencl.device,
                                   .context = (uintptr_t)backend->opencl.context};
  return gm_device_adopt(ctx, &device.head, &backend->device, err);
}

static gm_status adopt_queue(minilm_backend *backend, gm_error *err) {
  const gm_opencl_queue queue = {.head = {sizeof queue, GM_API_OPENCL}, .queue = (uintptr_t)backend->opencl.queue};
  return gm_stream_adopt(backend->device, &queue.head, &backend->stream, err);
}

/* The engine makes all, and lends it to gm. */
static gm_status own_open(minilm_backend *backend, gm_context *ctx, const char *platform, gm_error *err) {
  gm_status status = choose(backend, platform, err);
  if (!status) status = make_context(backend, err);
  if (!status) status = make_queue(backend, err);
  if (!status) status = build(&backend->opencl, err);
  if (!status) status = adopt_device(backend, ctx, err);
  if (!status) status = adopt_queue(backend, err);
  return status;
}

/* The context of a device that gm has open, if its platform fits. */
static gm_status take_context(minilm_backend *backend, const char *wanted, gm_error *err) {
  gm_opencl_device native = {.head = {sizeof native, GM_API_OPENCL}};
  cl_platform_id platform;
  gm_status status = gm_device_native(backend->device, &native.head, err);
  if (status) return status;
  const cl_device_id device = (cl_device_id)native.device; /* NOLINT */
  status = said(clGetDeviceInfo(device, CL_DEVICE_PLATFORM, sizeof platform, &platform, NULL), "clGetDeviceInfo", err);
  if (status) return status;
  if (!fits(platform, wanted)) return GM_ERR_NOT_FOUND;
  const cl_context context = (cl_context)native.context; /* NOLINT */
  status = said(clRetainContext(context), "clRetainContext", err);
  if (!status) backend->opencl = (minilm_opencl){.device = device, .context = context};
  return status;
}

/* gm opens the device, and the engine makes its queue and kernels on gm's context. */
static gm_status gms_open(minilm_backend *backend, gm_context *ctx, const char *platform, gm_error *err) {
  gm_status status = GM_ERR_NOT_FOUND;
  for (uint32_t i = 0; status == GM_ERR_NOT_FOUND; i++) {
    gm_device_close(backend->device, NULL);
    backend->device = NULL;
    status = gm_device_open_index(ctx, "opencl", i, &backend->device, err);
    if (status == GM_ERR_NOT_FOUND) return absent(platform, err);
    if (!status) status = take_context(backend, platform, err);
  }
  if (!status) status = make_queue(backend, err);
  if (!status) status = build(&backend->opencl, err);
  if (!status) status = adopt_queue(backend, err);
  return status;
}

static gm_status opencl_tensor(gm_pool *pool, const gm_block *block, minilm_tensor *out, gm_error *err) {
  gm_opencl_memory native = {.head = {sizeof native, GM_API_OPENCL}};
  const gm_status status = gm_block_native(pool, block, &native.head, err);
  if (status) return status;
  if (!native.memory) {
    return minilm_fail(err, GM_ERR_NOT_SUPPORTED, "minilm_open", "gm was told to use shared memory instead of buffers");
  }
  *out = (minilm_tensor){native.memory, native.offset / sizeof(float)};
  return GM_OK;
}

static cl_int set_args(cl_kernel kernel, const minilm_args *args) {
  const minilm_tensor tensors[] = {args->a, args->b, args->c, args->out};
  const cl_uint numbers[] = {args->rows, args->columns, args->depth};
  cl_uint index = 0;
  cl_int code = CL_SUCCESS;
  for (int i = 0; code == CL_SUCCESS && i < 4; i++) {
    const cl_mem memory = (cl_mem)tensors[i].memory; /* NOLINT */
    const cl_ulong at = tensors[i].at;
    code = clSetKernelArg(kernel, index++, sizeof memory, memory ? &memory : NULL);
    if (code == CL_SUCCESS) code = clSetKernelArg(kernel, index++, sizeof at, &at);
  }
  for (int i = 0; code == CL_SUCCESS && i < 3; i++) {
    code = clSetKernelArg(kernel, index++, sizeof numbers[i], &numbers[i]);
  }
  return code;
}

/* The size of a group does not depend on the sentence: PoCL compiles a kernel once for each size. */
static gm_status opencl_run(minilm_backend *backend, minilm_op op, const minilm_args *args, gm_error *err) {
  const work_shape *shape = &shapes[op];
  const size_t local[2] = {shape->all_columns ? 1 : 32, shape->all_columns ? 8 : 1};
  const size_t columns = shape->all_columns ? 1 : args->columns, rows = (args->rows + shape->rows - 1) / shape->rows;
  const size_t global[2] = {(columns + local[0] - 1) / local[0] * local[0],
                            (rows + local[1] - 1) / local[1] * local[1]};
  gm_status status = said(set_args(backend->opencl.kernels[op], args), "clSetKernelArg", err);
  if (status) return status;
  return said(
      clEnqueueNDRangeKernel(backend->opencl.queue, backend->opencl.kernels[op], 2, NULL, global, local, 0, NULL, NULL),
      shape->kernel, err);
}

static void opencl_release(minilm_backend *backend) {
  minilm_opencl *cl = &backend->opencl;
  for (int op = 0; op < MINILM_OPS; op++) {
    if (cl->kernels[op]) clReleaseKernel(cl->kernels[op]);
  }
  if (cl->program) clReleaseProgram(cl->program);
  if (cl->queue) clReleaseCommandQueue(cl->queue);
  if (cl->context) clReleaseContext(cl->context);
}

const minilm_backend_calls minilm_opencl_own = {own_open, opencl_tensor, opencl_run, opencl_release};
const minilm_backend_calls minilm_opencl_gms = {gms_open, opencl_tensor, opencl_run, opencl_release};

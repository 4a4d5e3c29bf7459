/* The operations on an OpenCL device. Context, queue and kernels are the engine's own. It lends context and queue to
 * gm, so a block is a part of a cl_mem of this context, and gm orders reuse by this queue. */
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <stdio.h>
#include <string.h>

#include "backend.h"
#include "gm/native_opencl.h"

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

/* The first device of a platform whose name contains `wanted`, GPUs before others. */
static gm_status choose(minilm_backend *backend, const char *wanted, gm_error *err) {
  const cl_device_type types[] = {CL_DEVICE_TYPE_GPU, CL_DEVICE_TYPE_ALL};
  cl_platform_id platforms[16];
  cl_uint count = 0;
  char name[128];
  if (clGetPlatformIDs(16, platforms, &count) != CL_SUCCESS) count = 0;
  for (cl_uint i = 0; i < 2 * count && i < 32; i++) {
    cl_platform_id platform = platforms[i % count];
    cl_device_id device;
    if (clGetPlatformInfo(platform, CL_PLATFORM_NAME, sizeof name, name, NULL) != CL_SUCCESS) continue;
    if (wanted && !strstr(name, wanted)) continue;
    if (clGetDeviceIDs(platform, types[i / count], 1, &device, NULL) != CL_SUCCESS) continue;
    backend->opencl.device = device;
    return said(clGetDeviceInfo(device, CL_DEVICE_NAME, sizeof backend->name, backend->name, NULL), "clGetDeviceInfo",
                err);
  }
  return minilm_fail(err, GM_ERR_UNAVAILABLE, "minilm_open", "no OpenCL device on a platform named like `%s`",
                     wanted ? wanted : "");
}

static gm_status make_objects(minilm_opencl *cl, gm_error *err) {
  cl_device_id device = cl->device;
  cl_int code = CL_SUCCESS;
  cl->context = clCreateContext(NULL, 1, &device, NULL, NULL, &code);
  if (code != CL_SUCCESS) return said(code, "clCreateContext", err);
  cl->queue = clCreateCommandQueue(cl->context, device, 0, &code);
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
static gm_status adopt(minilm_backend *backend, gm_context *ctx, gm_error *err) {
  const gm_opencl_device device = {.head = {sizeof device, GM_API_OPENCL},
                                   .device = (uintptr_t)backend->opencl.device,
                                   .context = (uintptr_t)backend->opencl.context};
  const gm_opencl_queue queue = {.head = {sizeof queue, GM_API_OPENCL}, .queue = (uintptr_t)backend->opencl.queue};
  gm_status status = gm_device_adopt(ctx, &device.head, &backend->device, err);
  if (!status) status = gm_stream_adopt(backend->device, &queue.head, &backend->stream, err);
  return status;
}

static gm_status opencl_open(minilm_backend *backend, gm_context *ctx, const char *platform, gm_error *err) {
  gm_status status = choose(backend, platform, err);
  if (!status) status = make_objects(&backend->opencl, err);
  if (!status) status = build(&backend->opencl, err);
  if (!status) status = adopt(backend, ctx, err);
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

const minilm_backend_calls minilm_opencl_calls = {opencl_open, opencl_tensor, opencl_run, opencl_release};

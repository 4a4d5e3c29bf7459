#include "engine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const engine_source =
    "__kernel void dense(__global const float *in, ulong in_at, __global const float *weights, ulong weights_at,\n"
    "                    __global const float *bias, ulong bias_at, __global float *out, ulong out_at,\n"
    "                    uint inputs, int relu) {\n"
    "  size_t column = get_global_id(0), row = get_global_id(1), outputs = get_global_size(0);\n"
    "  float sum = bias[bias_at + column];\n"
    "  for (uint i = 0; i < inputs; i++)\n"
    "    sum += in[in_at + row * inputs + i] * weights[weights_at + column * inputs + i];\n"
    "  out[out_at + row * outputs + column] = relu && sum < 0.0f ? 0.0f : sum;\n"
    "}\n"
    "__kernel void softmax_sums(__global const float *values, ulong values_at, __global float *scratch,\n"
    "                           ulong scratch_at, uint columns) {\n"
    "  size_t row = get_global_id(0);\n"
    "  float most = values[values_at + row * columns], sum = 0.0f;\n"
    "  for (uint i = 1; i < columns; i++) most = fmax(most, values[values_at + row * columns + i]);\n"
    "  for (uint i = 0; i < columns; i++) sum += exp(values[values_at + row * columns + i] - most);\n"
    "  scratch[scratch_at + 2 * row] = most;\n"
    "  scratch[scratch_at + 2 * row + 1] = sum;\n"
    "}\n"
    "__kernel void softmax(__global float *values, ulong values_at, __global const float *scratch,\n"
    "                      ulong scratch_at) {\n"
    "  size_t column = get_global_id(0), row = get_global_id(1), at = values_at + row * get_global_size(0) + column;\n"
    "  values[at] = exp(values[at] - scratch[scratch_at + 2 * row]) / scratch[scratch_at + 2 * row + 1];\n"
    "}\n";

static int engine_said(cl_int code, const char *what) {
  if (code != CL_SUCCESS) fprintf(stderr, "engine: %s failed with %d\n", what, code);
  return code != CL_SUCCESS;
}

static int engine_choose(engine *e, const char *wanted) {
  const cl_device_type types[] = {CL_DEVICE_TYPE_GPU, CL_DEVICE_TYPE_ALL};
  cl_platform_id platforms[16];
  cl_uint count = 0;
  char name[128];
  if (engine_said(clGetPlatformIDs(16, platforms, &count), "clGetPlatformIDs")) return 1;
  for (int pass = 0; pass < 2; pass++) {
    for (cl_uint i = 0; i < count && i < 16; i++) {
      if (clGetPlatformInfo(platforms[i], CL_PLATFORM_NAME, sizeof name, name, NULL) != CL_SUCCESS) continue;
      if (!strstr(name, wanted)) continue;
      if (clGetDeviceIDs(platforms[i], types[pass], 1, &e->device, NULL) == CL_SUCCESS) {
        return engine_said(clGetDeviceInfo(e->device, CL_DEVICE_NAME, sizeof e->name, e->name, NULL), "the name");
      }
    }
  }
  fprintf(stderr, "engine: no OpenCL device on a platform named like `%s`\n", wanted);
  return 1;
}

static int engine_build(engine *e) {
  cl_int code = CL_SUCCESS;
  e->program = clCreateProgramWithSource(e->context, 1, (const char **)&engine_source, NULL, &code);
  if (engine_said(code, "clCreateProgramWithSource")) return 1;
  if (engine_said(clBuildProgram(e->program, 1, &e->device, NULL, NULL, NULL), "clBuildProgram")) return 1;
  e->dense = clCreateKernel(e->program, "dense", &code);
  if (engine_said(code, "clCreateKernel")) return 1;
  e->softmax_sums = clCreateKernel(e->program, "softmax_sums", &code);
  if (engine_said(code, "clCreateKernel")) return 1;
  e->softmax = clCreateKernel(e->program, "softmax", &code);
  return engine_said(code, "clCreateKernel");
}

int engine_open(engine *e, const char *platform) {
  cl_int code = CL_SUCCESS;
  memset(e, 0, sizeof *e);
  if (engine_choose(e, platform)) return 1;
  e->context = clCreateContext(NULL, 1, &e->device, NULL, NULL, &code);
  if (engine_said(code, "clCreateContext")) return 1;
  e->queue = clCreateCommandQueue(e->context, e->device, 0, &code);
  if (engine_said(code, "clCreateCommandQueue")) return 1;
  return engine_build(e);
}

void engine_close(engine *e) {
  if (e->softmax) clReleaseKernel(e->softmax);
  if (e->softmax_sums) clReleaseKernel(e->softmax_sums);
  if (e->dense) clReleaseKernel(e->dense);
  if (e->program) clReleaseProgram(e->program);
  if (e->queue) clReleaseCommandQueue(e->queue);
  if (e->context) clReleaseContext(e->context);
  memset(e, 0, sizeof *e);
}

static cl_int engine_set_tensor(cl_kernel kernel, cl_uint *index, engine_tensor tensor) {
  const cl_int code = clSetKernelArg(kernel, (*index)++, sizeof tensor.buffer, &tensor.buffer);
  return code == CL_SUCCESS ? clSetKernelArg(kernel, (*index)++, sizeof tensor.at, &tensor.at) : code;
}

cl_int engine_dense(const engine *e, const engine_dense_args *args) {
  const engine_tensor tensors[] = {args->in, args->weights, args->bias, args->out};
  const size_t size[2] = {args->outputs, args->rows};
  cl_uint index = 0;
  cl_int code = CL_SUCCESS;
  for (int i = 0; i < 4 && code == CL_SUCCESS; i++) code = engine_set_tensor(e->dense, &index, tensors[i]);
  if (code == CL_SUCCESS) code = clSetKernelArg(e->dense, index++, sizeof args->inputs, &args->inputs);
  if (code == CL_SUCCESS) code = clSetKernelArg(e->dense, index++, sizeof args->relu, &args->relu);
  if (code != CL_SUCCESS) return code;
  return clEnqueueNDRangeKernel(e->queue, e->dense, 2, NULL, size, NULL, 0, NULL, NULL);
}

cl_int engine_softmax(const engine *e, engine_tensor values, engine_tensor scratch, cl_uint rows, cl_uint columns) {
  const size_t sums_size[1] = {rows}, size[2] = {columns, rows};
  cl_uint index = 0;
  cl_int code = engine_set_tensor(e->softmax_sums, &index, values);
  if (code == CL_SUCCESS) code = engine_set_tensor(e->softmax_sums, &index, scratch);
  if (code == CL_SUCCESS) code = clSetKernelArg(e->softmax_sums, index, sizeof columns, &columns);
  if (code == CL_SUCCESS) {
    code = clEnqueueNDRangeKernel(e->queue, e->softmax_sums, 1, NULL, sums_size, NULL, 0, NULL, NULL);
  }
  index = 0;
  if (code == CL_SUCCESS) code = engine_set_tensor(e->softmax, &index, values);
  if (code == CL_SUCCESS) code = engine_set_tensor(e->softmax, &index, scratch);
  if (code != CL_SUCCESS) return code;
  return clEnqueueNDRangeKernel(e->queue, e->softmax, 2, NULL, size, NULL, 0, NULL, NULL);
}

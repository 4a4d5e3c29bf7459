/* CLBlast on blocks of gm: GEMM and AXPY on blocks at offsets inside one OpenCL buffer give what they give on buffers
 * of their own. The glue is `operand_of`: CLBlast takes a buffer and an offset in elements. */
#include <clblast_c.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "gm/gm.h"
#include "gm/native_opencl.h"

enum { OPERANDS = 3 };

typedef struct setup {
  cl_context context;
  cl_device_id device;
  cl_command_queue queue;
  gm_context *gm;
  gm_device *lent;
  gm_stream *stream;
  gm_pool *pool;
} setup;

typedef struct operand {
  cl_mem memory;
  size_t offset; /* in floats */
  gm_block block;
} operand;

/* A block of gm as CLBlast takes it. */
static gm_status operand_of(gm_pool *pool, const gm_block *block, operand *out, gm_error *err) {
  gm_opencl_memory native = {.head = {sizeof native, GM_API_OPENCL}};
  const gm_status status = gm_block_native(pool, block, &native.head, err);
  *out = (operand){(cl_mem)native.memory, native.offset / sizeof(float), *block}; /* NOLINT */
  return status;
}

static gm_status open_gm(setup *to, gm_error *err) {
  const gm_opencl_device device = {.head = {sizeof device, GM_API_OPENCL}, .context = (uintptr_t)to->context};
  const gm_opencl_queue queue = {.head = {sizeof queue, GM_API_OPENCL}, .queue = (uintptr_t)to->queue};
  gm_status status = gm_context_create(NULL, &to->gm, err);
  if (status == GM_OK) status = gm_device_adopt(to->gm, &device.head, &to->lent, err);
  if (status == GM_OK) status = gm_stream_adopt(to->lent, &queue.head, &to->stream, err);
  if (status == GM_OK) status = gm_pool_create(to->lent, NULL, &to->pool, err);
  return status;
}

static cl_int open_opencl(setup *to) {
  cl_platform_id platform = NULL;
  cl_int code = clGetPlatformIDs(1, &platform, NULL);
  if (code == CL_SUCCESS) code = clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &to->device, NULL);
  if (code == CL_SUCCESS) to->context = clCreateContext(NULL, 1, &to->device, NULL, NULL, &code);
  if (code == CL_SUCCESS) to->queue = clCreateCommandQueueWithProperties(to->context, to->device, NULL, &code);
  return code;
}

/* Fills an operand with numbers between -1 and 1. */
static bool fill(const setup *on, const operand *to, size_t count, unsigned seed) {
  float *numbers = malloc(count * sizeof *numbers);
  for (size_t i = 0; numbers && i < count; i++) {
    seed = seed * 1664525u + 1013904223u;
    numbers[i] = (float)(seed >> 8) / (float)(1 << 23) - 1;
  }
  const cl_int code = numbers ? clEnqueueWriteBuffer(on->queue, to->memory, CL_TRUE, to->offset * sizeof *numbers,
                                                     count * sizeof *numbers, numbers, 0, NULL, NULL)
                              : CL_OUT_OF_HOST_MEMORY;
  free(numbers);
  return code == CL_SUCCESS;
}

static float *read_back(const setup *on, const operand *from, size_t count) {
  float *numbers = calloc(count, sizeof *numbers);
  if (numbers && clEnqueueReadBuffer(on->queue, from->memory, CL_TRUE, from->offset * sizeof *numbers,
                                     count * sizeof *numbers, numbers, 0, NULL, NULL) == CL_SUCCESS)
    return numbers;
  free(numbers);
  return NULL;
}

/* C = 2 AB + 3 C, then B += 0.5 C: the results are in C and B. */
static bool compute(setup *on, const operand *of, size_t n) {
  CLBlastStatusCode code = CLBlastSgemm(CLBlastLayoutRowMajor, CLBlastTransposeNo, CLBlastTransposeYes, n, n, n, 2.0f,
                                        of[0].memory, of[0].offset, n, of[1].memory, of[1].offset, n, 3.0f,
                                        of[2].memory, of[2].offset, n, &on->queue, NULL);
  if (code == CLBlastSuccess)
    code = CLBlastSaxpy(n * n, 0.5f, of[2].memory, of[2].offset, 1, of[1].memory, of[1].offset, 1, &on->queue, NULL);
  if (code != CLBlastSuccess) printf("CLBlast answers %d\n", (int)code);
  return code == CLBlastSuccess;
}

/* The results for `n`, which the caller frees; NULL: something failed. */
static float *results(setup *on, const operand *of, size_t n) {
  for (unsigned i = 0; i < OPERANDS; i++)
    if (!fill(on, &of[i], n * n, i + 1)) return NULL;
  if (!compute(on, of, n)) return NULL;
  float *c = read_back(on, &of[2], n * n), *b = read_back(on, &of[1], n * n);
  float *both = c && b ? malloc(2 * n * n * sizeof *both) : NULL;
  for (size_t i = 0; both && i < n * n; i++) both[i] = c[i], both[n * n + i] = b[i];
  free(c);
  free(b);
  return both;
}

static float *on_plain_buffers(setup *on, size_t n) {
  operand of[OPERANDS] = {{.offset = 0}};
  cl_int code = CL_SUCCESS;
  for (unsigned i = 0; i < OPERANDS && code == CL_SUCCESS; i++)
    of[i].memory = clCreateBuffer(on->context, CL_MEM_READ_WRITE, n * n * sizeof(float), NULL, &code);
  float *out = code == CL_SUCCESS ? results(on, of, n) : NULL;
  for (unsigned i = 0; i < OPERANDS; i++)
    if (of[i].memory) clReleaseMemObject(of[i].memory);
  return out;
}

static bool block_for(setup *on, size_t bytes, operand *out) {
  const gm_request request = {.bytes = bytes, .stream = on->stream, .flags = GM_INSERT_WAIT};
  gm_block block;
  return gm_acquired(gm_alloc(on->pool, &request, &block)) && operand_of(on->pool, &block, out, NULL) == GM_OK;
}

static float *on_blocks(setup *on, size_t n) {
  operand first, of[OPERANDS];
  bool ok = block_for(on, 1000, &first); /* so that the others lie at offsets */
  for (unsigned i = 0; i < OPERANDS && ok; i++) {
    ok = block_for(on, n * n * sizeof(float), &of[i]);
    if (ok && (of[i].offset == 0 || of[i].memory != first.memory)) ok = printf("block %u lies alone\n", i) < 0;
  }
  float *out = ok ? results(on, of, n) : NULL;
  for (unsigned i = 0; i < OPERANDS && ok; i++) ok = gm_free(on->pool, &of[i].block, on->stream) == GM_OK;
  return gm_free(on->pool, &first.block, on->stream) == GM_OK && ok ? out : NULL;
}

/* The largest difference; NAN: there are no results. */
static float difference(setup *on, size_t n) {
  float *plain = on_plain_buffers(on, n), *ours = on_blocks(on, n), most = plain && ours ? 0 : NAN;
  for (size_t i = 0; plain && ours && i < 2 * n * n; i++) {
    const float apart = fabsf(plain[i] - ours[i]);
    if (!(apart <= most)) most = apart; /* also a NAN */
  }
  bool nothing = true;
  for (size_t i = 0; ours && i < n * n; i++) nothing = nothing && ours[i] == 0;
  free(plain);
  free(ours);
  return nothing ? NAN : most;
}

static bool close_all(setup *on, gm_error *err) {
  const bool closed = !gm_pool_destroy(on->pool, err) && !gm_stream_close(on->stream, err) &&
                      !gm_device_close(on->lent, err) && !gm_context_destroy(on->gm, err);
  clReleaseCommandQueue(on->queue);
  clReleaseContext(on->context);
  (void)CLBlastClearCache();
  return closed;
}

int main(void) {
  setup on = {.device = NULL};
  gm_error err = {.status = GM_OK};
  if (open_opencl(&on) != CL_SUCCESS) return printf("no OpenCL device\n"), 1;
  if (open_gm(&on, &err)) return printf("%s: %s\n", err.op, err.message), 1;
  bool same = true;
  const size_t sizes[] = {8, 64, 264};
  for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    const float most = difference(&on, sizes[i]);
    printf("%zu x %zu: largest difference %g\n", sizes[i], sizes[i], (double)most);
    same = same && most <= 1e-5f * (float)sizes[i];
  }
  if (!close_all(&on, &err)) return printf("%s: %s\n", err.op, err.message), 1;
  printf("%d.%d.%d GEMM and AXPY on blocks at offsets\n", CLBLAST_VERSION_MAJOR, CLBLAST_VERSION_MINOR,
         CLBLAST_VERSION_PATCH);
  return same ? 0 : 1;
}

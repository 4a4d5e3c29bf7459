/* The engine's own OpenCL: device, context, in-order queue, kernels. It knows nothing of gm. */
#ifndef GM_EXAMPLES_ENGINE_H
#define GM_EXAMPLES_ENGINE_H

#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

typedef struct engine {
  cl_device_id device;
  cl_context context;
  cl_command_queue queue;
  cl_program program;
  cl_kernel dense, softmax_sums, softmax;
  char name[128];
} engine;

/* Where a tensor lies: a buffer and the float in it where the tensor begins. */
typedef struct engine_tensor {
  cl_mem buffer;
  cl_ulong at;
} engine_tensor;

typedef struct engine_dense_args {
  engine_tensor in, weights, bias, out;
  cl_uint rows, inputs, outputs;
  cl_int relu;
} engine_dense_args;

/* The first device (GPUs before others) of a platform whose name contains `platform`. 0: done, else the reason has been
 * printed. The caller closes it, in both cases. */
int engine_open(engine *e, const char *platform);
void engine_close(engine *e);

/* Submit: out = in x weights^T + bias, negative ones cut off with `relu`. Returns OpenCL's code. */
cl_int engine_dense(const engine *e, const engine_dense_args *args);

/* Submit a softmax of each row, in place; `scratch` takes two floats for each row. */
cl_int engine_softmax(const engine *e, engine_tensor values, engine_tensor scratch, cl_uint rows, cl_uint columns);

#endif

/* Where the engine computes: nine operations on tensors of floats, on the CPU or on an OpenCL device. */
#ifndef GM_EXAMPLES_MINILM_BACKEND_H
#define GM_EXAMPLES_MINILM_BACKEND_H

#include "gm/gm.h"

/* Where a tensor lies in memory of gm. */
typedef struct minilm_tensor {
  uintptr_t memory; /* CPU: an address; OpenCL: a cl_mem */
  uint64_t at;      /* its first float, counted from there */
} minilm_tensor;

/* a, b, c and out are tensors of minilm_args. */
typedef enum minilm_op {
  MINILM_EMBED,    /* out[row] = the row of table b that a's number says, + the first row of c */
  MINILM_LINEAR,   /* out = a [rows][depth] times b [columns][depth], transposed, + c [columns] */
  MINILM_GELU,     /* out = gelu(out) */
  MINILM_SCORES,   /* out[head * tokens + row] = query a times key b of a head, scaled; columns are the tokens */
  MINILM_SOFTMAX,  /* each row of out */
  MINILM_MIX,      /* out[row] = values b, each head weighted by its scores a */
  MINILM_ADD_NORM, /* out = layer norm of out + a, times b, + c */
  MINILM_MEAN,     /* out = mean of the rows of a */
  MINILM_UNIT,     /* out gets the length 1 */
  MINILM_OPS
} minilm_op;

typedef struct minilm_args {
  minilm_tensor a, b, c, out;    /* zero where an operation has none */
  uint32_t rows, columns, depth; /* of attention `depth` is the width of a head; a multiple of 8 */
} minilm_args;

/* The engine's own OpenCL objects, each a cl_* handle. */
typedef struct minilm_opencl {
  void *device, *context, *queue, *program, *kernels[MINILM_OPS];
} minilm_opencl;

typedef struct minilm_backend {
  const struct minilm_backend_calls *calls; /* NULL: not open */
  gm_device *device;
  gm_stream *stream; /* NULL: the engine computes on the calling thread */
  minilm_opencl opencl;
  char name[128];
} minilm_backend;

typedef struct minilm_backend_calls {
  /* Makes device and stream. `minilm_backend_close` follows, also after a failure. */
  gm_status (*open)(minilm_backend *backend, gm_context *ctx, const char *platform, gm_error *err);
  gm_status (*tensor)(gm_pool *pool, const gm_block *block, minilm_tensor *out, gm_error *err);
  /* Submits an operation to the stream; on the CPU it is done when the call returns. */
  gm_status (*run)(minilm_backend *backend, minilm_op op, const minilm_args *args, gm_error *err);
  void (*release)(minilm_backend *backend); /* the engine's own objects */
} minilm_backend_calls;

extern const minilm_backend_calls minilm_cpu;
#ifdef MINILM_OPENCL
extern const minilm_backend_calls minilm_opencl_own; /* the engine makes device and context, and gm adopts them */
extern const minilm_backend_calls minilm_opencl_gms; /* gm opens the device, and the engine uses its context */
extern const char *const minilm_kernels[];           /* the lines of kernels.cl */
extern const uint32_t minilm_kernel_lines;
#endif

/* Fills `err`, which may be NULL, and returns `status`. */
gm_status minilm_fail(gm_error *err, gm_status status, const char *op, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

#endif

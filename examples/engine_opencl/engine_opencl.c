/* An engine that owns its OpenCL context and queue, and lets gm manage the memory on them.
 *
 *   engine_opencl [PLATFORM]
 *
 * It lends context and queue to gm, takes weights, activations and scratch from one pool, and runs a small MLP for
 * several steps. Activations are freed right after the kernel that reads them was submitted. The free carries the
 * stream, so the next step reuses the memory in the queue's order, and nobody waits. Each step is checked against plain
 * C. Leaves with 0 only if every result was right and, after the first step, no step needed new memory. */
#include <stdio.h>
#include <string.h>

#include "engine.h"
#include "gm/copy.h"
#include "gm/native_opencl.h"
#include "gm/pool.h"
#include "gm/size.h"
#include "mlp.h"

enum { STEPS = 8 };

typedef struct app {
  engine engine;
  mlp model;
  gm_context *context;
  gm_device *device;
  gm_stream *stream;
  gm_pool *pool;
  gm_block weights[MLP_LAYERS], bias[MLP_LAYERS];
  gm_error err;
} app;

static int failed(const app *a, const char *what) {
  fprintf(stderr, "%s: %s: %s\n", what, gm_status_name(a->err.status), a->err.message);
  return 1;
}

/* Adopt: gm retains context and queue, makes nothing of its own on them, and destroys nothing of the engine's. */
static int adopt(app *a) {
  const gm_opencl_device device = {.head = {sizeof device, GM_API_OPENCL},
                                   .device = (uintptr_t)a->engine.device,
                                   .context = (uintptr_t)a->engine.context};
  const gm_opencl_queue queue = {.head = {sizeof queue, GM_API_OPENCL}, .queue = (uintptr_t)a->engine.queue};
  const gm_pool_params params = {.struct_size = sizeof params, .name = "mlp"};
  if (gm_context_create(NULL, &a->context, &a->err) != GM_OK) return failed(a, "gm_context_create");
  if (gm_device_adopt(a->context, &device.head, &a->device, &a->err) != GM_OK) return failed(a, "gm_device_adopt");
  if (gm_stream_adopt(a->device, &queue.head, &a->stream, &a->err) != GM_OK) return failed(a, "gm_stream_adopt");
  if (gm_pool_create(a->device, &params, &a->pool, &a->err) != GM_OK) return failed(a, "gm_pool_create");
  return 0;
}

static int take(app *a, uint64_t floats, const char *tag, gm_block *out) {
  const gm_request request = {
      .bytes = floats * sizeof(float), .stream = a->stream, .flags = GM_INSERT_WAIT, .tag = gm_tag(a->context, tag)};
  gm_explanation why = {.struct_size = sizeof why};
  const gm_acquire acquired = gm_alloc(a->pool, &request, out);
  if (gm_acquired(acquired)) return 0;
  if (gm_explain(a->pool, &request, &why, &a->err) != GM_OK) return failed(a, "gm_explain");
  fprintf(stderr, "gm_alloc: %s: %s\n", gm_acquire_name(acquired), why.text);
  return 1;
}

/* The part of a block that a kernel needs: the buffer that it lies in, and where. */
static int tensor_of(app *a, const gm_block *block, engine_tensor *out) {
  gm_opencl_memory native = {.head = {sizeof native, GM_API_OPENCL}};
  if (gm_block_native(a->pool, block, &native.head, &a->err) != GM_OK) return failed(a, "gm_block_native");
  *out = (engine_tensor){(cl_mem)native.memory, native.offset / sizeof(float)};
  return 0;
}

static int upload(app *a, const float *values, uint64_t floats, gm_block *out) {
  if (take(a, floats, "weights", out)) return 1;
  if (gm_block_write(a->pool, out, 0, values, floats * sizeof(float), a->stream, NULL, &a->err) != GM_OK) {
    return failed(a, "gm_block_write");
  }
  return 0;
}

static int upload_model(app *a) {
  for (int i = 0; i < MLP_LAYERS; i++) {
    const mlp_layer *layer = &a->model.layers[i];
    if (upload(a, layer->weights, (uint64_t)layer->inputs * layer->outputs, &a->weights[i])) return 1;
    if (upload(a, layer->bias, layer->outputs, &a->bias[i])) return 1;
  }
  return 0;
}

/* One layer: a block for its output, its kernel, and the input block given back in the queue's order. */
static int run_layer(app *a, int index, gm_block *current) {
  const mlp_layer *layer = &a->model.layers[index];
  engine_dense_args args = {.rows = MLP_BATCH, .inputs = layer->inputs, .outputs = layer->outputs, .relu = layer->relu};
  gm_block next;
  if (take(a, (uint64_t)MLP_BATCH * layer->outputs, "activations", &next)) return 1;
  if (tensor_of(a, current, &args.in) || tensor_of(a, &next, &args.out)) return 1;
  if (tensor_of(a, &a->weights[index], &args.weights) || tensor_of(a, &a->bias[index], &args.bias)) return 1;
  const cl_int code = engine_dense(&a->engine, &args);
  if (code != CL_SUCCESS) fprintf(stderr, "dense failed with %d\n", code);
  if (gm_free(a->pool, current, a->stream) != GM_OK || code != CL_SUCCESS) return 1;
  *current = next;
  return 0;
}

/* An engine whose kernels take a buffer alone asks for a view: a sub-buffer of the block. */
static int run_softmax(app *a, const gm_block *values) {
  const uint64_t bytes = (uint64_t)MLP_BATCH * MLP_OUTPUTS * sizeof(float);
  uint64_t view = 0;
  gm_block scratch;
  engine_tensor scratch_tensor;
  if (take(a, (uint64_t)2 * MLP_BATCH, "scratch", &scratch) || tensor_of(a, &scratch, &scratch_tensor)) return 1;
  if (gm_block_view_create(a->pool, values, 0, bytes, &view, &a->err) != GM_OK)
    return failed(a, "gm_block_view_create");
  const engine_tensor values_tensor = {(cl_mem)(uintptr_t)view, 0};
  const cl_int code = engine_softmax(&a->engine, values_tensor, scratch_tensor, MLP_BATCH, MLP_OUTPUTS);
  if (code != CL_SUCCESS) fprintf(stderr, "softmax failed with %d\n", code);
  gm_block_view_destroy(a->pool, view, NULL);
  if (gm_free(a->pool, &scratch, a->stream) != GM_OK) return 1;
  return code != CL_SUCCESS;
}

static int run_step(app *a, const float *input, float *out) {
  const uint64_t in_bytes = (uint64_t)MLP_BATCH * MLP_INPUTS * sizeof(float);
  const uint64_t out_bytes = (uint64_t)MLP_BATCH * MLP_OUTPUTS * sizeof(float);
  gm_block current;
  if (take(a, (uint64_t)MLP_BATCH * MLP_INPUTS, "activations", &current)) return 1;
  if (gm_block_write(a->pool, &current, 0, input, in_bytes, a->stream, NULL, &a->err) != GM_OK) {
    return failed(a, "gm_block_write");
  }
  for (int i = 0; i < MLP_LAYERS; i++) {
    if (run_layer(a, i, &current)) return 1;
  }
  if (run_softmax(a, &current)) return 1;
  if (gm_block_read(a->pool, &current, 0, out, out_bytes, a->stream, NULL, &a->err) != GM_OK) {
    return failed(a, "gm_block_read");
  }
  return gm_free(a->pool, &current, a->stream) != GM_OK;
}

/* The largest difference from plain C, in probability. */
static int check_step(app *a, unsigned step, double *worst) {
  static float input[MLP_BATCH * MLP_INPUTS], got[MLP_BATCH * MLP_OUTPUTS], want[MLP_BATCH * MLP_OUTPUTS];
  mlp_input(step, input);
  memset(got, 0xff, sizeof got); /* not numbers */
  if (run_step(a, input, got) || mlp_forward(&a->model, input, want)) return 1;
  *worst = mlp_worst(*worst, got, want);
  return 0;
}

static void report(app *a, const gm_stats *stats, double worst) {
  char reserved[16];
  gm_format_bytes(stats->peak_reserved_bytes, reserved, sizeof reserved);
  printf("device     %s (%s)\n", a->engine.name, gm_device_get_info(a->device)->driver);
  printf("steps      %d, largest difference from plain C %.2g\n", STEPS, worst);
  printf("memory     %s at most; %llu allocations, %llu of them new at the driver\n", reserved,
         (unsigned long long)stats->allocs, (unsigned long long)stats->misses);
}

static int run_steps(app *a) {
  gm_stats first = {.struct_size = sizeof first}, last = {.struct_size = sizeof last};
  double worst = 0.0;
  for (unsigned step = 0; step < STEPS; step++) {
    if (check_step(a, step, &worst)) return 1;
    if (step == 0) gm_pool_stats(a->pool, &first);
  }
  gm_pool_stats(a->pool, &last);
  report(a, &last, worst);
  const int right = worst < 1e-5, reused = last.misses == first.misses;
  if (!right) fprintf(stderr, "the results are wrong\n");
  if (!reused) fprintf(stderr, "later steps needed new memory\n");
  return !right || !reused;
}

/* gm's objects go before the engine's: closing the stream settles what the pool still remembers of the queue. */
static int tear_down(app *a) {
  int bad = 0;
  for (int i = 0; a->pool && i < MLP_LAYERS; i++) {
    if (a->weights[i].bytes) bad |= gm_free(a->pool, &a->weights[i], a->stream) != GM_OK;
    if (a->bias[i].bytes) bad |= gm_free(a->pool, &a->bias[i], a->stream) != GM_OK;
  }
  if (gm_stream_close(a->stream, &a->err) != GM_OK) bad = failed(a, "gm_stream_close");
  if (gm_pool_destroy(a->pool, &a->err) != GM_OK) bad = failed(a, "gm_pool_destroy");
  if (gm_device_close(a->device, &a->err) != GM_OK) bad = failed(a, "gm_device_close");
  if (gm_context_destroy(a->context, &a->err) != GM_OK) bad = failed(a, "gm_context_destroy");
  engine_close(&a->engine);
  mlp_destroy(&a->model);
  return bad;
}

int main(int argc, char **argv) {
  app a;
  memset(&a, 0, sizeof a);
  int bad = engine_open(&a.engine, argc > 1 ? argv[1] : "");
  if (!bad && mlp_create(&a.model)) {
    fprintf(stderr, "no memory for the model\n");
    bad = 1;
  }
  if (!bad) bad = adopt(&a) || upload_model(&a) || run_steps(&a);
  if (tear_down(&a)) bad = 1;
  printf("%s\n", bad ? "FAILED" : "ok");
  return bad;
}

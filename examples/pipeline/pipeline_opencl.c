/* OptimizedPipeline on an engine's own OpenCL context and queue: the kernel of examples/engine_opencl is the step.
 *
 *   pipeline_opencl [PLATFORM] */
#include "examples/engine_opencl/engine.h"
#include "gm/native_opencl.h"
#include "optimized.h"

static int tensor_of(gm_pool *pool, const gm_block *block, engine_tensor *out) {
  gm_opencl_memory native = {.head = {sizeof native, GM_API_OPENCL}};
  if (gm_block_native(pool, block, &native.head, NULL) != GM_OK || !native.memory) return 1;
  *out = (engine_tensor){(cl_mem)native.memory, native.offset / sizeof(float)}; /* NOLINT(performance-no-int-to-ptr) */
  return 0;
}

static int run_dense(void *user, gm_pool *pool, const dense_call *call) {
  engine_dense_args args = {.rows = 1, .inputs = call->inputs, .outputs = call->outputs, .relu = call->relu};
  return tensor_of(pool, call->x, &args.in) || tensor_of(pool, call->w, &args.weights) ||
         tensor_of(pool, call->b, &args.bias) || tensor_of(pool, call->y, &args.out) ||
         engine_dense(user, &args) != CL_SUCCESS;
}

static int begin_step(void *user, gm_stream *stream, uint64_t index) {
  (void)user, (void)stream, (void)index;
  return 0;
}

/* gm records its point on the queue. */
static gm_status end_step(void *user, gm_stream *stream, gm_point *done, gm_error *err) {
  (void)user, (void)done;
  return gm_stream_flush(stream, err);
}

static int adopt(optimized *o, const engine *e) {
  const gm_opencl_device device = {
      .head = {sizeof device, GM_API_OPENCL}, .device = (uintptr_t)e->device, .context = (uintptr_t)e->context};
  const gm_opencl_queue queue = {.head = {sizeof queue, GM_API_OPENCL}, .queue = (uintptr_t)e->queue};
  return optimized_adopt(o, &device.head, &queue.head);
}

int main(int argc, char **argv) {
  static engine e;
  static optimized o = {.dense = run_dense, .step_begins = begin_step, .step_ends = end_step, .engine = &e};
  int bad = engine_open(&e, argc > 1 ? argv[1] : "");
  o.name = e.name;
  if (!bad) bad = adopt(&o, &e) || optimized_run(&o);
  if (optimized_close(&o)) bad = 1;
  engine_close(&e);
  return bad;
}

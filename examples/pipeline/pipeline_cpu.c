/* OptimizedPipeline on the processor: the kernels are C functions over the blocks' own memory. They run at once, so
 * they wait for the stream before.
 *
 *   pipeline_cpu */
#include "optimized.h"

/* A block of the CPU has the host's address. */
static float *floats_of(const gm_block *block) {
  return (float *)(uintptr_t)block->address; /* NOLINT(performance-no-int-to-ptr) */
}

static int run_dense(void *engine, gm_pool *pool, const dense_call *call) {
  const float *x = floats_of(call->x), *w = floats_of(call->w), *b = floats_of(call->b);
  float *y = floats_of(call->y);
  (void)engine, (void)pool;
  for (uint32_t column = 0; column < call->outputs; column++) {
    float sum = b[column];
    for (uint32_t i = 0; i < call->inputs; i++) sum += x[i] * w[column * call->inputs + i];
    y[column] = call->relu && sum < 0.0f ? 0.0f : sum;
  }
  return 0;
}

static int begin_step(void *engine, gm_stream *stream, uint64_t index) {
  (void)engine, (void)index;
  return gm_stream_sync(stream, NULL) != GM_OK;
}

static gm_status end_step(void *engine, gm_stream *stream, gm_point *done, gm_error *err) {
  (void)engine, (void)stream, (void)done, (void)err; /* all is done */
  return GM_OK;
}

int main(void) {
  static optimized o = {.dense = run_dense, .step_begins = begin_step, .step_ends = end_step, .name = "cpu"};
  if (gm_context_create(NULL, &o.context, &o.err) != GM_OK) return optimized_failed(&o, "gm_context_create");
  if (gm_device_open_index(o.context, "cpu", 0, &o.device, &o.err) != GM_OK) return optimized_failed(&o, "open");
  if (gm_stream_create(o.device, &o.stream, &o.err) != GM_OK) return optimized_failed(&o, "gm_stream_create");
  const int bad = optimized_run(&o);
  return optimized_close(&o) || bad;
}

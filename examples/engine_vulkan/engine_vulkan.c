/* An engine that owns its Vulkan device and queue, and lets gm manage the memory on them.
 *
 *   engine_vulkan [validation] [staging]
 *
 * It lends device and queue to gm, and takes weights, activations and scratch from one pool. It runs a small MLP for
 * several steps by compute shaders over gm's blocks. Activations are freed right after the dispatch that reads them was
 * submitted: the free carries the stream. In a Vulkan queue order alone is no dependency. So gm says
 * GM_ACQUIRE_NEEDS_BARRIER when it hands out such a block again, and the engine puts a barrier before the dispatch that
 * writes it. At the end of a step the engine's own timeline value becomes a point that gm's read waits for. Each step
 * is checked against plain C. `validation` wants the layers silent; `staging` plays a card whose memory the host cannot
 * map. */
#include <stdio.h>
#include <string.h>

#include "examples/engine_opencl/mlp.h"
#include "gm/copy.h"
#include "gm/native_vulkan.h"
#include "gm/pool.h"
#include "gm/size.h"
#include "vk_engine.h"

enum { STEPS = 8 };

typedef struct app {
  engine engine;
  mlp model;
  gm_context *context;
  gm_device *device;
  gm_stream *stream;
  gm_pool *pool;
  gm_block weights[MLP_LAYERS], bias[MLP_LAYERS];
  bool barrier; /* a block taken since the last dispatch wants one */
  unsigned barriers;
  gm_error err;
} app;

static int failed(const app *a, const char *what) {
  fprintf(stderr, "%s: %s: %s\n", what, gm_status_name(a->err.status), a->err.message);
  return 1;
}

/* Adopt: gm makes nothing of its own in the queue's place and destroys nothing of the engine's. */
static int adopt(app *a, bool staging) {
  const gm_vulkan_device device = {.head = {sizeof device, GM_API_VULKAN},
                                   .instance = (uintptr_t)a->engine.instance,
                                   .physical_device = (uintptr_t)a->engine.physical,
                                   .device = (uintptr_t)a->engine.device,
                                   .get_instance_proc = (uintptr_t)a->engine.get,
                                   .api_version = VK_API_VERSION_1_2,
                                   .features = GM_VULKAN_TIMELINE_SEMAPHORE,
                                   .queue_families = &a->engine.family,
                                   .queue_family_count = 1};
  const gm_vulkan_queue queue = {.head = {sizeof queue, GM_API_VULKAN},
                                 .queue = (uintptr_t)a->engine.queue,
                                 .family = a->engine.family,
                                 .may_submit = true,
                                 .lock = engine_lock_queue,
                                 .unlock = engine_unlock_queue,
                                 .user = &a->engine};
  const gm_context_params context = {.struct_size = sizeof context,
                                     .backend_options = staging ? "vulkan:no_host_visible" : NULL};
  const gm_pool_params pool = {.struct_size = sizeof pool, .name = "mlp"};
  if (gm_context_create(&context, &a->context, &a->err) != GM_OK) return failed(a, "gm_context_create");
  if (gm_device_adopt(a->context, &device.head, &a->device, &a->err) != GM_OK) return failed(a, "gm_device_adopt");
  if (gm_stream_adopt(a->device, &queue.head, &a->stream, &a->err) != GM_OK) return failed(a, "gm_stream_adopt");
  if (gm_pool_create(a->device, &pool, &a->pool, &a->err) != GM_OK) return failed(a, "gm_pool_create");
  return 0;
}

/* A block that work on another stream may still use: the queue waits for that, the host does not. */
static int wait_for_block(app *a, const gm_block *block) {
  const gm_point point = gm_block_point(a->pool, block);
  return gm_stream_wait(a->stream, &point, &a->err) == GM_OK ? 0 : failed(a, "gm_stream_wait");
}

static int take(app *a, uint64_t floats, const char *tag, gm_block *out) {
  const gm_request request = {.bytes = floats * sizeof(float), .stream = a->stream, .tag = gm_tag(a->context, tag)};
  gm_explanation why = {.struct_size = sizeof why};
  switch (gm_alloc(a->pool, &request, out)) {
    case GM_ACQUIRE_OK:
    case GM_ACQUIRE_FRESH: return 0;
    case GM_ACQUIRE_NEEDS_BARRIER:
      a->barrier = true;
      a->barriers++;
      return 0;
    case GM_ACQUIRE_NEEDS_WAIT: return wait_for_block(a, out);
    default: break;
  }
  if (gm_explain(a->pool, &request, &why, &a->err) != GM_OK) return failed(a, "gm_explain");
  fprintf(stderr, "gm_alloc: %s\n", why.text);
  return 1;
}

/* The part of a block that a descriptor needs. gm's blocks are aligned for storage buffers. */
static int tensor_of(app *a, const gm_block *block, uint64_t floats, engine_tensor *out) {
  gm_vulkan_memory native = {.head = {sizeof native, GM_API_VULKAN}};
  if (gm_block_native(a->pool, block, &native.head, &a->err) != GM_OK) return failed(a, "gm_block_native");
  *out = (engine_tensor){(VkBuffer)native.buffer, native.buffer_offset, floats * sizeof(float)};
  return 0;
}

static int run(app *a, engine_work *work) {
  work->wide_barrier = a->barrier;
  a->barrier = false;
  return engine_run(&a->engine, work);
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

/* One layer: a block for its output, its dispatch, and the input block given back in the queue's order. */
static int run_layer(app *a, int index, gm_block *current) {
  const mlp_layer *layer = &a->model.layers[index];
  const uint64_t outputs = (uint64_t)MLP_BATCH * layer->outputs;
  engine_work work = {.shader = ENGINE_DENSE,
                      .tensor_count = 4,
                      .sizes = {MLP_BATCH, layer->inputs, layer->outputs, (uint32_t)layer->relu},
                      .invocations = MLP_BATCH * layer->outputs};
  gm_block next;
  if (take(a, outputs, "activations", &next)) return 1;
  if (tensor_of(a, current, (uint64_t)MLP_BATCH * layer->inputs, &work.tensors[0]) ||
      tensor_of(a, &a->weights[index], (uint64_t)layer->inputs * layer->outputs, &work.tensors[1]) ||
      tensor_of(a, &a->bias[index], layer->outputs, &work.tensors[2]) ||
      tensor_of(a, &next, outputs, &work.tensors[3]) || run(a, &work)) {
    return 1;
  }
  if (gm_free(a->pool, current, a->stream) != GM_OK) return 1;
  *current = next;
  return 0;
}

static int run_softmax(app *a, const gm_block *values) {
  engine_work work = {.shader = ENGINE_SOFTMAX, .tensor_count = 2};
  gm_block scratch;
  if (take(a, UINT64_C(2) * MLP_BATCH, "scratch", &scratch)) return 1;
  if (tensor_of(a, values, (uint64_t)MLP_BATCH * MLP_OUTPUTS, &work.tensors[0])) return 1;
  if (tensor_of(a, &scratch, UINT64_C(2) * MLP_BATCH, &work.tensors[1])) return 1;
  for (uint32_t pass = 0; pass < 2; pass++) {
    const uint32_t sizes[4] = {MLP_BATCH, 0, MLP_OUTPUTS, pass};
    memcpy(work.sizes, sizes, sizeof sizes);
    work.invocations = pass ? MLP_BATCH * MLP_OUTPUTS : MLP_BATCH;
    if (run(a, &work)) return 1;
  }
  return gm_free(a->pool, &scratch, a->stream) != GM_OK;
}

/* gm's read follows the engine's own timeline, which has counted to e->value when the step is done. */
static int follow_engine(app *a) {
  const gm_vulkan_point native = {
      .head = {sizeof native, GM_API_VULKAN}, .semaphore = (uint64_t)a->engine.timeline, .value = a->engine.value};
  gm_point point;
  if (gm_stream_import_point(a->stream, &native.head, &point, &a->err) != GM_OK) return failed(a, "the engine's point");
  const gm_status status = gm_stream_wait(a->stream, &point, &a->err);
  gm_point_release(a->device, &point);
  return status == GM_OK ? 0 : failed(a, "gm_stream_wait");
}

static int run_step(app *a, const float *input, float *out) {
  const uint64_t in_bytes = (uint64_t)MLP_BATCH * MLP_INPUTS * sizeof(float);
  const uint64_t out_bytes = (uint64_t)MLP_BATCH * MLP_OUTPUTS * sizeof(float);
  gm_block current;
  if (engine_begin_step(&a->engine)) return 1;
  if (take(a, (uint64_t)MLP_BATCH * MLP_INPUTS, "activations", &current)) return 1;
  a->barrier = false; /* gm's own copies begin and end with a barrier */
  if (gm_block_write(a->pool, &current, 0, input, in_bytes, a->stream, NULL, &a->err) != GM_OK) {
    return failed(a, "gm_block_write");
  }
  for (int i = 0; i < MLP_LAYERS; i++) {
    if (run_layer(a, i, &current)) return 1;
  }
  if (run_softmax(a, &current) || follow_engine(a)) return 1;
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
  printf("memory     %s at most; %llu allocations, %llu of them new at the driver, %u after a barrier\n", reserved,
         (unsigned long long)stats->allocs, (unsigned long long)stats->misses, a->barriers);
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
  const unsigned messages = atomic_load(&a->engine.messages);
  if (messages) fprintf(stderr, "%u validation messages\n", messages);
  return bad || messages;
}

static bool has_word(int argc, char **argv, const char *word) {
  for (int i = 1; i < argc; i++) {
    if (strcmp(argv[i], word) == 0) return true;
  }
  return false;
}

int main(int argc, char **argv) {
  static app a;
  int bad = engine_open(&a.engine, has_word(argc, argv, "validation"));
  if (!bad && mlp_create(&a.model)) {
    fprintf(stderr, "no memory for the model\n");
    bad = 1;
  }
  if (!bad) bad = adopt(&a, has_word(argc, argv, "staging")) || upload_model(&a) || run_steps(&a);
  if (tear_down(&a)) bad = 1;
  printf("%s\n", bad ? "FAILED" : "ok");
  return bad;
}

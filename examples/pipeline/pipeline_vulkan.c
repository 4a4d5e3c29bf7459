/* OptimizedPipeline on an engine's own Vulkan device and queue: the shader of examples/engine_vulkan is the step. gm
 * may make no queue on that device, so copies and kernels share the engine's.
 *
 *   pipeline_vulkan [validation] */
#include <stdio.h>
#include <string.h>

#include "examples/engine_vulkan/vk_engine.h"
#include "gm/native_vulkan.h"
#include "optimized.h"

enum { STEPS_A_TURN = ENGINE_STEP_WORKS / 2 };

static int tensor_of(gm_pool *pool, const gm_block *block, uint64_t floats, engine_tensor *out) {
  gm_vulkan_memory native = {.head = {sizeof native, GM_API_VULKAN}};
  if (gm_block_native(pool, block, &native.head, NULL) != GM_OK) return 1;
  *out = (engine_tensor){(VkBuffer)native.buffer, native.buffer_offset, floats * sizeof(float)};
  return 0;
}

static int run_dense(void *user, gm_pool *pool, const dense_call *call) {
  engine_work work = {.shader = ENGINE_DENSE,
                      .tensor_count = 4,
                      .sizes = {1, call->inputs, call->outputs, (uint32_t)call->relu},
                      .invocations = call->outputs,
                      .wide_barrier = true};
  return tensor_of(pool, call->x, call->inputs, &work.tensors[0]) ||
         tensor_of(pool, call->w, (uint64_t)call->inputs * call->outputs, &work.tensors[1]) ||
         tensor_of(pool, call->b, call->outputs, &work.tensors[2]) ||
         tensor_of(pool, call->y, call->outputs, &work.tensors[3]) || engine_run(user, &work);
}

/* The engine has command buffers for so many steps; then it waits for them. */
static int begin_step(void *user, gm_stream *stream, uint64_t index) {
  (void)stream;
  return index % STEPS_A_TURN ? 0 : engine_begin_step(user);
}

/* The engine's own timeline says when the step is done. */
static gm_status end_step(void *user, gm_stream *stream, gm_point *done, gm_error *err) {
  const engine *e = user;
  const gm_vulkan_point native = {
      .head = {sizeof native, GM_API_VULKAN}, .semaphore = (uint64_t)e->timeline, .value = e->value};
  return gm_stream_import_point(stream, &native.head, done, err);
}

static int adopt(optimized *o, engine *e) {
  const gm_vulkan_device device = {.head = {sizeof device, GM_API_VULKAN},
                                   .instance = (uintptr_t)e->instance,
                                   .physical_device = (uintptr_t)e->physical,
                                   .device = (uintptr_t)e->device,
                                   .get_instance_proc = (uintptr_t)e->get,
                                   .api_version = VK_API_VERSION_1_2,
                                   .features = GM_VULKAN_TIMELINE_SEMAPHORE,
                                   .queue_families = &e->family,
                                   .queue_family_count = 1};
  const gm_vulkan_queue queue = {.head = {sizeof queue, GM_API_VULKAN},
                                 .queue = (uintptr_t)e->queue,
                                 .family = e->family,
                                 .may_submit = true,
                                 .lock = engine_lock_queue,
                                 .unlock = engine_unlock_queue,
                                 .user = e};
  return optimized_adopt(o, &device.head, &queue.head);
}

int main(int argc, char **argv) {
  static engine e;
  static optimized o = {.dense = run_dense, .step_begins = begin_step, .step_ends = end_step, .engine = &e};
  int bad = engine_open(&e, argc > 1 && strcmp(argv[1], "validation") == 0);
  o.name = e.name;
  if (!bad) bad = adopt(&o, &e) || optimized_run(&o);
  if (optimized_close(&o)) bad = 1;
  engine_close(&e);
  const unsigned messages = atomic_load(&e.messages);
  if (messages) fprintf(stderr, "%u validation messages\n", messages);
  return bad || messages;
}

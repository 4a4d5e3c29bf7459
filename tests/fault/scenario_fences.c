/* An engine's Vulkan device without timeline semaphores, adopted through the engine's own entries: points are fences.
 * The engine's own calls do not fail. Its objects stay for the whole program, as its driver does. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <vulkan/vulkan.h>

#include "fault/scenario.h"
#include "gm/copy.h"
#include "gm/native_vulkan.h"

enum { FENCE_POINTS = 5, FENCE_ROUNDS = 3, FENCE_BYTES = 40000 };

typedef struct fence_engine {
  PFN_vkGetInstanceProcAddr find;
  VkInstance instance;
  VkPhysicalDevice physical;
  VkDevice device;
  VkQueue queue;
  VkFence fence;
  PFN_vkQueueSubmit submit;
  PFN_vkResetFences reset;
  PFN_vkDeviceWaitIdle idle;
} fence_engine;

static fence_engine engine;
static unsigned char fence_sent[FENCE_BYTES], fence_got[FENCE_BYTES];

static PFN_vkVoidFunction engine_entry(const char *name) { return engine.find(engine.instance, name); }

static bool engine_load(void) {
  const char *named = getenv("GM_VULKAN_LIBRARY"); /* the engine has what gm has */
  void *library = dlopen(named && *named ? named : "libvulkan.so.1", RTLD_NOW | RTLD_LOCAL);
  void *symbol = library ? dlsym(library, "vkGetInstanceProcAddr") : NULL;
  if (symbol) memcpy(&engine.find, &symbol, sizeof engine.find);
  return symbol != NULL;
}

static bool engine_make_device(void) {
  const float priority = 1.0f;
  uint32_t one = 1;
  const VkDeviceQueueCreateInfo queue = {
      .sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO, .queueCount = 1, .pQueuePriorities = &priority};
  const VkDeviceCreateInfo info = {
      .sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO, .queueCreateInfoCount = 1, .pQueueCreateInfos = &queue};
  const VkFenceCreateInfo fence = {.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};
  const PFN_vkEnumeratePhysicalDevices list =
      (PFN_vkEnumeratePhysicalDevices)engine_entry("vkEnumeratePhysicalDevices");
  const PFN_vkCreateDevice create = (PFN_vkCreateDevice)engine_entry("vkCreateDevice");
  const PFN_vkGetDeviceQueue get = (PFN_vkGetDeviceQueue)engine_entry("vkGetDeviceQueue");
  const PFN_vkCreateFence make = (PFN_vkCreateFence)engine_entry("vkCreateFence");
  engine.submit = (PFN_vkQueueSubmit)engine_entry("vkQueueSubmit");
  engine.reset = (PFN_vkResetFences)engine_entry("vkResetFences");
  engine.idle = (PFN_vkDeviceWaitIdle)engine_entry("vkDeviceWaitIdle");
  if (list(engine.instance, &one, &engine.physical) < 0 || one == 0) return false;
  if (create(engine.physical, &info, NULL, &engine.device)) return false;
  get(engine.device, 0, 0, &engine.queue);
  return make(engine.device, &fence, NULL, &engine.fence) == VK_SUCCESS;
}

/* Makes the engine, once. */
static bool engine_make(void) {
  const VkApplicationInfo application = {.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO, .apiVersion = VK_API_VERSION_1_1};
  const VkInstanceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO, .pApplicationInfo = &application};
  if (engine.fence) return true;
  if (!engine_load()) return false;
  const PFN_vkCreateInstance create = (PFN_vkCreateInstance)engine.find(NULL, "vkCreateInstance");
  return create && create(&info, NULL, &engine.instance) == VK_SUCCESS && engine_make_device();
}

static gm_status fences_wrong(const char *what, gm_error *err) {
  snprintf(err->message, sizeof err->message, "every call succeeded, and %s", what);
  return GM_ERR_FORMAT;
}

static gm_status fences_open(session *s, bool may_submit, gm_error *err) {
  static const uint32_t family = 0;
  const gm_pool_params pool = {.struct_size = sizeof pool, .name = "fences", .track = true};
  if (!engine_make() || engine.idle(engine.device) || engine.reset(engine.device, 1, &engine.fence)) {
    return fences_wrong("the engine has no Vulkan device", err);
  }
  const gm_vulkan_device device = {.head = {sizeof device, GM_API_VULKAN},
                                   .instance = (uintptr_t)engine.instance,
                                   .physical_device = (uintptr_t)engine.physical,
                                   .device = (uintptr_t)engine.device,
                                   .get_instance_proc = (uintptr_t)engine.find,
                                   .api_version = VK_API_VERSION_1_1,
                                   .queue_families = &family,
                                   .queue_family_count = 1};
  const gm_vulkan_queue queue = {
      .head = {sizeof queue, GM_API_VULKAN}, .queue = (uintptr_t)engine.queue, .may_submit = may_submit};
  gm_status status = session_open_context(s, err);
  if (status == GM_OK) status = gm_device_adopt(s->ctx, &device.head, &s->device, err);
  if (status == GM_OK) status = gm_stream_adopt(s->device, &queue.head, &s->streams[0], err);
  return status == GM_OK ? gm_pool_create(s->device, &pool, &s->pool, err) : status;
}

/* ---- points ---- */

static gm_status fences_wait(session *s, const gm_point *points, gm_error *err) {
  bool done = false;
  gm_status status = gm_point_done(s->device, &points[FENCE_POINTS - 1], &done, err);
  if (status == GM_OK) status = gm_point_wait(s->device, &points[FENCE_POINTS / 2], UINT64_MAX, err);
  if (status == GM_OK) status = gm_point_wait(s->device, &points[FENCE_POINTS - 1], UINT64_C(60000000000), err);
  for (int i = 0; i < FENCE_POINTS && status == GM_OK; i++) {
    status = gm_point_done(s->device, &points[i], &done, err);
    if (status == GM_OK && !done) status = fences_wrong("a point that was waited for has not passed", err);
  }
  return status == GM_OK ? gm_stream_wait(s->streams[0], &points[0], err) : status;
}

static gm_status fences_points(session *s, gm_error *err) {
  gm_point points[FENCE_POINTS] = {{0}};
  gm_status status = GM_OK;
  for (int i = 0; i < FENCE_POINTS && status == GM_OK; i++) status = gm_stream_record(s->streams[0], &points[i], err);
  if (status == GM_OK) status = gm_stream_flush(s->streams[0], err);
  if (status == GM_OK) status = fences_wait(s, points, err);
  if (status == GM_OK) status = gm_stream_barrier(s->streams[0], err);
  if (status == GM_OK) status = gm_stream_sync(s->streams[0], err);
  for (int i = 0; i < FENCE_POINTS; i++) gm_point_release(s->device, &points[i]);
  return status;
}

/* ---- memory in the order of the queue ---- */

static gm_status fences_copy(session *s, const gm_block *block, gm_error *err) {
  gm_point point = {0};
  gm_status status = gm_block_write(s->pool, block, 0, fence_sent, FENCE_BYTES, s->streams[0], &point, err);
  gm_point_release(s->device, &point);
  if (status == GM_OK) status = gm_block_fill(s->pool, block, 7, 9, "x", 1, s->streams[0], &point, err);
  if (status == GM_OK) status = gm_point_wait(s->device, &point, UINT64_MAX, err);
  gm_point_release(s->device, &point);
  memset(fence_got, 0, FENCE_BYTES);
  if (status == GM_OK) status = gm_block_read(s->pool, block, 0, fence_got, FENCE_BYTES, s->streams[0], NULL, err);
  if (status) return status;
  return memcmp(fence_got, fence_sent, 7) == 0 && fence_got[15] == 'x' ? GM_OK
                                                                       : fences_wrong("the bytes are wrong", err);
}

/* The next block waits for the work of the last one. */
static gm_status fences_memory(session *s, gm_error *err) {
  gm_status status = session_take_on(s, FENCE_BYTES, s->streams[0], err);
  if (status == GM_OK) status = fences_copy(s, &s->blocks[s->block_count - 1], err);
  if (status == GM_OK) status = session_give(s, s->streams[0], err);
  if (status == GM_OK) status = session_take(s, FENCE_BYTES, err);
  return status == GM_OK ? session_give(s, NULL, err) : status;
}

/* ---- points of the engine's ---- */

static gm_status fences_import(session *s, gm_point *out, gm_error *err) {
  const gm_vulkan_point native = {.head = {sizeof native, GM_API_VULKAN}, .fence = (uint64_t)engine.fence};
  if (engine.reset(engine.device, 1, &engine.fence)) return fences_wrong("the engine cannot reset its fence", err);
  gm_status status = gm_stream_import_point(s->streams[0], &native.head, out, err);
  if (engine.submit(engine.queue, 0, NULL, engine.fence)) status = fences_wrong("the engine cannot submit", err);
  return status;
}

static gm_status fences_freed_at(session *s, gm_error *err) {
  gm_point point = {0};
  gm_status status = session_take(s, FENCE_BYTES, err);
  if (status == GM_OK) status = fences_import(s, &point, err);
  if (status == GM_OK) status = gm_free_at(s->pool, &s->blocks[s->block_count - 1], &point, err);
  if (status == GM_OK) s->block_count--;
  if (status == GM_OK) status = gm_stream_passed(s->streams[0], &point, err);
  if (status == GM_OK) status = gm_point_wait(s->device, &point, UINT64_MAX, err);
  if (status == GM_OK) status = session_take(s, FENCE_BYTES, err);
  if (status == GM_OK) status = session_give(s, s->streams[0], err);
  if (status == GM_OK) status = gm_stream_passed(s->streams[0], NULL, err);
  engine.idle(engine.device); /* the fence is the engine's again */
  gm_point_release(s->device, &point);
  return status;
}

static gm_status fences_nothing_held(session *s, gm_error *err) {
  gm_stats stats = {.struct_size = sizeof stats};
  gm_pool_stats(s->pool, &stats);
  if (stats.in_use_bytes || stats.requested_bytes) return fences_wrong("the pool counts bytes in use", err);
  gm_pool_trim(s->pool, 0);
  gm_pool_stats(s->pool, &stats);
  return stats.reserved_bytes ? fences_wrong("idle memory does not go back", err) : GM_OK;
}

gm_status scenario_fences(session *s, gm_error *err) {
  gm_status status = fences_open(s, true, err);
  for (int i = 0; i < FENCE_ROUNDS && status == GM_OK; i++) {
    status = fences_points(s, err);
    if (status == GM_OK) status = fences_memory(s, err);
    if (status == GM_OK) status = fences_freed_at(s, err);
  }
  if (status == GM_OK) status = gm_stream_sync(s->streams[0], err);
  return status == GM_OK ? fences_nothing_held(s, err) : status;
}

/* gm cannot ask the queue: whatever failed, the engine says when the work is done. */
static void fences_tell(const session *s) {
  if (!s->streams[0]) return;
  engine.idle(engine.device);
  if (gm_stream_passed(s->streams[0], NULL, NULL)) gm_stream_passed(s->streams[0], NULL, NULL);
}

gm_status scenario_fences_no_leave(session *s, gm_error *err) {
  gm_status status = fences_open(s, false, err);
  for (int i = 0; i < FENCE_ROUNDS && status == GM_OK; i++) status = fences_freed_at(s, err);
  if (status == GM_OK) status = fences_nothing_held(s, err);
  fences_tell(s);
  return status;
}

/* Vulkan devices with validation and synchronisation validation on. Some are opened by gm, some with device memory that
 * is presented as not host-visible. A small engine lends others, with a device and a queue of its own. One such engine
 * has no timeline semaphores: its device is adopted with the engine's entries alone, and fences are its points.
 * Whatever the layers say, to gm or to the engine, is a failure. */
#include <pthread.h>

#include "core/base/alloc.h"
#include "cts/asserts.h"
#include "cts/modes.h"
#include "support/vulkan_fixture.h"
/* after the fixture */
#include "support/vulkan_engine.h"

static vulkan_engine vulkan_lender;
static pthread_mutex_t vulkan_queue_mutex = PTHREAD_MUTEX_INITIALIZER; /* the engine's, none of gm's */
static atomic_uint vulkan_inside, vulkan_damage;

/* The layers' warnings and errors, of any instance of gm in this run, go to the log. */
static uint32_t vulkan_finish(cts *t) {
  const uint32_t warnings = (uint32_t)atomic_load(&t->heap.warnings), damage = atomic_load(&vulkan_damage);
  if (warnings + damage) {
    snprintf(t->why, sizeof t->why, "%u validation messages; %u times the engine's queue was not locked or not as lent",
             warnings, damage);
  }
  return warnings + damage;
}

/* Synchronisation validation compares a submission with all that it has seen since the device was last known to be
 * idle. A wait for a timeline semaphore does not make the device idle for it. */
static void vulkan_settle(cts *t) {
  gm_vulkan_device native = {.head = {sizeof native, GM_API_VULKAN}};
  if (t->ops->device_native(t->device, &native.head, &t->err) != GM_OK) return;
  const PFN_vkGetInstanceProcAddr find = (PFN_vkGetInstanceProcAddr)native.get_instance_proc;
  const PFN_vkDeviceWaitIdle wait = (PFN_vkDeviceWaitIdle)find((VkInstance)native.instance, "vkDeviceWaitIdle");
  if (wait((VkDevice)native.device) != VK_SUCCESS) atomic_fetch_add(&vulkan_damage, 1);
}

static void vulkan_lock(void *user) {
  (void)user;
  pthread_mutex_lock(&vulkan_queue_mutex);
  if (atomic_fetch_add(&vulkan_inside, 1) != 0) atomic_fetch_add(&vulkan_damage, 1);
}

static void vulkan_unlock(void *user) {
  (void)user;
  if (atomic_fetch_sub(&vulkan_inside, 1) != 1) atomic_fetch_add(&vulkan_damage, 1);
  pthread_mutex_unlock(&vulkan_queue_mutex);
}

static gm_status vulkan_open(cts *t, uint32_t index) {
  if (index > 0) {
    cts_skip(t, "the engine has the first device only");
    return GM_ERR_UNAVAILABLE;
  }
  const gm_backend_host own = {.services = gm__default_services(), .options = ""}; /* its memory is not gm's */
  /* The one mode's engine enabled what gm can use, the other's the least. */
  const bool rich = t->mode == &cts_vulkan_adopted;
  vulkan_engine_open_with(&vulkan_lender, &own,
                          rich ? GM_VULKAN_BUFFER_DEVICE_ADDRESS | GM_VULKAN_EXTERNAL_MEMORY_FD |
                                     GM_VULKAN_EXTERNAL_MEMORY_HOST | GM_VULKAN_SPARSE_BUFFERS
                               : 0);
  const gm_vulkan_device lent = vulkan_engine_native(&vulkan_lender);
  return t->ops->device_adopt(t->driver, &lent.head, &t->device, &t->err);
}

/* Leaves the process when the layers said anything about gm's work on the engine's device, or about what it left. */
static void vulkan_close(cts *t) {
  (void)t;
  vulkan_engine_close(&vulkan_lender);
}

static gm_vulkan_queue vulkan_queue_lent;

/* This has no timeline semaphores, and goes through the engine's own entries. */
static gm_status vulkan_open_plain(cts *t, uint32_t index) {
  if (index > 0) {
    cts_skip(t, "the engine has the first device only");
    return GM_ERR_UNAVAILABLE;
  }
  const gm_backend_host own = {.services = gm__default_services(), .options = ""};
  vulkan_engine_open_exactly(&vulkan_lender, &own, GM_VULKAN_SPARSE_BUFFERS);
  const gm_vulkan_device lent = vulkan_engine_native(&vulkan_lender);
  return t->ops->device_adopt_alone(&t->host, &lent.head, &t->device, &t->err);
}

static gm_status vulkan_open_stream(cts *t, void **out, gm_stream_kind *out_kind, uint32_t slot) {
  (void)slot;
  vulkan_queue_lent = (gm_vulkan_queue){.head = {sizeof vulkan_queue_lent, GM_API_VULKAN},
                                        .queue = (uintptr_t)vulkan_lender.queue,
                                        .family = vulkan_lender.family,
                                        .may_submit = !t->mode->no_leave,
                                        .lock = vulkan_lock,
                                        .unlock = vulkan_unlock};
  return t->ops->stream_adopt(t->device, &vulkan_queue_lent.head, out, out_kind, &t->err);
}

static const gm_native_stream *vulkan_lent(uint32_t slot) {
  (void)slot;
  return &vulkan_queue_lent.head;
}

static void vulkan_close_stream(cts *t, uint32_t slot) {
  (void)t, (void)slot;
  if (vulkan_lender.vk.vkQueueSubmit(vulkan_lender.queue, 0, NULL, VK_NULL_HANDLE) != VK_SUCCESS) {
    atomic_fetch_add(&vulkan_damage, 1);
  }
}

static const gm_native_point *vulkan_engine_point(cts *t) {
  static gm_vulkan_point lent;
  (void)t;
  lent = (gm_vulkan_point){
      .head = {sizeof lent, GM_API_VULKAN}, .semaphore = (uint64_t)(uintptr_t)vulkan_lender.timeline, .value = 7};
  return &lent.head;
}

static bool vulkan_engine_reach(cts *t) {
  (void)t;
  const PFN_vkSignalSemaphore signal =
      (PFN_vkSignalSemaphore)vulkan_lender.vk.vkGetDeviceProcAddr(vulkan_lender.device, "vkSignalSemaphore");
  const VkSemaphoreSignalInfo info = {
      .sType = VK_STRUCTURE_TYPE_SEMAPHORE_SIGNAL_INFO, .semaphore = vulkan_lender.timeline, .value = 7};
  return signal && signal(vulkan_lender.device, &info) == VK_SUCCESS;
}

static const gm_native_point *vulkan_engine_fence(cts *t) {
  static gm_vulkan_point lent;
  if (vulkan_lender.vk.vkResetFences(vulkan_lender.device, 1, &vulkan_lender.fence) != VK_SUCCESS) t->failed = true;
  lent = (gm_vulkan_point){.head = {sizeof lent, GM_API_VULKAN}, .fence = (uint64_t)(uintptr_t)vulkan_lender.fence};
  return &lent.head;
}

static bool vulkan_engine_signal(cts *t) {
  (void)t;
  pthread_mutex_lock(&vulkan_queue_mutex);
  const VkResult result = vulkan_lender.vk.vkQueueSubmit(vulkan_lender.queue, 0, NULL, vulkan_lender.fence);
  pthread_mutex_unlock(&vulkan_queue_mutex);
  return result == VK_SUCCESS;
}

static bool vulkan_check_native(cts *t, const gm_memory *memory, uint64_t offset, uint64_t bytes) {
  gm_vulkan_memory native = {.head = {sizeof native, GM_API_VULKAN}};
  return t->ops->memory_native(t->device, memory, offset, bytes, &native.head, &t->err) == GM_OK && native.memory &&
         native.buffer && native.buffer_offset == offset && native.memory_offset >= offset && native.bytes == bytes &&
         (!native.mapped || t->types[memory->type].flags & GM_MEMORY_HOST_VISIBLE);
}

const cts_mode cts_vulkan_opened = {.backend = "vulkan",
                                    .name = "opened",
                                    .ops = &gm__vulkan_backend,
                                    .options = "validation",
                                    .settle = vulkan_settle,
                                    .finish = vulkan_finish,
                                    .native_memory_bytes = sizeof(gm_vulkan_memory),
                                    .check_native = vulkan_check_native};

/* For machines that have no layers. */
const cts_mode cts_vulkan_plain = {.backend = "vulkan",
                                   .name = "plain",
                                   .ops = &gm__vulkan_backend,
                                   .native_memory_bytes = sizeof(gm_vulkan_memory),
                                   .check_native = vulkan_check_native};

const cts_mode cts_vulkan_staging = {.backend = "vulkan",
                                     .name = "staging",
                                     .ops = &gm__vulkan_backend,
                                     .options = "validation,no_host_visible",
                                     .settle = vulkan_settle,
                                     .finish = vulkan_finish,
                                     .native_memory_bytes = sizeof(gm_vulkan_memory),
                                     .check_native = vulkan_check_native};

static const cts_engine vulkan_adopted_engine = {.open = vulkan_open,
                                                 .open_stream = vulkan_open_stream,
                                                 .lent = vulkan_lent,
                                                 .one_queue = true,
                                                 .close_stream = vulkan_close_stream,
                                                 .close = vulkan_close,
                                                 .point = vulkan_engine_point,
                                                 .reach = vulkan_engine_reach};

const cts_mode cts_vulkan_adopted = {.backend = "vulkan",
                                     .name = "adopted",
                                     .ops = &gm__vulkan_backend,
                                     .options = "validation",
                                     .engine = &vulkan_adopted_engine,
                                     .settle = vulkan_settle,
                                     .finish = vulkan_finish,
                                     .native_memory_bytes = sizeof(gm_vulkan_memory),
                                     .check_native = vulkan_check_native};

const cts_mode cts_vulkan_adopted_staging = {.backend = "vulkan",
                                             .name = "adopted_staging",
                                             .ops = &gm__vulkan_backend,
                                             .options = "validation,no_host_visible",
                                             .engine = &vulkan_adopted_engine,
                                             .settle = vulkan_settle,
                                             .finish = vulkan_finish,
                                             .native_memory_bytes = sizeof(gm_vulkan_memory),
                                             .check_native = vulkan_check_native};

/* gm allocates, maps and looks at points; the work is the engine's own. */
static const cts_lack vulkan_no_leave_lacks[] = {
    {CTS_CONTENTS | CTS_RECT | CTS_MANY, "gm may not submit, so it copies nothing"},
    {CTS_POINTS, "gm may not submit, so it makes no points"},
    {CTS_MAP, "gm may not submit, so it cannot wait for the stream before the host reads"},
    {CTS_VMM, "gm may not submit, so it binds nothing"},
    {0, NULL},
};

static const cts_reason vulkan_no_leave_unsupported[] = {
    {"memory.live_ones_keep_apart", "gm may not submit, so it copies nothing"},
    {"lifecycle.forked_child", "gm may not submit, so it has no work to leave behind"},
    {NULL, NULL},
};

const cts_mode cts_vulkan_no_leave = {.backend = "vulkan",
                                      .name = "no_leave",
                                      .ops = &gm__vulkan_backend,
                                      .options = "validation",
                                      .lack = vulkan_no_leave_lacks,
                                      .unsupported = vulkan_no_leave_unsupported,
                                      .no_leave = true,
                                      .engine = &vulkan_adopted_engine,
                                      .settle = vulkan_settle,
                                      .finish = vulkan_finish,
                                      .native_memory_bytes = sizeof(gm_vulkan_memory),
                                      .check_native = vulkan_check_native};

static const cts_engine vulkan_plain_engine = {.open = vulkan_open_plain,
                                               .open_stream = vulkan_open_stream,
                                               .lent = vulkan_lent,
                                               .one_queue = true,
                                               .close_stream = vulkan_close_stream,
                                               .close = vulkan_close,
                                               .point = vulkan_engine_fence,
                                               .reach = vulkan_engine_signal};

static const cts_reason vulkan_fences_unsupported[] = {
    {"adopt.engine_point", "a queue cannot wait for a fence: adopt.engine_fence has what it can be asked"},
    {NULL, NULL},
};

const cts_mode cts_vulkan_fences = {.backend = "vulkan",
                                    .name = "fences",
                                    .ops = &gm__vulkan_backend,
                                    .unsupported = vulkan_fences_unsupported,
                                    .fences = true,
                                    .engine = &vulkan_plain_engine,
                                    .settle = vulkan_settle,
                                    .finish = vulkan_finish,
                                    .native_memory_bytes = sizeof(gm_vulkan_memory),
                                    .check_native = vulkan_check_native};

const cts_mode cts_vulkan_fences_no_leave = {.backend = "vulkan",
                                             .name = "fences_no_leave",
                                             .ops = &gm__vulkan_backend,
                                             .lack = vulkan_no_leave_lacks,
                                             .unsupported = vulkan_no_leave_unsupported,
                                             .no_leave = true,
                                             .fences = true,
                                             .engine = &vulkan_plain_engine,
                                             .settle = vulkan_settle,
                                             .finish = vulkan_finish,
                                             .native_memory_bytes = sizeof(gm_vulkan_memory),
                                             .check_native = vulkan_check_native};

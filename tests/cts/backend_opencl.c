/* OpenCL devices: opened by gm, and lent by a small engine with a context and queues of its own. */
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "backends/opencl/opencl_backend.h"
#include "cts/modes.h"
#include "gm/native_opencl.h"

typedef struct opencl_api {
  __typeof__(&clCreateContext) create_context;
  __typeof__(&clReleaseContext) release_context;
  __typeof__(&clCreateCommandQueue) create_queue;
  __typeof__(&clReleaseCommandQueue) release_queue;
  __typeof__(&clGetContextInfo) context_info;
  __typeof__(&clGetMemObjectInfo) memory_info;
  __typeof__(&clFinish) finish;
  __typeof__(&clCreateUserEvent) create_event;
  __typeof__(&clSetUserEventStatus) set_event;
  __typeof__(&clReleaseEvent) release_event;
} opencl_api;

/* The engine: what it made, and what of it did not survive being lent. */
typedef struct opencl_engine {
  cl_device_id device;
  cl_context context;
  cl_command_queue queues[CTS_STREAMS_MAX];
  cl_event event;
} opencl_engine;

static opencl_api opencl_calls;
static opencl_engine opencl_lender;
static uint32_t opencl_damage;

static bool opencl_symbol(void *library, const char *name, void *out) {
  void *symbol = dlsym(library, name);
  memcpy(out, &symbol, sizeof symbol);
  return symbol != NULL;
}

static bool opencl_load(cts *t) {
  static void *library;
  if (library) return true;
  const char *own = getenv("GM_OPENCL_LIBRARY"); /* the engine has what gm has */
  library = dlopen(own ? own : "libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
  opencl_api *calls = &opencl_calls;
  const bool good = library && opencl_symbol(library, "clCreateContext", &calls->create_context) &&
                    opencl_symbol(library, "clReleaseContext", &calls->release_context) &&
                    opencl_symbol(library, "clCreateCommandQueue", &calls->create_queue) &&
                    opencl_symbol(library, "clReleaseCommandQueue", &calls->release_queue) &&
                    opencl_symbol(library, "clGetContextInfo", &calls->context_info) &&
                    opencl_symbol(library, "clGetMemObjectInfo", &calls->memory_info) &&
                    opencl_symbol(library, "clFinish", &calls->finish) &&
                    opencl_symbol(library, "clCreateUserEvent", &calls->create_event) &&
                    opencl_symbol(library, "clSetUserEventStatus", &calls->set_event) &&
                    opencl_symbol(library, "clReleaseEvent", &calls->release_event);
  return cts_check(t, good, "the engine loads libOpenCL.so.1", __FILE__, __LINE__);
}

/* The cl_device_id of device `index`, as gm names it. */
static gm_status opencl_find_device(cts *t, uint32_t index, cl_device_id *out) {
  void *device = NULL;
  gm_opencl_device native = {.head = {.struct_size = sizeof native, .api = GM_API_OPENCL}};
  gm_status status = t->ops->device_open(t->driver, index, &device, &t->err);
  if (status) return status;
  status = t->ops->device_native(device, &native.head, &t->err);
  t->ops->device_close(device, GM_CLOSE_NORMAL);
  *out = (cl_device_id)native.device;
  return status;
}

static gm_status opencl_lend_device(cts *t, uint32_t index, bool allow_queue) {
  if (!opencl_load(t)) return GM_ERR_UNAVAILABLE;
  opencl_engine *engine = &opencl_lender;
  *engine = (opencl_engine){0};
  gm_status status = opencl_find_device(t, index, &engine->device);
  if (status) return status;
  cl_int code = CL_SUCCESS;
  engine->context = opencl_calls.create_context(NULL, 1, &engine->device, NULL, NULL, &code);
  if (!engine->context) return GM_ERR_DRIVER;
  const gm_opencl_device lent = {.head = {.struct_size = sizeof lent, .api = GM_API_OPENCL},
                                 .device = (uintptr_t)engine->device,
                                 .context = (uintptr_t)engine->context,
                                 .allow_queue = allow_queue};
  status = t->ops->device_adopt(t->driver, &lent.head, &t->device, &t->err);
  if (status) opencl_calls.release_context(engine->context);
  return status;
}

static gm_status opencl_open(cts *t, uint32_t index) { return opencl_lend_device(t, index, true); }

static gm_status opencl_open_strict(cts *t, uint32_t index) { return opencl_lend_device(t, index, false); }

/* gm has let go of everything: nobody but the engine holds the context. PoCL's threads let go of events a little after
 * their work is done, so this waits a while before it believes the worst. */
static void opencl_close(cts *t) {
  (void)t;
  cl_uint references = 0;
  cl_context context = opencl_lender.context;
  const struct timespec pause = {.tv_nsec = 10000000};
  for (int i = 0; i < 500 && references != 1; i++) {
    if (i > 0) nanosleep(&pause, NULL);
    opencl_calls.context_info(context, CL_CONTEXT_REFERENCE_COUNT, sizeof references, &references, NULL);
  }
  if (references != 1 || opencl_calls.release_context(context) != CL_SUCCESS) opencl_damage++;
}

static gm_status opencl_lend_queue(cts *t, cl_command_queue_properties properties, void **out, gm_stream_kind *out_kind,
                                   uint32_t slot) {
  cl_int code = CL_SUCCESS;
  opencl_engine *engine = &opencl_lender;
  engine->queues[slot] = opencl_calls.create_queue(engine->context, engine->device, properties, &code);
  if (!engine->queues[slot]) return GM_ERR_DRIVER;
  const gm_opencl_queue lent = {.head = {.struct_size = sizeof lent, .api = GM_API_OPENCL},
                                .queue = (uintptr_t)engine->queues[slot]};
  const gm_status status = t->ops->stream_adopt(t->device, &lent.head, out, out_kind, &t->err);
  if (status) opencl_calls.release_queue(engine->queues[slot]);
  return status;
}

static gm_status opencl_open_stream(cts *t, void **out, gm_stream_kind *out_kind, uint32_t slot) {
  const gm_status status = opencl_lend_queue(t, 0, out, out_kind, slot);
  if (status == GM_OK && *out_kind != GM_STREAM_FIFO) opencl_damage++;
  return status;
}

static gm_status opencl_open_unordered(cts *t, void **out, gm_stream_kind *out_kind, uint32_t slot) {
  const gm_status status = opencl_lend_queue(t, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, out, out_kind, slot);
  if (status == GM_OK && *out_kind != GM_STREAM_UNORDERED) opencl_damage++;
  return status;
}

/* gm has let go, and the queue still works. (Its reference count tells nothing: PoCL's memory remembers the last event,
 * and that its queue.) */
static void opencl_close_stream(cts *t, uint32_t slot) {
  (void)t;
  cl_command_queue queue = opencl_lender.queues[slot];
  if (opencl_calls.finish(queue) != CL_SUCCESS || opencl_calls.release_queue(queue) != CL_SUCCESS) opencl_damage++;
}

static const gm_native_stream *opencl_lent(uint32_t slot) {
  static gm_opencl_queue lent;
  lent = (gm_opencl_queue){.head = {sizeof lent, GM_API_OPENCL}, .queue = (uintptr_t)opencl_lender.queues[slot]};
  return &lent.head;
}

static const gm_native_point *opencl_engine_point(cts *t) {
  static gm_opencl_point lent;
  (void)t;
  cl_int code = CL_SUCCESS;
  opencl_lender.event = opencl_calls.create_event(opencl_lender.context, &code);
  lent = (gm_opencl_point){.head = {sizeof lent, GM_API_OPENCL}, .event = (uintptr_t)opencl_lender.event};
  return opencl_lender.event ? &lent.head : NULL;
}

/* The engine gives its own reference back at once: gm has one of its own. */
static bool opencl_engine_reach(cts *t) {
  (void)t;
  return opencl_calls.set_event(opencl_lender.event, CL_COMPLETE) == CL_SUCCESS &&
         opencl_calls.release_event(opencl_lender.event) == CL_SUCCESS;
}

static uint32_t opencl_finish(cts *t) {
  if (opencl_damage) {
    snprintf(t->why, sizeof t->why, "%u times an object of the engine was not as it had been lent", opencl_damage);
  }
  return opencl_damage;
}

static bool opencl_check_native(cts *t, const gm_memory *memory, uint64_t offset, uint64_t bytes) {
  gm_opencl_memory native = {.head = {.struct_size = sizeof native, .api = GM_API_OPENCL}};
  size_t size = 0;
  if (!opencl_load(t) || t->ops->memory_native(t->device, memory, offset, bytes, &native.head, &t->err) != GM_OK) {
    return false;
  }
  if (memory->address) {
    return native.pointer == memory->address + offset && !native.memory && !native.offset && native.bytes == bytes;
  }
  return native.memory && !native.pointer && native.offset == offset && native.bytes == bytes &&
         opencl_calls.memory_info((cl_mem)native.memory, CL_MEM_SIZE, sizeof size, &size, NULL) == CL_SUCCESS &&
         size >= offset + bytes;
}

const cts_mode cts_opencl_opened = {.backend = "opencl",
                                    .name = "opened",
                                    .ops = &gm__opencl_backend,
                                    .native_memory_bytes = sizeof(gm_opencl_memory),
                                    .check_native = opencl_check_native};

static const cts_engine opencl_adopted_engine = {.open = opencl_open,
                                                 .open_stream = opencl_open_stream,
                                                 .lent = opencl_lent,
                                                 .close_stream = opencl_close_stream,
                                                 .close = opencl_close,
                                                 .point = opencl_engine_point,
                                                 .reach = opencl_engine_reach};

const cts_mode cts_opencl_adopted = {.backend = "opencl",
                                     .name = "adopted",
                                     .ops = &gm__opencl_backend,
                                     .engine = &opencl_adopted_engine,
                                     .finish = opencl_finish,
                                     .native_memory_bytes = sizeof(gm_opencl_memory),
                                     .check_native = opencl_check_native};

static const cts_reason opencl_unsupported[] = {
    {"commit.at_allocation", "it needs a queue, and this engine forbids gm one of its own"},
    {NULL, NULL},
};

/* Out-of-order queues, of an engine that forbids gm queues of its own. */
static const cts_engine opencl_unordered_engine = {.open = opencl_open_strict,
                                                   .open_stream = opencl_open_unordered,
                                                   .lent = opencl_lent,
                                                   .close_stream = opencl_close_stream,
                                                   .close = opencl_close,
                                                   .point = opencl_engine_point,
                                                   .reach = opencl_engine_reach};

const cts_mode cts_opencl_unordered = {.backend = "opencl",
                                       .name = "unordered",
                                       .ops = &gm__opencl_backend,
                                       .unsupported = opencl_unsupported,
                                       .engine = &opencl_unordered_engine,
                                       .finish = opencl_finish,
                                       .native_memory_bytes = sizeof(gm_opencl_memory),
                                       .check_native = opencl_check_native};

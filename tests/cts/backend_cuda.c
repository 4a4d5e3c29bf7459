/* CUDA devices: opened by gm, and lent by a small engine with a context and streams of its own. The library is the one
 * that GM_CUDA_LIBRARY names (the simulated one of the tests), else the driver's. */
#include <dlfcn.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/cuda/cuda_abi.h"
#include "backends/cuda/cuda_backend.h"
#include "cts/modes.h"
#include "gm/native_cuda.h"

typedef struct cuda_api {
  CUresult (*context_create)(CUcontext *out, unsigned int flags, CUdevice device);
  CUresult (*context_destroy)(CUcontext context);
  CUresult (*context_set)(CUcontext context);
  CUresult (*context_get)(CUcontext *out);
  CUresult (*stream_create)(CUstream *out, unsigned int flags);
  CUresult (*stream_destroy)(CUstream stream);
  CUresult (*stream_sync)(CUstream stream);
  CUresult (*event_create)(CUevent *out, unsigned int flags);
  CUresult (*event_destroy)(CUevent event);
  CUresult (*event_record)(CUevent event, CUstream stream);
  CUresult (*host_call)(CUstream stream, void (*call)(void *), void *user);
  CUresult (*memory_info)(void *out, CUpointer_attribute what, CUdeviceptr pointer);
  int (*control)(const char *command, char *reply, size_t capacity); /* NULL: a real driver */
} cuda_api;

/* The engine: what it made, and what of it did not survive being lent. */
typedef struct cuda_engine {
  CUcontext context;
  CUstream streams[CTS_STREAMS_MAX];
  CUstream gated; /* work on it waits for `gate` */
  CUevent event;
  sem_t gate;
} cuda_engine;

static cuda_api cuda_calls;
static cuda_engine cuda_lender;
static uint32_t cuda_damage;

typedef struct cuda_symbol {
  const char *name;
  size_t offset;
} cuda_symbol;

static const cuda_symbol cuda_symbols[] = {
    {"cuCtxCreate_v2", offsetof(cuda_api, context_create)},
    {"cuCtxDestroy_v2", offsetof(cuda_api, context_destroy)},
    {"cuCtxSetCurrent", offsetof(cuda_api, context_set)},
    {"cuCtxGetCurrent", offsetof(cuda_api, context_get)},
    {"cuStreamCreate", offsetof(cuda_api, stream_create)},
    {"cuStreamDestroy_v2", offsetof(cuda_api, stream_destroy)},
    {"cuStreamSynchronize", offsetof(cuda_api, stream_sync)},
    {"cuEventCreate", offsetof(cuda_api, event_create)},
    {"cuEventDestroy_v2", offsetof(cuda_api, event_destroy)},
    {"cuEventRecord", offsetof(cuda_api, event_record)},
    {"cuLaunchHostFunc", offsetof(cuda_api, host_call)},
    {"cuPointerGetAttribute", offsetof(cuda_api, memory_info)},
    {"simCudaControl", offsetof(cuda_api, control)},
};

static bool cuda_load(cts *t) {
  static void *library;
  if (library) return true;
  const char *named = getenv("GM_CUDA_LIBRARY");
  library = dlopen(named && *named ? named : "libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  bool good = library != NULL;
  for (size_t i = 0; good && i < sizeof cuda_symbols / sizeof cuda_symbols[0]; i++) {
    void *symbol = dlsym(library, cuda_symbols[i].name);
    good = symbol || cuda_symbols[i].offset == offsetof(cuda_api, control);
    memcpy((char *)&cuda_calls + cuda_symbols[i].offset, &symbol, sizeof symbol);
  }
  return cts_check(t, good, "the engine loads libcuda.so.1", __FILE__, __LINE__);
}

static gm_status cuda_open(cts *t, uint32_t index) {
  cuda_engine *engine = &cuda_lender;
  if (!cuda_load(t)) return GM_ERR_UNAVAILABLE;
  *engine = (cuda_engine){0};
  if (cuda_calls.context_create(&engine->context, 0, (CUdevice)index) != CUDA_SUCCESS) return GM_ERR_DRIVER;
  const gm_cuda_device lent = {.head = {sizeof lent, GM_API_CUDA}, .context = (uintptr_t)engine->context};
  const gm_status status = t->ops->device_adopt(t->driver, &lent.head, &t->device, &t->err);
  if (status) cuda_calls.context_destroy(engine->context);
  return status;
}

/* Whatever gm did, the engine's context is still current in this thread. */
static void cuda_check_current(void) {
  CUcontext current = NULL;
  if (cuda_calls.context_get(&current) != CUDA_SUCCESS || current != cuda_lender.context) cuda_damage++;
}

static void cuda_end_point(cuda_engine *engine) {
  if (!engine->event) return;
  cuda_calls.event_destroy(engine->event);
  cuda_calls.stream_sync(engine->gated);
  cuda_calls.stream_destroy(engine->gated);
  sem_destroy(&engine->gate);
  engine->event = NULL;
}

static void cuda_close(cts *t) {
  (void)t;
  cuda_check_current();
  cuda_end_point(&cuda_lender);
  if (cuda_calls.context_destroy(cuda_lender.context) != CUDA_SUCCESS) cuda_damage++;
}

static gm_status cuda_lend(cts *t, CUstream handle, void **out, gm_stream_kind *out_kind) {
  const gm_cuda_stream lent = {.head = {sizeof lent, GM_API_CUDA}, .stream = (uintptr_t)handle};
  const gm_status status = t->ops->stream_adopt(t->device, &lent.head, out, out_kind, &t->err);
  if (status == GM_OK && *out_kind != GM_STREAM_FIFO) cuda_damage++;
  return status;
}

/* Every second one is an ordinary stream, which the legacy default stream waits for. */
static gm_status cuda_open_stream(cts *t, void **out, gm_stream_kind *out_kind, uint32_t slot) {
  CUstream *stream = &cuda_lender.streams[slot];
  cuda_check_current();
  if (cuda_calls.stream_create(stream, slot % 2 ? 0 : CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS) return GM_ERR_DRIVER;
  const gm_status status = cuda_lend(t, *stream, out, out_kind);
  if (status) cuda_calls.stream_destroy(*stream);
  return status;
}

/* gm has let go, and the stream still works. */
static void cuda_close_stream(cts *t, uint32_t slot) {
  (void)t;
  CUstream stream = cuda_lender.streams[slot];
  if (cuda_calls.stream_sync(stream) != CUDA_SUCCESS || cuda_calls.stream_destroy(stream) != CUDA_SUCCESS) {
    cuda_damage++;
  }
}

/* The first one is the legacy default stream, the others are ordinary ones. */
static gm_status cuda_open_default(cts *t, void **out, gm_stream_kind *out_kind, uint32_t slot) {
  if (slot) return cuda_open_stream(t, out, out_kind, slot);
  return cuda_lend(t, NULL, out, out_kind);
}

static const gm_native_stream *cuda_lent(uint32_t slot) {
  static gm_cuda_stream lent;
  lent = (gm_cuda_stream){.head = {sizeof lent, GM_API_CUDA}, .stream = (uintptr_t)cuda_lender.streams[slot]};
  return &lent.head;
}

static const gm_native_stream *cuda_lent_default(uint32_t slot) {
  static const gm_cuda_stream legacy = {.head = {sizeof legacy, GM_API_CUDA}, .stream = (uintptr_t)CU_STREAM_LEGACY};
  return slot ? cuda_lent(slot) : &legacy.head;
}

static void cuda_close_default(cts *t, uint32_t slot) {
  if (slot) cuda_close_stream(t, slot);
}

static void cuda_wait_at_gate(void *user) {
  while (sem_wait(user) != 0) {}
}

static const gm_native_point *cuda_engine_point(cts *t) {
  static gm_cuda_point lent;
  cuda_engine *engine = &cuda_lender;
  (void)t;
  cuda_end_point(engine);
  sem_init(&engine->gate, 0, 0);
  const bool good = cuda_calls.stream_create(&engine->gated, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS &&
                    cuda_calls.event_create(&engine->event, CU_EVENT_DISABLE_TIMING) == CUDA_SUCCESS &&
                    cuda_calls.host_call(engine->gated, cuda_wait_at_gate, &engine->gate) == CUDA_SUCCESS &&
                    cuda_calls.event_record(engine->event, engine->gated) == CUDA_SUCCESS;
  lent = (gm_cuda_point){.head = {sizeof lent, GM_API_CUDA}, .event = (uintptr_t)engine->event};
  return good ? &lent.head : NULL;
}

static bool cuda_engine_reach(cts *t) {
  (void)t;
  return sem_post(&cuda_lender.gate) == 0;
}

/* The simulated driver knows what is left of contexts, memory, streams and events. */
static uint32_t cuda_finish(cts *t) {
  char left[sizeof t->why];
  if (!cuda_damage && cuda_load(t) && cuda_calls.control && cuda_calls.control("leaks", left, sizeof left)) {
    snprintf(t->why, sizeof t->why, "left at the driver: %.500s", left);
    return 1;
  }
  if (cuda_damage) {
    snprintf(t->why, sizeof t->why, "%u times an object of the engine was not as it had been lent", cuda_damage);
  }
  return cuda_damage;
}

static bool cuda_check_native(cts *t, const gm_memory *memory, uint64_t offset, uint64_t bytes) {
  gm_cuda_memory native = {.head = {sizeof native, GM_API_CUDA}};
  unsigned int kind = 0;
  return cuda_load(t) && t->ops->memory_native(t->device, memory, offset, bytes, &native.head, &t->err) == GM_OK &&
         native.pointer == memory->address + offset && native.bytes == bytes &&
         (!t->mode->engine || /* a context is needed, and only the engine has one */
          cuda_calls.memory_info(&kind, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, native.pointer) == CUDA_SUCCESS);
}

const cts_mode cts_cuda_opened = {.backend = "cuda",
                                  .name = "opened",
                                  .ops = &gm__cuda_backend,
                                  .finish = cuda_finish,
                                  .native_memory_bytes = sizeof(gm_cuda_memory),
                                  .check_native = cuda_check_native};

static gm_status cuda_thread_stream(cts *t, void **out, gm_stream_kind *out_kind) {
  return cuda_lend(t, (CUstream)2, out, out_kind); /* CU_STREAM_PER_THREAD */
}

static const cts_engine cuda_adopted_engine = {.open = cuda_open,
                                               .open_stream = cuda_open_stream,
                                               .lent = cuda_lent,
                                               .close_stream = cuda_close_stream,
                                               .close = cuda_close,
                                               .point = cuda_engine_point,
                                               .reach = cuda_engine_reach,
                                               .thread_stream = cuda_thread_stream};

const cts_mode cts_cuda_adopted = {.backend = "cuda",
                                   .name = "adopted",
                                   .ops = &gm__cuda_backend,
                                   .engine = &cuda_adopted_engine,
                                   .finish = cuda_finish,
                                   .native_memory_bytes = sizeof(gm_cuda_memory),
                                   .check_native = cuda_check_native};

/* An engine that works on the legacy default stream, and on others that order themselves against it. */
static const cts_engine cuda_default_engine = {.open = cuda_open,
                                               .open_stream = cuda_open_default,
                                               .lent = cuda_lent_default,
                                               .close_stream = cuda_close_default,
                                               .close = cuda_close,
                                               .point = cuda_engine_point,
                                               .reach = cuda_engine_reach};

const cts_mode cts_cuda_default = {.backend = "cuda",
                                   .name = "default_stream",
                                   .ops = &gm__cuda_backend,
                                   .engine = &cuda_default_engine,
                                   .finish = cuda_finish,
                                   .native_memory_bytes = sizeof(gm_cuda_memory),
                                   .check_native = cuda_check_native};

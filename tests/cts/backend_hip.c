/* HIP devices: opened by gm, and lent by a small engine with streams of its own. The library is the one that
 * GM_HIP_LIBRARY names (the simulated one of the tests), else ROCm's. */
#include <dlfcn.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/hip/hip_abi.h"
#include "backends/hip/hip_backend.h"
#include "cts/modes.h"
#include "gm/native_hip.h"

typedef struct hip_api {
  hipError_t (*device_count)(int *out);
  hipError_t (*device_set)(int device);
  hipError_t (*device_get)(int *out);
  hipError_t (*last_error)(void);
  hipError_t (*stream_create)(hipStream_t *out, unsigned int flags);
  hipError_t (*stream_destroy)(hipStream_t stream);
  hipError_t (*stream_sync)(hipStream_t stream);
  hipError_t (*event_create)(hipEvent_t *out, unsigned int flags);
  hipError_t (*event_destroy)(hipEvent_t event);
  hipError_t (*event_record)(hipEvent_t event, hipStream_t stream);
  hipError_t (*host_call)(hipStream_t stream, void (*call)(void *), void *user);
  hipError_t (*memory_info)(hipPointerAttribute_t *out, const void *pointer);
  int (*control)(const char *command, char *reply, size_t capacity); /* NULL: a real library */
} hip_api;

/* The engine: what it made. Where there are two devices, its thread is on the other one than it lends. */
typedef struct hip_engine {
  int lent, home;
  hipStream_t streams[CTS_STREAMS_MAX];
  hipStream_t gated; /* work on it waits for `gate` */
  hipEvent_t event;
  sem_t gate;
} hip_engine;

static hip_api hip_calls;
static hip_engine hip_lender;
static uint32_t hip_damage; /* what did not survive being lent */

typedef struct hip_symbol {
  const char *name;
  size_t offset;
} hip_symbol;

static const hip_symbol hip_symbols[] = {
    {"hipGetDeviceCount", offsetof(hip_api, device_count)},
    {"hipSetDevice", offsetof(hip_api, device_set)},
    {"hipGetDevice", offsetof(hip_api, device_get)},
    {"hipPeekAtLastError", offsetof(hip_api, last_error)},
    {"hipStreamCreateWithFlags", offsetof(hip_api, stream_create)},
    {"hipStreamDestroy", offsetof(hip_api, stream_destroy)},
    {"hipStreamSynchronize", offsetof(hip_api, stream_sync)},
    {"hipEventCreateWithFlags", offsetof(hip_api, event_create)},
    {"hipEventDestroy", offsetof(hip_api, event_destroy)},
    {"hipEventRecord", offsetof(hip_api, event_record)},
    {"hipLaunchHostFunc", offsetof(hip_api, host_call)},
    {"hipPointerGetAttributes", offsetof(hip_api, memory_info)},
    {"simHipControl", offsetof(hip_api, control)},
};

static bool hip_load(cts *t) {
  static void *library;
  if (library) return true;
  const char *named = getenv("GM_HIP_LIBRARY");
  library = dlopen(named && *named ? named : "libamdhip64.so", RTLD_NOW | RTLD_LOCAL);
  bool good = library != NULL;
  for (size_t i = 0; good && i < sizeof hip_symbols / sizeof hip_symbols[0]; i++) {
    void *symbol = dlsym(library, hip_symbols[i].name);
    good = symbol || hip_symbols[i].offset == offsetof(hip_api, control);
    memcpy((char *)&hip_calls + hip_symbols[i].offset, &symbol, sizeof symbol);
  }
  return cts_check(t, good, "the engine loads libamdhip64.so", __FILE__, __LINE__);
}

static gm_status hip_open(cts *t, uint32_t index) {
  hip_engine *engine = &hip_lender;
  int count = 0;
  if (!hip_load(t)) return GM_ERR_UNAVAILABLE;
  *engine = (hip_engine){.lent = (int)index};
  if (hip_calls.device_count(&count) != hipSuccess) return GM_ERR_DRIVER;
  engine->home = count > 1 ? (engine->lent + 1) % count : engine->lent;
  if (hip_calls.device_set(engine->home) != hipSuccess) return GM_ERR_DRIVER;
  const gm_hip_device lent = {.head = {sizeof lent, GM_API_HIP}, .ordinal = engine->lent};
  return t->ops->device_adopt(t->driver, &lent.head, &t->device, &t->err);
}

/* Whatever gm did, this thread is on the engine's device, and no error of gm's is left in it. */
static void hip_check_thread(void) {
  int current = -1;
  if (hip_calls.last_error() != hipSuccess) hip_damage++;
  if (hip_calls.device_get(&current) != hipSuccess || current != hip_lender.home) hip_damage++;
}

static void hip_end_point(hip_engine *engine) {
  if (!engine->event) return;
  hip_calls.event_destroy(engine->event);
  hip_calls.stream_sync(engine->gated);
  hip_calls.stream_destroy(engine->gated);
  sem_destroy(&engine->gate);
  engine->event = NULL;
}

static void hip_close(cts *t) {
  (void)t;
  hip_check_thread();
  hip_calls.device_set(hip_lender.lent);
  hip_end_point(&hip_lender);
}

static gm_status hip_lend(cts *t, hipStream_t handle, void **out, gm_stream_kind *out_kind) {
  const gm_hip_stream lent = {.head = {sizeof lent, GM_API_HIP}, .stream = (uintptr_t)handle};
  const gm_status status = t->ops->stream_adopt(t->device, &lent.head, out, out_kind, &t->err);
  if (status == GM_OK && *out_kind != GM_STREAM_FIFO) hip_damage++;
  return status;
}

static hipError_t hip_make_stream(hipStream_t *out, unsigned int flags) {
  hip_calls.device_set(hip_lender.lent);
  const hipError_t code = hip_calls.stream_create(out, flags);
  hip_calls.device_set(hip_lender.home);
  return code;
}

/* Every second one is an ordinary stream, which the null stream waits for. */
static gm_status hip_open_stream(cts *t, void **out, gm_stream_kind *out_kind, uint32_t slot) {
  hipStream_t *stream = &hip_lender.streams[slot];
  hip_check_thread();
  if (hip_make_stream(stream, slot % 2 ? 0 : hipStreamNonBlocking) != hipSuccess) return GM_ERR_DRIVER;
  const gm_status status = hip_lend(t, *stream, out, out_kind);
  if (status) hip_calls.stream_destroy(*stream);
  return status;
}

/* gm has let go, and the stream still works. */
static void hip_close_stream(cts *t, uint32_t slot) {
  (void)t;
  hipStream_t stream = hip_lender.streams[slot];
  if (hip_calls.stream_sync(stream) != hipSuccess || hip_calls.stream_destroy(stream) != hipSuccess) hip_damage++;
}

/* The first one is the null stream, the others are ordinary ones. */
static gm_status hip_open_default(cts *t, void **out, gm_stream_kind *out_kind, uint32_t slot) {
  return slot ? hip_open_stream(t, out, out_kind, slot) : hip_lend(t, NULL, out, out_kind);
}

static const gm_native_stream *hip_lent(uint32_t slot) {
  static gm_hip_stream lent;
  lent = (gm_hip_stream){.head = {sizeof lent, GM_API_HIP}, .stream = (uintptr_t)hip_lender.streams[slot]};
  return &lent.head;
}

static const gm_native_stream *hip_lent_default(uint32_t slot) {
  static const gm_hip_stream null_stream = {.head = {sizeof null_stream, GM_API_HIP}};
  return slot ? hip_lent(slot) : &null_stream.head;
}

static void hip_close_default(cts *t, uint32_t slot) {
  if (slot) hip_close_stream(t, slot);
}

static void hip_wait_at_gate(void *user) {
  while (sem_wait(user) != 0) {}
}

static const gm_native_point *hip_engine_point(cts *t) {
  static gm_hip_point lent;
  hip_engine *engine = &hip_lender;
  (void)t;
  hip_calls.device_set(engine->lent);
  hip_end_point(engine);
  sem_init(&engine->gate, 0, 0);
  const bool good = hip_calls.stream_create(&engine->gated, hipStreamNonBlocking) == hipSuccess &&
                    hip_calls.event_create(&engine->event, hipEventDisableTiming) == hipSuccess &&
                    hip_calls.host_call(engine->gated, hip_wait_at_gate, &engine->gate) == hipSuccess &&
                    hip_calls.event_record(engine->event, engine->gated) == hipSuccess;
  hip_calls.device_set(engine->home);
  lent = (gm_hip_point){.head = {sizeof lent, GM_API_HIP}, .event = (uintptr_t)engine->event};
  return good ? &lent.head : NULL;
}

static bool hip_engine_reach(cts *t) {
  (void)t;
  return sem_post(&hip_lender.gate) == 0;
}

/* The simulated library knows what is left of memory, streams and events. */
static uint32_t hip_finish(cts *t) {
  char left[sizeof t->why];
  if (!hip_damage && hip_load(t) && hip_calls.control && hip_calls.control("leaks", left, sizeof left)) {
    snprintf(t->why, sizeof t->why, "left at the driver: %.500s", left);
    return 1;
  }
  if (hip_damage) {
    snprintf(t->why, sizeof t->why, "%u times the engine's thread or an object was not as it had been lent",
             hip_damage);
  }
  return hip_damage;
}

static bool hip_check_native(cts *t, const gm_memory *memory, uint64_t offset, uint64_t bytes) {
  gm_hip_memory native = {.head = {sizeof native, GM_API_HIP}};
  hipPointerAttribute_t told = {0};
  return hip_load(t) && t->ops->memory_native(t->device, memory, offset, bytes, &native.head, &t->err) == GM_OK &&
         native.pointer == memory->address + offset && native.bytes == bytes &&
         hip_calls.memory_info(&told, (const void *)(uintptr_t)native.pointer) == hipSuccess &&
         told.device == (int)t->info.index;
}

const cts_mode cts_hip_opened = {.backend = "hip",
                                 .name = "opened",
                                 .ops = &gm__hip_backend,
                                 .finish = hip_finish,
                                 .native_memory_bytes = sizeof(gm_hip_memory),
                                 .check_native = hip_check_native};

static gm_status hip_thread_stream(cts *t, void **out, gm_stream_kind *out_kind) {
  return hip_lend(t, (hipStream_t)2, out, out_kind); /* hipStreamPerThread */
}

static const cts_engine hip_adopted_engine = {.open = hip_open,
                                              .open_stream = hip_open_stream,
                                              .lent = hip_lent,
                                              .close_stream = hip_close_stream,
                                              .close = hip_close,
                                              .point = hip_engine_point,
                                              .reach = hip_engine_reach,
                                              .thread_stream = hip_thread_stream};

const cts_mode cts_hip_adopted = {.backend = "hip",
                                  .name = "adopted",
                                  .ops = &gm__hip_backend,
                                  .engine = &hip_adopted_engine,
                                  .finish = hip_finish,
                                  .native_memory_bytes = sizeof(gm_hip_memory),
                                  .check_native = hip_check_native};

static const cts_lack hip_old_lacks[] = {{CTS_VMM, "before HIP 6.0 the layout of its properties is not known"}, {0}};

/* The HIP backend on a runtime before 6.0. */
const cts_mode cts_hip_old = {.backend = "hip",
                              .name = "adopted_old",
                              .ops = &gm__hip_backend,
                              .lack = hip_old_lacks,
                              .engine = &hip_adopted_engine,
                              .finish = hip_finish,
                              .native_memory_bytes = sizeof(gm_hip_memory),
                              .check_native = hip_check_native};

/* An engine that works on the null stream, and on others that order themselves against it. */
static const cts_engine hip_default_engine = {.open = hip_open,
                                              .open_stream = hip_open_default,
                                              .lent = hip_lent_default,
                                              .close_stream = hip_close_default,
                                              .close = hip_close,
                                              .point = hip_engine_point,
                                              .reach = hip_engine_reach};

const cts_mode cts_hip_default = {.backend = "hip",
                                  .name = "default_stream",
                                  .ops = &gm__hip_backend,
                                  .engine = &hip_default_engine,
                                  .finish = hip_finish,
                                  .native_memory_bytes = sizeof(gm_hip_memory),
                                  .check_native = hip_check_native};

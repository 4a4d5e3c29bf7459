/* Opening, closing, counting and giving back: what every case stands on. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/discovery/backend_prepare.h"
#include "cts/cts.h"

static void *heap_alloc(void *user, size_t bytes, size_t align) {
  cts_heap *heap = user;
  if (atomic_fetch_add(&heap->calls, 1) + 1 == atomic_load(&heap->fail_at)) return NULL;
  void *ptr = NULL;
  if (align < sizeof ptr) align = sizeof ptr;
  if (posix_memalign(&ptr, align, bytes) != 0) return NULL;
  atomic_fetch_add(&heap->live_bytes, (long long)bytes);
  atomic_fetch_add(&heap->live_blocks, 1);
  return ptr;
}

static void heap_release(void *user, void *ptr, size_t bytes) {
  cts_heap *heap = user;
  atomic_fetch_sub(&heap->live_bytes, (long long)bytes);
  atomic_fetch_sub(&heap->live_blocks, 1);
  free(ptr);
}

static void heap_log(void *user, int level, const char *line) {
  cts_heap *heap = user;
  if (level > GM_LOG_WARN) return;
  atomic_fetch_add(&heap->warnings, 1);
  fprintf(cts_out, "  log: %s\n", line);
}

bool cts_check(cts *t, bool good, const char *what, const char *file, int line) {
  if (good) return true;
  const char *base = strrchr(file, '/');
  snprintf(t->why, sizeof t->why, "%s:%d: %s", base ? base + 1 : file, line, what);
  t->failed = true;
  return false;
}

bool cts_status(cts *t, gm_status got, gm_status want, const char *what, const char *file, int line) {
  if (got == want) return true;
  char text[560];
  snprintf(text, sizeof text, "%.180s is %s, not %s%s%.300s", what, gm_status_name(got), gm_status_name(want),
           got ? ": " : "", got ? t->err.message : "");
  return cts_check(t, false, text, file, line);
}

void cts_skip(cts *t, const char *why) {
  snprintf(t->why, sizeof t->why, "%s", why);
  t->skipped = true;
}

static uint32_t harness_has(const cts *t) {
  const gm_backend_ops *ops = t->mode->ops;
  const bool adopts = t->mode->engine != NULL;
  uint32_t has = CTS_CONTENTS | CTS_MEM_NATIVE | CTS_EACH_TYPE | CTS_CLOCK;
  if (ops->stream_create) has |= CTS_STREAMS;
  if (ops->point_record) has |= CTS_POINTS;
  if (ops->map) has |= CTS_MAP;
  if (ops->view_create) has |= CTS_VIEW;
  if (ops->commit) has |= CTS_COMMIT;
  if (ops->rect_to_device && ops->rect_to_host && ops->rect_copy) has |= CTS_RECT;
  if (ops->copy_many) has |= CTS_MANY;
  if (ops->host_register) has |= CTS_REGISTER;
  if (ops->vmm_reserve) has |= CTS_VMM;
  if (ops->device_adopt) has |= CTS_ADOPT;
  if (ops->peer_info) has |= CTS_PEER;
  if (ops->share_export) has |= CTS_SHARE;
  if (ops->managed_prefetch) has |= CTS_MANAGED;
  has |= adopts ? CTS_ENGINE : CTS_OPENS;
  if (t->mode->no_leave) has |= CTS_NO_LEAVE;
  if (t->mode->fences) has |= CTS_FENCES;
  for (const cts_lack *lack = t->mode->lack; lack && lack->need; lack++) has &= ~lack->need;
  return has;
}

static const char *harness_group(uint32_t need) {
  switch (need) {
    case CTS_STREAMS: return "the backend has no streams";
    case CTS_POINTS: return "the backend has no points";
    case CTS_MAP: return "the backend has no mapping";
    case CTS_VIEW: return "the backend has no views: a block is not an object of its own";
    case CTS_COMMIT: return "the backend has no commit";
    case CTS_RECT: return "the backend leaves boxed copies to gm";
    case CTS_MANY: return "the backend leaves copies of many to gm";
    case CTS_REGISTER: return "host memory cannot be registered";
    case CTS_VMM: return "there is no virtual memory";
    case CTS_ADOPT: return "there is nothing to adopt";
    case CTS_PEER: return "there is no peer access";
    case CTS_SHARE: return "nothing is shared between processes";
    case CTS_MANAGED: return "there is no managed memory";
    case CTS_ENGINE: return "the device is gm's own: no engine makes points on it";
    case CTS_FENCES: return "queues can wait for the engine's points";
    case CTS_NO_LEAVE: return "gm may submit to the device's queues";
    case CTS_OPENS: return "the device is the engine's: it cannot be opened again by index";
  }
  return "not there";
}

const char *cts_missing(const cts *t, uint32_t need) {
  const uint32_t missing = need & ~t->has;
  if (!missing) return NULL;
  for (const cts_lack *lack = t->mode->lack; lack && lack->need; lack++) {
    if (lack->need & missing) return lack->why;
  }
  return harness_group(missing & (~missing + 1));
}

/* GM_<BACKEND>_LIBRARY, GM_<BACKEND>_OPTIONS, as the registry reads them. */
static const char *harness_variable(const char *backend, const char *what) {
  char name[64];
  snprintf(name, sizeof name, "GM_%s_%s", backend, what);
  for (char *c = name; *c; c++) *c = (char)toupper((unsigned char)*c);
  return getenv(name);
}

bool cts_start(cts *t, const cts_mode *mode) {
  memset(t, 0, sizeof *t);
  t->mode = mode;
  t->ops = &t->prepared;
  if (gm__backend_prepare(mode->ops, &t->prepared, &t->err) != GM_OK) {
    snprintf(t->why, sizeof t->why, "the table is refused: %s", t->err.message);
    return false;
  }
  t->services = (gm_services){.alloc = heap_alloc, .release = heap_release, .log = heap_log, .user = &t->heap};
  t->host = (gm_backend_host){
      .struct_size = sizeof t->host, .services = &t->services, .options = mode->options ? mode->options : ""};
  t->host.library = harness_variable(mode->backend, "LIBRARY");
  const char *options = harness_variable(mode->backend, "OPTIONS");
  if (!mode->options && options) t->host.options = options;
  t->has = harness_has(t);
  gm_driver_info info = {.struct_size = sizeof info};
  gm_status status = t->ops->probe(&t->host, GM_PROBE_ACTIVE, &info, &t->err);
  if (status == GM_OK) status = t->ops->init(&t->host, &t->driver, &t->err);
  if (status == GM_OK) return true;
  snprintf(t->why, sizeof t->why, "%s: %s", gm_status_name(status), t->err.message);
  return false;
}

void cts_stop(cts *t, gm_close_mode mode) {
  t->ops->fini(t->driver, mode);
  t->driver = NULL;
}

/* Groups that a backend has and not every device of it. */
static uint32_t harness_not_here(const gm_device_info *info) {
  uint32_t missing = 0;
  if (!(info->capabilities & GM_CAP_VMM)) missing |= CTS_VMM;
  if (!(info->capabilities & GM_CAP_REGISTRATION)) missing |= CTS_REGISTER;
  if (!(info->capabilities & GM_CAP_PEER)) missing |= CTS_PEER;
  if (!(info->capabilities & GM_CAP_SHARE)) missing |= CTS_SHARE;
  if (!(info->capabilities & GM_CAP_MANAGED)) missing |= CTS_MANAGED;
  if (!(info->capabilities & GM_CAP_VIEW)) missing |= CTS_VIEW;
  return missing;
}

static gm_status harness_read_device(cts *t, uint32_t index) {
  t->info.struct_size = sizeof t->info;
  gm_status status = t->ops->device_info(t->driver, index, t->device, &t->info, &t->err);
  if (status == GM_OK) status = t->ops->memory_type_count(t->device, &t->type_count, &t->err);
  if (t->type_count > CTS_TYPES_MAX) t->type_count = CTS_TYPES_MAX;
  for (uint32_t i = 0; i < t->type_count && status == GM_OK; i++) {
    t->types[i].struct_size = sizeof t->types[i];
    status = t->ops->memory_type(t->device, i, &t->types[i], &t->err);
  }
  return status;
}

bool cts_open(cts *t, uint32_t index) {
  const gm_status opened =
      t->mode->engine ? t->mode->engine->open(t, index) : t->ops->device_open(t->driver, index, &t->device, &t->err);
  if (t->skipped) return false;
  t->has = harness_has(t);
  const bool good =
      cts_status(t, opened, GM_OK, "opening the device", __FILE__, __LINE__) &&
      cts_status(t, harness_read_device(t, index), GM_OK, "asking the device what it is", __FILE__, __LINE__);
  t->has &= ~harness_not_here(&t->info);
  return good;
}

void cts_close(cts *t, gm_close_mode mode) {
  cts_clean(t, mode);
  t->ops->device_close(t->device, mode);
  t->device = NULL;
  if (t->mode->engine && mode == GM_CLOSE_NORMAL) t->mode->engine->close(t);
}

void cts_close_last_stream(cts *t, gm_close_mode mode) {
  const uint32_t slot = --t->stream_count;
  t->ops->stream_close(t->device, t->streams[slot], mode);
  if (t->mode->engine && mode == GM_CLOSE_NORMAL) t->mode->engine->close_stream(t, slot);
}

/* Streams first: their work may use the memory. */
void cts_clean(cts *t, gm_close_mode mode) {
  while (t->stream_count) cts_close_last_stream(t, mode);
  while (t->memory_count) t->ops->memory_free(t->device, &t->memories[--t->memory_count], mode, NULL);
  if (t->mode->settle && mode == GM_CLOSE_NORMAL) t->mode->settle(t);
}

bool cts_memory(cts *t, uint32_t type, uint64_t bytes, gm_memory *out) {
  if (!cts_check(t, t->memory_count < CTS_MEMORIES, "the case takes too many memories", __FILE__, __LINE__))
    return false;
  const gm_memory_params params = {.struct_size = sizeof params, .type = type, .bytes = bytes};
  const gm_status status = t->ops->memory_alloc(t->device, &params, out, &t->err);
  if (!cts_status(t, status, GM_OK, "memory_alloc", __FILE__, __LINE__)) return false;
  t->memories[t->memory_count++] = *out;
  return true;
}

void cts_memory_free(cts *t, const gm_memory *memory) {
  for (uint32_t i = 0; i < t->memory_count; i++) {
    if (t->memories[i].handle != memory->handle) continue;
    const gm_status status = t->ops->memory_free(t->device, memory, GM_CLOSE_NORMAL, &t->err);
    cts_status(t, status, GM_OK, "memory_free", __FILE__, __LINE__);
    t->memories[i] = t->memories[--t->memory_count];
    return;
  }
}

uint64_t cts_room(const cts *t, uint32_t type, uint64_t bytes, uint32_t count) {
  const uint64_t heap = t->types[type].heap_bytes, most = t->types[type].max_alloc_bytes;
  const uint64_t each = heap ? heap / (count + 1) : bytes; /* a share is left for staging */
  const uint64_t room = bytes < each ? bytes : each;
  return most && most < room ? most : room;
}

bool cts_stream(cts *t, void **out) {
  *out = NULL;
  if (!(t->has & CTS_STREAMS)) return true;
  const uint32_t slot = t->stream_count;
  if (!cts_check(t, slot < CTS_STREAMS_MAX, "the case takes too many streams", __FILE__, __LINE__)) return false;
  const gm_status status = t->mode->engine ? t->mode->engine->open_stream(t, out, &t->kinds[slot], slot)
                                           : t->ops->stream_create(t->device, out, &t->kinds[slot], &t->err);
  if (!cts_status(t, status, GM_OK, "opening a stream", __FILE__, __LINE__)) return false;
  t->streams[slot] = *out;
  t->stream_count++;
  return true;
}

gm_status cts_order(cts *t, void *stream) {
  for (uint32_t i = 0; i < t->stream_count; i++) {
    if (t->streams[i] == stream && t->kinds[i] == GM_STREAM_FIFO) return GM_OK;
  }
  return stream ? t->ops->stream_barrier(t->device, stream, &t->err) : GM_OK;
}

gm_status cts_reach(cts *t, gm_backend_point *point) {
  if (!(t->has & CTS_POINTS)) return GM_OK;
  const gm_status status = t->ops->point_wait(t->device, point, UINT64_MAX, &t->err);
  t->ops->point_release(t->device, point, GM_CLOSE_NORMAL);
  *point = (gm_backend_point){0};
  return status;
}

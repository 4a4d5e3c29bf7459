/* Driver allocations: which memory type, and what is charged to whom. */
#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/saturate.h"
#include "core/device/answer.h"
#include "core/device/device.h"
#include "core/device/device_figures.h"
#include "core/device/selection.h"

/* The host reads a card's memory slowly, and host memory that it does not cache, too. */
static bool alloc_reads_slowly(const gm_memory_type *type, const gm__device_request *request) {
  return request->usage & GM_USAGE_READBACK && request->must_be != GM_DEVICE_LOCAL &&
         !(type->flags & (GM_MEMORY_HOST_CACHED | GM_MEMORY_HOST_POINTER));
}

/* May memory of this type serve the request? */
static bool alloc_type_fits(const gm_device *device, const gm_memory_type *type, const gm__device_request *request) {
  if (((type->flags & GM_MEMORY_MANAGED) != 0) != request->managed) return false;
  if (request->managed) return true;
  if (type->flags & GM_MEMORY_APART) return false;
  if ((request->flags & GM_HOST_VISIBLE) && !(type->flags & (GM_MEMORY_HOST_VISIBLE | GM_MEMORY_HOST_POINTER))) {
    return false;
  }
  if (request->share && !(type->share_kinds >> request->share & 1)) return false;
  bool local = (type->flags & GM_MEMORY_DEVICE_LOCAL) != 0;
  if (request->beside_device) return !local;
  return request->must_be != GM_DEVICE_LOCAL || device->info.unified || local;
}

bool gm__device_has_type(const gm_device *device, const gm__device_request *request) {
  uint32_t i = 0;
  while (i < device->type_count && !alloc_type_fits(device, &device->types[i], request)) i++;
  return i < device->type_count;
}

bool gm__device_has_host_types_only(const gm_device *device, const gm__device_request *request) {
  for (uint32_t i = 0; i < device->type_count; i++) {
    const bool host = (device->types[i].flags & GM_MEMORY_HOST_POINTER) != 0;
    if (!host && alloc_type_fits(device, &device->types[i], request)) return false;
  }
  return true;
}

bool gm__device_is_charged(const gm_device *device, const gm_memory *memory) {
  if (memory->wrapped) return false;
  if (device->info.unified || memory->type >= device->type_count) return true;
  return (device->types[memory->type].flags & (GM_MEMORY_DEVICE_LOCAL | GM_MEMORY_MANAGED)) != 0;
}

static gm_status alloc_too_large(const gm__device_request *request, uint64_t most, gm_error *err) {
  return gm__fail(err, GM_ERR_ALLOCATION_TOO_LARGE, 0, "memory_alloc",
                  "%llu bytes are more than the %llu that the driver allows for one allocation",
                  (unsigned long long)request->bytes, (unsigned long long)most);
}

static gm_status alloc_of_type(gm_device *device, uint32_t index, const gm__device_request *request, gm_memory *out,
                               gm_error *err) {
  uint64_t most =
      device->types[index].max_alloc_bytes ? device->types[index].max_alloc_bytes : device->info.max_alloc_bytes;
  if (most > 0 && request->bytes > most) return alloc_too_large(request, most, err);
  gm_memory_params params = {.struct_size = sizeof params,
                             .type = index,
                             .bytes = request->bytes,
                             .align = request->align,
                             .usage = request->usage ? request->usage : GM_USAGE_TRANSFER | GM_USAGE_STORAGE,
                             .flags = request->flags & GM_COMMIT ? GM_ALLOC_COMMIT : 0,
                             .share = request->share};
  const gm_status status = device->ops->memory_alloc(device->handle, &params, out, err);
  const gm__answer_asked asked = {"memory_alloc", request->bytes, index, .align = request->align};
  return status == GM_OK ? gm__answer_check_memory(device, &asked, out, err) : status;
}

/* A failure that another type of memory might not have. */
static bool alloc_falls_through(gm_status status) {
  return status == GM_ERR_OUT_OF_DEVICE_MEMORY || status == GM_ERR_ALLOCATION_TOO_LARGE ||
         status == GM_ERR_PINNED_LIMIT || status == GM_ERR_NOT_SUPPORTED;
}

static void alloc_charge(gm_device *device, const gm_memory *memory) {
  if (!gm__device_is_charged(device, memory)) return;
  gm__used_add(device->used, memory->bytes, false);
  atomic_fetch_add_explicit(&device->own_bytes, memory->bytes, memory_order_relaxed);
}

/* The failure that says most so far: being out of memory now says more than a bound. */
typedef struct alloc_failure {
  gm_status status;
  gm_error error;
} alloc_failure;

static void alloc_note(alloc_failure *told, gm_status status, const gm_error *error) {
  if (told->status == GM_OK || told->status == GM_ERR_ALLOCATION_TOO_LARGE) *told = (alloc_failure){status, *error};
}

/* Try the types that read slowly, or those that do not. True: that is the end of it, with memory or without. */
static bool alloc_try(gm_device *device, bool slow, const gm__device_request *request, gm_memory *memory,
                      alloc_failure *told) {
  for (uint32_t i = 0; i < device->type_count; i++) {
    const gm_memory_type *type = &device->types[i];
    if (alloc_reads_slowly(type, request) != slow || !alloc_type_fits(device, type, request)) continue;
    gm_error attempt = {.status = GM_OK};
    gm_status answer = alloc_of_type(device, i, request, memory, &attempt);
    if (answer == GM_OK) {
      told->status = GM_OK;
      return true;
    }
    alloc_note(told, answer, &attempt);
    if (!alloc_falls_through(answer)) return true;
  }
  return false;
}

gm_status gm__device_alloc(gm_device *device, const gm__device_request *request, gm_memory *out, gm_error *err) {
  gm_memory memory = {.handle = 0};
  alloc_failure told = {.status = GM_OK};
  bool ended = alloc_try(device, false, request, &memory, &told) || alloc_try(device, true, request, &memory, &told);
  if (ended && told.status == GM_OK) {
    alloc_charge(device, &memory);
    *out = memory;
    return GM_OK;
  }
  if (told.status == GM_OK) {
    return gm__fail(err, GM_ERR_NOT_SUPPORTED, 0, "memory_alloc", "%s has no memory of the kind that was asked for",
                    device->info.name);
  }
  if (told.status == GM_ERR_DEVICE_LOST) atomic_store(&device->lost, true);
  if (err) *err = told.error;
  return told.status;
}

void gm__device_leave(gm_device *device, uint64_t bytes) {
  gm__used_leave(device->used, bytes);
  atomic_fetch_sub_explicit(&device->own_bytes, bytes, memory_order_relaxed);
}

gm_status gm__device_free(gm_device *device, const gm_memory *memory, gm_error *err) {
  if (gm__context_forked(device->ctx)) return device->ops->memory_free(device->handle, memory, GM_CLOSE_ABANDON, err);
  const bool charged = gm__device_is_charged(device, memory);
  const uint64_t bytes = memory->bytes;
  if (charged) gm__device_leave(device, bytes);
  const gm_status status = device->ops->memory_free(device->handle, memory, GM_CLOSE_NORMAL, err);
  if (charged) gm__used_left(device->used, bytes);
  return status;
}

void gm__device_note_pooled(gm_device *device, int64_t bytes) {
  if (bytes >= 0) {
    gm__used_add(device->used, (uint64_t)bytes, true);
    atomic_fetch_add_explicit(&device->pooled_bytes, (uint64_t)bytes, memory_order_relaxed);
  } else {
    gm__used_sub(device->used, (uint64_t)-bytes, true);
    atomic_fetch_sub_explicit(&device->pooled_bytes, (uint64_t)-bytes, memory_order_relaxed);
  }
}

/* Reading the figures costs some hundred microseconds of files and driver calls; a burst of allocations shares one
 * reading. */
enum { ROOM_MAX_AGE_NS = 10 * 1000 * 1000 };

/* What was free for gm, and what gm held and still holds: what comes or goes while the figures are read counts as not
 * held, because they may count it as free. */
static struct gm__room_reading room_read(gm_device *device, bool managed) {
  struct gm__room_reading reading = {.at_ns = gm__now_ns()};
  gm_memory_info memory = {.struct_size = sizeof memory};
  const gm__figures_subject subject = {
      .driver = device->driver, .info = &device->info, .device = device->handle, .managed = managed};
  const uint64_t departures = gm__used_departures(device->used), used = gm__used_total(device->used);
  if (gm__device_figures(&subject, &memory, NULL) != GM_OK) return reading;
  reading.bytes = UINT64_MAX;
  if (memory.total_bytes == GM_UNKNOWN_BYTES || memory.free_bytes == GM_UNKNOWN_BYTES) return reading;
  double fraction = gm__config_fraction(device->ctx, "memory_fraction");
  reading.bytes = gm__sub_sat(gm__headroom(&memory, fraction, memory.margin_bytes), memory.reclaimable_bytes);
  reading.used_bytes = gm__sub_sat(used, gm__used_departures(device->used) - departures);
  return reading;
}

/* What is left of it now. What is on its way back is nobody's room until the driver has it. */
static uint64_t room_now(const gm_device *device, const struct gm__room_reading *reading) {
  if (reading->bytes == UINT64_MAX) return UINT64_MAX;
  return gm__sub_sat(gm__add_sat(reading->bytes, reading->used_bytes), gm__used_most(device->used));
}

uint64_t gm__device_room(gm_device *device, bool read_now) {
  gm__mutex_lock(&device->lock);
  struct gm__room_reading reading = device->room;
  gm__mutex_unlock(&device->lock);
  if (read_now || reading.at_ns == 0 || gm__now_ns() - reading.at_ns > ROOM_MAX_AGE_NS) {
    reading = room_read(device, false);
    gm__mutex_lock(&device->lock);
    device->room = reading;
    gm__mutex_unlock(&device->lock);
  }
  return room_now(device, &reading);
}

uint64_t gm__device_room_managed(gm_device *device) {
  const struct gm__room_reading reading = room_read(device, true);
  return room_now(device, &reading);
}

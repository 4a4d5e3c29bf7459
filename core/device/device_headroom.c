#include "core/device/device_headroom.h"

#include <inttypes.h>
#include <stdio.h>

#include "core/base/cancel.h"
#include "core/base/clock.h"
#include "core/base/saturate.h"
#include "core/context/config.h"
#include "core/discovery/device_figures.h"
#include "core/figures/memory_info.h"
#include "core/host/task.h"
#include "gm/size.h"

/* Invariants. A reading is of figures alone, so pools with other limits share it. A device on which no limit and no
 * promise holds is not asked for figures. The engine of an adopted device has planned its memory: there a key of the
 * configuration holds only if somebody has set it. */

/* Reading the figures costs some hundred microseconds of files and driver calls; a burst of allocations shares one
 * reading. */
enum { HEADROOM_MAX_AGE_NS = 10 * 1000 * 1000 };

/* ---- limits ---- */

static struct gm__headroom_bounds headroom_read_configured(const gm_device *device) {
  struct gm__headroom_bounds bounds = {.at_ns = gm__now_ns(), .fraction = 1, .min_free_bytes = GM_NO_LIMIT};
  bounds.alone = !gm__config_holds(device->ctx, "reserve.share", device->adopted);
  if (gm__config_holds(device->ctx, "memory_fraction", device->adopted)) {
    bounds.fraction = gm__config_fraction(device->ctx, "memory_fraction");
  }
  if (gm__config_holds(device->ctx, "min_free_bytes", device->adopted)) {
    bounds.min_free_bytes = gm__config_u64(device->ctx, "min_free_bytes");
    bounds.auto_free = bounds.min_free_bytes == UINT64_MAX;
  }
  return bounds;
}

/* What the configuration says, at most 10 ms ago. */
static struct gm__headroom_bounds headroom_configured(gm_device *device, bool read_now) {
  gm__mutex_lock(&device->lock);
  struct gm__headroom_bounds bounds = device->headroom_bounds;
  gm__mutex_unlock(&device->lock);
  if (!read_now && bounds.at_ns && gm__now_ns() - bounds.at_ns <= HEADROOM_MAX_AGE_NS) return bounds;
  bounds = headroom_read_configured(device);
  gm__mutex_lock(&device->lock);
  device->headroom_bounds = bounds;
  gm__mutex_unlock(&device->lock);
  return bounds;
}

void gm__device_headroom_renew(gm_device *device) {
  gm__mutex_lock(&device->lock);
  device->headroom_bounds.at_ns = 0;
  gm__mutex_unlock(&device->lock);
}

static struct gm__headroom_bounds headroom_bounds(gm_device *device, const gm__limits *limits, bool read_now) {
  struct gm__headroom_bounds bounds = headroom_configured(device, read_now);
  if (limits && limits->memory_fraction > 0) bounds.fraction = limits->memory_fraction;
  if (limits && limits->min_free_bytes) {
    bounds.min_free_bytes = limits->min_free_bytes == GM_NO_BYTES ? 0 : limits->min_free_bytes;
    bounds.auto_free = false;
  }
  return bounds;
}

/* ---- promises ---- */

/* What is promised now, seen by who asks for memory. */
typedef struct headroom_promises {
  uint64_t own;       /* to the asker */
  uint64_t of_us;     /* by this process to others than the asker */
  uint64_t of_others; /* by other processes */
} headroom_promises;

/* `limits`: of the pool that asks. A look at the device's figures looks at what other processes promise, too. */
static headroom_promises headroom_promised(const gm_device *device, const struct gm__headroom_bounds *bounds,
                                           const gm__limits *limits) {
  const uint64_t all = gm__card_promised(device->card);
  const uint64_t own = limits ? atomic_load_explicit(&limits->promised_bytes, memory_order_relaxed) : 0;
  const bool heeds = !bounds->alone || (limits && limits->heeds_others);
  return (headroom_promises){own, gm__sub_sat(all, own), heeds ? gm__card_promised_elsewhere(device->card) : 0};
}

static headroom_promises headroom_promised_now(gm_device *device, const gm__limits *limits) {
  const struct gm__headroom_bounds bounds = headroom_configured(device, false);
  return headroom_promised(device, &bounds, limits);
}

gm__card_aim gm__device_aim(gm_device *device) {
  return device->adopted && headroom_configured(device, false).alone ? GM__CARD_TAKE_ALONE : GM__CARD_TAKE;
}

uint64_t gm__device_promised(gm_device *device, const gm__limits *limits) {
  const headroom_promises promises = headroom_promised_now(device, limits);
  return gm__add_sat(promises.of_us, promises.of_others);
}

uint64_t gm__device_promised_elsewhere(gm_device *device, const gm__limits *limits) {
  return headroom_promised_now(device, limits).of_others;
}

const char *gm__device_holder_text(gm_device *device, const gm__limits *limits, char *out) {
  const uint64_t most = atomic_load_explicit(&device->card->most, memory_order_relaxed);
  const uint32_t pid = atomic_load_explicit(&device->card->most_holder, memory_order_relaxed);
  char name[GM__TASK_NAME];
  out[0] = 0;
  if (!gm__device_promised_elsewhere(device, limits)) return out;
  if (!pid) {
    snprintf(out, GM__HOLDER_TEXT, ", %" PRIu64 " of them another process", most);
  } else if (gm__task_name(NULL, pid, name)) {
    snprintf(out, GM__HOLDER_TEXT, ", %" PRIu64 " of them process %" PRIu32 " (%s)", most, pid, name);
  } else {
    snprintf(out, GM__HOLDER_TEXT, ", %" PRIu64 " of them process %" PRIu32, most, pid);
  }
  return out;
}

static bool headroom_is_free(const struct gm__headroom_bounds *bounds, const headroom_promises *promises) {
  return bounds->fraction >= 1 && bounds->min_free_bytes == GM_NO_LIMIT && !bounds->auto_free && !promises->of_us &&
         !promises->of_others;
}

const char *gm__device_promise_advice(gm_device *device, const gm__limits *limits) {
  return headroom_promised_now(device, limits).of_us ? "cancel one" : "wait for that process";
}

/* ---- figures ---- */

/* Reads what is free, and what gm holds. `look`: at what other processes promise, too. Bytes that come or go while the
 * figures are read count as not held, because the figures may count them as free. */
static struct gm__headroom_reading headroom_read(gm_device *device, bool managed, bool look) {
  GM__UNCANCELLED();
  struct gm__headroom_reading reading = {.at_ns = gm__now_ns()};
  gm_memory_info memory = {.struct_size = sizeof memory};
  const gm__figures_subject subject = {
      .driver = device->driver, .info = &device->info, .device = device->handle, .managed = managed, .no_look = !look};
  const uint64_t departures = gm__card_departures(device->card), used = gm__card_used(device->card);
  reading.failed = gm__device_figures(&subject, &memory, NULL) != GM_OK;
  reading.total_bytes = memory.total_bytes;
  reading.free_bytes = memory.free_bytes;
  reading.held_bytes = memory.used_by_us_bytes;
  reading.used_bytes = gm__sub_sat(used, gm__card_departures(device->card) - departures);
  return reading;
}

/* What the limits leave of a reading now, less what others are promised. Of what the asker is promised they get
 * nothing, whatever an old look at their promises says. Bytes on their way back are nobody's until the driver has them.
 * A share needs no figure of what is free: a driver does not tell it during a capture. */
static uint64_t headroom_now(const gm_device *device, const struct gm__headroom_reading *reading,
                             const struct gm__headroom_bounds *bounds, const headroom_promises *promises) {
  const uint64_t total = reading->total_bytes, most = gm__card_used_most(device->card);
  const bool known = reading->free_bytes != GM_UNKNOWN_BYTES;
  const bool promised = promises->of_us || promises->of_others;
  const bool by_free = known && (bounds->auto_free || bounds->min_free_bytes != GM_NO_LIMIT || promised);
  if (reading->failed) return 0;
  if (total == GM_UNKNOWN_BYTES || (!by_free && bounds->fraction >= 1 && !promised)) return UINT64_MAX;
  const uint64_t free_bytes = gm__sub_sat(gm__add_sat(reading->free_bytes, reading->used_bytes), most);
  gm_memory_info memory = {
      .total_bytes = total,
      .free_bytes = by_free ? free_bytes : total,
      .used_by_us_bytes = gm__sub_sat(gm__add_sat(reading->held_bytes, most), reading->used_bytes)};
  uint64_t keep = bounds->auto_free ? gm__margin_auto(total) : bounds->min_free_bytes;
  if (!by_free || keep == GM_NO_LIMIT) keep = 0;
  const uint64_t within = gm__headroom(&memory, bounds->fraction, keep);
  memory.promised_bytes = promises->of_us;
  memory.promised_by_others_bytes = promises->of_others;
  return gm__min(within, gm__max(gm__headroom(&memory, bounds->fraction, keep), promises->own));
}

uint64_t gm__device_headroom(gm_device *device, const gm__limits *limits, bool read_now) {
  const struct gm__headroom_bounds bounds = headroom_bounds(device, limits, read_now);
  headroom_promises promises = headroom_promised(device, &bounds, limits);
  if (headroom_is_free(&bounds, &promises)) return UINT64_MAX;
  gm__mutex_lock(&device->lock);
  struct gm__headroom_reading reading = device->headroom;
  gm__mutex_unlock(&device->lock);
  if (read_now || reading.at_ns == 0 || gm__now_ns() - reading.at_ns > HEADROOM_MAX_AGE_NS) {
    reading = headroom_read(device, false, read_now);
    gm__mutex_lock(&device->lock);
    device->headroom = reading;
    gm__mutex_unlock(&device->lock);
    promises = headroom_promised(device, &bounds, limits);
  }
  return headroom_now(device, &reading, &bounds, &promises);
}

uint64_t gm__device_headroom_managed(gm_device *device, const gm__limits *limits) {
  const struct gm__headroom_bounds bounds = headroom_bounds(device, limits, true);
  const headroom_promises none = {0, 0, 0};
  if (headroom_is_free(&bounds, &none)) return UINT64_MAX;
  const struct gm__headroom_reading reading = headroom_read(device, true, false);
  return headroom_now(device, &reading, &bounds, &none);
}

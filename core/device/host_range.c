#include "core/device/host_range.h"

#include <inttypes.h>

#include "core/base/alloc.h"
#include "core/base/cancel.h"
#include "core/base/error.h"
#include "core/device/device.h"

/* Invariants, under the device's range_lock: ranges in the list do not overlap. A range enters the list before the
 * driver is asked, and leaves it after the driver has let go. So no thread sees a range that the driver knows and gm
 * does not. No lock is held while the driver works. */

struct gm__host_range {
  struct gm__host_range *next;
  uintptr_t begin;
  uint64_t bytes;
  bool settled; /* the driver has it, and nobody is about to give it back */
};

static gm__host_range *range_overlapping(const gm_device *device, uintptr_t begin, uint64_t bytes) {
  gm__host_range *range = device->host_ranges;
  while (range && (range->begin > begin + (bytes - 1) || begin > range->begin + (range->bytes - 1)))
    range = range->next;
  return range;
}

static gm_status range_enter(gm_device *device, gm__host_range *fresh, gm_error *err) {
  gm__mutex_lock(&device->range_lock);
  const gm__host_range *other = range_overlapping(device, fresh->begin, fresh->bytes);
  const gm__host_range known = other ? *other : (gm__host_range){.next = NULL};
  if (!other) {
    fresh->next = device->host_ranges;
    device->host_ranges = fresh;
  }
  gm__mutex_unlock(&device->range_lock);
  if (!other) return GM_OK;
  return gm__bad_argument(err, "gm_host_register",
                          "the range overlaps %" PRIu64 " bytes at 0x%" PRIxPTR ", which are registered already",
                          known.bytes, known.begin);
}

bool gm__host_range_has(gm_device *device, const void *at, uint64_t bytes) {
  const uintptr_t begin = (uintptr_t)at;
  gm__mutex_lock(&device->range_lock);
  const gm__host_range *range = device->host_ranges;
  while (range && !(begin >= range->begin && begin - range->begin < range->bytes)) range = range->next;
  const bool has = range && range->settled && bytes <= range->bytes - (begin - range->begin);
  gm__mutex_unlock(&device->range_lock);
  return has;
}

/* Takes the range out of the list and forgets it. In a forked child no thread holds the lock. */
static void range_drop(gm_device *device, gm__host_range *range, bool forked) {
  if (!forked) gm__mutex_lock(&device->range_lock);
  gm__host_range **at = &device->host_ranges;
  while (*at != range) at = &(*at)->next;
  *at = range->next;
  if (!forked) gm__mutex_unlock(&device->range_lock);
  gm__release(gm__context_services(device->ctx), range, sizeof *range);
}

static void range_set_settled(gm_device *device, gm__host_range *range, bool settled) {
  gm__mutex_lock(&device->range_lock);
  range->settled = settled;
  gm__mutex_unlock(&device->range_lock);
}

static gm__host_range *range_new(const gm_device *device, const char *op, gm_error *err) {
  gm__host_range *range = gm__alloc(gm__context_services(device->ctx), sizeof *range);
  if (!range) gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, op, "no host memory for the record of a range");
  return range;
}

/* The driver's answer for a range in the list. */
static gm_status range_answered(gm_device *device, gm__host_range *range, gm_status status) {
  if (status != GM_OK) {
    range_drop(device, range, false);
    return status;
  }
  atomic_fetch_add(&device->children, 1);
  range_set_settled(device, range, true);
  return GM_OK;
}

gm_status gm_host_register(gm_device *device, void *pointer, uint64_t bytes, gm_error *err) {
  GM__UNCANCELLED();
  static const char op[] = "gm_host_register";
  gm_status status = gm__device_check(device, op, err);
  if (status != GM_OK) return status;
  if (!pointer || !bytes) return gm__bad_argument(err, op, "`%s` is 0", pointer ? "bytes" : "pointer");
  if (bytes - 1 > UINTPTR_MAX - (uintptr_t)pointer) {
    return gm__bad_argument(err, op, "%" PRIu64 " bytes reach beyond the last address", bytes);
  }
  gm__host_range *range = range_new(device, op, err);
  if (!range) return GM_ERR_OUT_OF_HOST_MEMORY;
  *range = (gm__host_range){.begin = (uintptr_t)pointer, .bytes = bytes};
  status = range_enter(device, range, err);
  if (status != GM_OK) {
    gm__release(gm__context_services(device->ctx), range, sizeof *range);
    return status;
  }
  return range_answered(device, range,
                        gm__error_of(op, device->ops->host_register(device->handle, pointer, bytes, err), err));
}

/* The driver's answer is input. */
static gm_status range_check_fresh(const gm_device *device, const void *host, uint64_t bytes, gm_error *err) {
  const uintptr_t begin = (uintptr_t)host;
  if (begin && begin % 4096 == 0 && bytes - 1 <= UINTPTR_MAX - begin) return GM_OK;
  return gm__fail(err, GM_ERR_DRIVER, "host_alloc", "backend %s answered success with an address that cannot be",
                  device->info.backend);
}

gm_status gm__host_range_alloc(gm_device *device, uint64_t bytes, void **out, gm_error *err) {
  gm__host_range *range = range_new(device, "host_alloc", err);
  void *host = NULL;
  if (!range) return GM_ERR_OUT_OF_HOST_MEMORY;
  gm_status status = device->ops->host_alloc(device->handle, bytes, &host, err);
  const bool came = status == GM_OK;
  if (came) status = range_check_fresh(device, host, bytes, err);
  *range = (gm__host_range){.begin = (uintptr_t)host, .bytes = bytes};
  if (status == GM_OK) status = range_enter(device, range, err);
  if (status != GM_OK) {
    if (came) device->ops->host_unregister(device->handle, host, GM_CLOSE_NORMAL, NULL);
    gm__release(gm__context_services(device->ctx), range, sizeof *range);
    return status;
  }
  *out = host;
  return range_answered(device, range, GM_OK);
}

/* The range that begins there, for the one caller who gives it back; NULL: there is none. */
static gm__host_range *range_claim(gm_device *device, uintptr_t begin, bool forked) {
  if (!forked) gm__mutex_lock(&device->range_lock);
  gm__host_range *range = device->host_ranges;
  while (range && !(range->begin == begin && range->settled)) range = range->next;
  if (range) range->settled = false;
  if (!forked) gm__mutex_unlock(&device->range_lock);
  return range;
}

void gm__host_range_forget(gm_device *device, const void *pointer) {
  const bool forked = gm__context_forked(device->ctx);
  gm__host_range *range = range_claim(device, (uintptr_t)pointer, forked);
  if (!range) return;
  range_drop(device, range, forked);
  atomic_fetch_sub(&device->children, 1);
}

gm_status gm_host_unregister(gm_device *device, void *pointer, gm_error *err) {
  GM__UNCANCELLED();
  static const char op[] = "gm_host_unregister";
  if (!device || !gm__object_is(&device->head, GM__KIND_DEVICE)) return gm__device_check(device, op, err);
  const bool forked = gm__context_forked(device->ctx);
  gm__host_range *range = range_claim(device, (uintptr_t)pointer, forked);
  if (!range) {
    return gm__fail(err, GM_ERR_NOT_FOUND, op, "no range that was registered on this device begins at `pointer`");
  }
  const gm_status status = gm__error_of(
      op, device->ops->host_unregister(device->handle, pointer, forked ? GM_CLOSE_ABANDON : GM_CLOSE_NORMAL, err), err);
  if (status != GM_OK && status != GM_ERR_DEVICE_LOST) {
    range_set_settled(device, range, true);
    return status;
  }
  range_drop(device, range, forked);
  atomic_fetch_sub(&device->children, 1);
  return status;
}

#include "backends/cpu/cpu_pinned.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "backends/cpu/cpu_entries.h"
#include "core/base/alloc.h"
#include "core/base/error.h"
#include "core/base/limits.h"

/* mlock works on pages and does not count. Two ranges may share their first or last page, so the last range that
 * touches a page unlocks it. Ranges never overlap, so only the pages at both ends can be shared. */
typedef struct gm__cpu_pinned {
  struct gm__cpu_pinned *next;
  uintptr_t begin, end;
} gm__cpu_pinned;

static uintptr_t pinned_page(uintptr_t address) { return address & ~((uintptr_t)sysconf(_SC_PAGESIZE) - 1); }

static bool pinned_touches(const gm__cpu_pinned *list, uintptr_t begin, uintptr_t end) {
  for (; list; list = list->next) {
    if (list->begin < end && begin < list->end) return true;
  }
  return false;
}

/* Unlock the pages of `range` that no range of the list touches. `range` has left the list. REQUIRES: device lock. */
static void pinned_unlock(const gm__cpu_device *device, const gm__cpu_pinned *range) {
  const gm__cpu_pinned *others = device->pinned;
  const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
  uintptr_t begin = pinned_page(range->begin), end = pinned_page(range->end - 1) + page;
  if (pinned_touches(others, begin, begin + page)) begin += page;
  if (begin < end && pinned_touches(others, end - page, end)) end -= page;
  if (begin < end) device->sys->munlock((void *)begin, end - begin);
}

static gm_status pinned_refused(gm_error *err, int code, uint64_t bytes) {
  if (code == EPERM || code == ENOMEM || code == EAGAIN) {
    return gm__fail_native(
        err, GM_ERR_PINNED_LIMIT, code, "mlock",
        "the system refuses to lock %llu bytes: %s; RLIMIT_MEMLOCK is %llu bytes, or the range is not mapped",
        (unsigned long long)bytes, strerror(code), (unsigned long long)gm__limit_of(NULL, GM__LIMIT_LOCKED));
  }
  return gm__fail_native(err, GM_ERR_SYSTEM, code, "mlock", "%llu bytes: %s", (unsigned long long)bytes,
                         strerror(code));
}

static gm_status pinned_lock(gm__cpu_device *device, gm__cpu_pinned *range, gm_error *err) {
  if (pinned_touches(device->pinned, range->begin, range->end)) {
    return gm__bad_argument(err, "host_register", "`pointer`: the range overlaps one that is registered");
  }
  if (device->sys->mlock((void *)range->begin, range->end - range->begin) != 0) {
    const int code = errno;
    pinned_unlock(device, range); /* mlock may have locked the first part */
    return pinned_refused(err, code, range->end - range->begin);
  }
  range->next = device->pinned;
  device->pinned = range;
  return GM_OK;
}

gm_status gm__cpu_host_register(void *device, void *pointer, uint64_t bytes, gm_error *err) {
  gm__cpu_device *self = device;
  const uintptr_t begin = (uintptr_t)pointer;
  if (!pointer || !bytes || bytes > UINTPTR_MAX - begin) {
    return gm__bad_argument(err, "host_register", "`pointer` and `bytes` must be a range of memory");
  }
  gm__cpu_pinned *range = gm__alloc(self->services, sizeof *range);
  if (!range) return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, "host_register", "no host memory for the record");
  range->begin = begin;
  range->end = begin + bytes;
  gm__mutex_lock(&self->lock);
  const gm_status status = pinned_lock(self, range, err);
  gm__mutex_unlock(&self->lock);
  if (status) gm__release(self->services, range, sizeof *range);
  return status;
}

static gm__cpu_pinned *pinned_take(gm__cpu_device *device, uintptr_t begin) {
  for (gm__cpu_pinned **link = &device->pinned; *link; link = &(*link)->next) {
    gm__cpu_pinned *range = *link;
    if (range->begin != begin) continue;
    *link = range->next;
    return range;
  }
  return NULL;
}

/* A forked child has no locked pages: it does not inherit mlock. A thread that is not there may hold its mutex. */
gm_status gm__cpu_host_unregister(void *device, void *pointer, gm_close_mode mode, gm_error *err) {
  gm__cpu_device *self = device;
  if (mode == GM_CLOSE_NORMAL) gm__mutex_lock(&self->lock);
  gm__cpu_pinned *range = pinned_take(self, (uintptr_t)pointer);
  if (range && mode == GM_CLOSE_NORMAL) pinned_unlock(self, range);
  if (mode == GM_CLOSE_NORMAL) gm__mutex_unlock(&self->lock);
  if (!range) return gm__fail(err, GM_ERR_NOT_FOUND, "host_unregister", "`pointer` is not registered");
  gm__release(self->services, range, sizeof *range);
  return GM_OK;
}

void gm__cpu_pinned_clear(gm__cpu_device *device, gm_close_mode mode) {
  while (device->pinned) gm__cpu_host_unregister(device, (void *)device->pinned->begin, mode, NULL);
}

#include "backends/cpu/cpu_vmm.h"

#include <errno.h>
#include <string.h>

#include "backends/cpu/cpu_entries.h"
#include "backends/cpu/cpu_memfd.h"
#include "backends/cpu/cpu_movable.h"
#include "backends/cpu/cpu_pages.h"
#include "backends/shared/plain.h"
#include "core/base/alloc.h"
#include "core/base/error.h"
#include "core/base/limits.h"

/* Invariants: under the vmm lock, `reserved` and `mapped` of the device agree with the address space. A mapped piece
 * leaves `mapped` as a whole, so unmapping needs no host memory. Mapped private pages are in `movable` too. */

uint64_t gm__cpu_vmm_granule(void) {
  const uint64_t page = gm__cpu_page();
  return page > GM__CPU_HUGE_PAGE ? page : GM__CPU_HUGE_PAGE;
}

void gm__cpu_vmm_init(gm__cpu_device *device) {
  gm__mutex_init(&device->vmm_lock, GM__RANK_STAGING);
  gm__cpu_spans_init(&device->reserved, device->services);
  gm__cpu_spans_init(&device->mapped, device->services);
  gm__map_init(&device->movable, device->services);
}

/* The number of mappings of a process is limited (vm.max_map_count), and unmapping needs one more for a moment. So gm
 * keeps three mappings in reserve before it maps: three pages, of which the middle one has another protection. */
static bool vmm_spare_take(gm__cpu_device *device) {
  const uint64_t page = gm__cpu_page();
  if (device->vmm_spare) return true;
  unsigned char *begin = gm__cpu_pages_map(device->sys, GM__CPU_PAGES_ADDRESSES, 3 * page, page);
  if (!begin) return false;
  if (device->sys->mprotect(begin + page, page, PROT_READ) == 0) {
    device->vmm_spare = begin;
    return true;
  }
  const int code = errno;
  device->sys->munmap(begin, 3 * page);
  errno = code;
  return false;
}

/* Give the reserve up. False: there was none, so trying again is useless. */
static bool vmm_spare_give(gm__cpu_device *device) {
  unsigned char *begin = device->vmm_spare;
  if (!begin) return false;
  device->vmm_spare = NULL;
  device->sys->munmap(begin, 3 * gm__cpu_page());
  return true;
}

/* Release the records whose handles are gone and whose mappings are still there. */
static void vmm_clear_movable(gm__cpu_device *device) {
  size_t cursor = 0;
  uint64_t address, record;
  while (gm__map_next(&device->movable, &cursor, &address, &record)) {
    gm__cpu_physical *physical = (gm__cpu_physical *)(uintptr_t)record;
    if (physical->destroyed) gm__release(device->services, physical, sizeof *physical);
  }
}

/* In a forked child gm__cpu_vmm_destroy has released the records. */
void gm__cpu_vmm_clear(gm__cpu_device *device, gm_close_mode mode) {
  vmm_spare_give(device);
  if (mode == GM_CLOSE_NORMAL) vmm_clear_movable(device);
  gm__map_clear(&device->movable);
  for (size_t i = 0; i < device->reserved.count; i++) {
    const gm__cpu_span span = device->reserved.all[i];
    device->sys->munmap((void *)(uintptr_t)span.begin, span.end - span.begin);
  }
  gm__cpu_spans_clear(&device->reserved);
  gm__cpu_spans_clear(&device->mapped);
}

static gm_status vmm_check_bytes(uint64_t bytes, gm_error *err) {
  const uint64_t granule = gm__cpu_vmm_granule();
  if (bytes == 0 || bytes > GM__CPU_TOO_LARGE || bytes % granule) {
    return gm__bad_argument(err, "cpu vmm", "`bytes` must be 1 to 2^62 and a multiple of %llu, is %llu",
                            (unsigned long long)granule, (unsigned long long)bytes);
  }
  return GM_OK;
}

static gm_status vmm_check_span(uint64_t address, uint64_t bytes, gm__cpu_span *out, gm_error *err) {
  const gm_status status = vmm_check_bytes(bytes, err);
  if (status) return status;
  if (address == 0 || address % gm__cpu_vmm_granule() || address > GM__CPU_TOO_LARGE) {
    return gm__bad_argument(err, "cpu vmm", "`address` must be a multiple of %llu, is %llu",
                            (unsigned long long)gm__cpu_vmm_granule(), (unsigned long long)address);
  }
  *out = (gm__cpu_span){address, address + bytes};
  return GM_OK;
}

/* Memory needs a descriptor when it is shared or may be mapped twice. Reserved huge pages need one too: the system
 * cannot move them. */
static bool vmm_is_movable(const gm__cpu_device *device, const gm_vmm_props *props) {
  return props->exclusive && !props->shareable && !device->options->hugetlb && !device->options->memfd;
}

/* A range is far larger than the memory that is ever mapped in it. It could take the last addresses of the host. */
static bool vmm_addresses_are_few(void) { return gm__limit_of(NULL, GM__LIMIT_ADDRESSES) != UINT64_MAX; }

static gm_status vmm_check_exclusive(const gm__cpu_device *device, const gm_vmm_props *props, gm_error *err) {
  if (!props->exclusive) return GM_OK;
  if (vmm_addresses_are_few()) {
    return gm__fail(err, GM_ERR_NOT_SUPPORTED, "vmm_granularity", "the process's addresses are limited (RLIMIT_AS)");
  }
  const bool movable = vmm_is_movable(device, props);
  if (movable ? gm__cpu_movable_try(device->sys) : gm__cpu_memfd_try(device, device->options->hugetlb)) return GM_OK;
  return gm__fail_native(err, GM_ERR_NOT_SUPPORTED, errno, "vmm_granularity", "the system has no %s: %s",
                         movable ? "way to move pages (Linux 5.7)" : "such memory with a descriptor", strerror(errno));
}

gm_status gm__cpu_vmm_granularity(void *device, const gm_vmm_props *props, uint64_t *out, gm_error *err) {
  gm_status status = gm__plain_check_type("cpu vmm", 1, props->type, err);
  if (status == GM_OK) status = vmm_check_exclusive(device, props, err);
  if (status == GM_OK) *out = gm__cpu_vmm_granule();
  return status;
}

/* REQUIRES: vmm lock. */
static gm_status vmm_reserve(gm__cpu_device *device, uint64_t bytes, uint64_t align, uint64_t *out_address,
                             gm_error *err) {
  if (!gm__cpu_spans_room(&device->reserved)) {
    return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, "vmm_reserve", "no host memory for the table");
  }
  const unsigned char *begin = gm__cpu_pages_map(device->sys, GM__CPU_PAGES_ADDRESSES, bytes, align);
  if (!begin) return gm__cpu_pages_refused(err, "mmap", errno, bytes);
  *out_address = (uintptr_t)begin;
  gm__cpu_spans_add(&device->reserved, (gm__cpu_span){(uintptr_t)begin, (uintptr_t)begin + bytes});
  return GM_OK;
}

gm_status gm__cpu_vmm_reserve(void *device, uint64_t bytes, uint64_t align, uint64_t *out_address, gm_error *err) {
  gm__cpu_device *self = device;
  gm_status status = vmm_check_bytes(bytes, err);
  if (status) return status;
  if ((align & (align - 1)) || align > GM__CPU_TOO_LARGE) {
    return gm__bad_argument(err, "cpu vmm", "`align` must be a power of two up to 2^62, is %llu",
                            (unsigned long long)align);
  }
  if (align < gm__cpu_vmm_granule()) align = gm__cpu_vmm_granule();
  gm__mutex_lock(&self->vmm_lock);
  status = vmm_reserve(self, bytes, align, out_address, err);
  gm__mutex_unlock(&self->vmm_lock);
  return status;
}

/* The next memory whose pages stay in the span. NULL: there is none. */
static gm__cpu_physical *vmm_find_staying(const gm__cpu_device *device, gm__cpu_span span) {
  size_t cursor = 0;
  uint64_t address, record;
  while (device->staying && gm__map_next(&device->movable, &cursor, &address, &record)) {
    gm__cpu_physical *physical = (gm__cpu_physical *)(uintptr_t)record;
    if (physical->stays && address < span.end && span.begin < address + physical->bytes) return physical;
  }
  return NULL;
}

/* The memory stays nowhere any more. */
static void vmm_forget_staying(gm__cpu_device *device, uint64_t address) {
  gm__map_remove(&device->movable, address, NULL);
  device->staying--;
}

/* Something else needs the addresses: pages that stay there leave. False: errno says why. REQUIRES: vmm lock. */
static bool vmm_clear_way(gm__cpu_device *device, gm__cpu_span span) {
  for (gm__cpu_physical *physical; (physical = vmm_find_staying(device, span));) {
    const uint64_t address = (uintptr_t)physical->home;
    if (!gm__cpu_movable_leave(device->sys, physical)) return false;
    vmm_forget_staying(device, address);
  }
  return true;
}

static gm_status vmm_unreserve(gm__cpu_device *device, gm__cpu_span span, gm_error *err) {
  const uint64_t bytes = span.end - span.begin;
  if (!gm__cpu_spans_hold(&device->reserved, span) || !gm__cpu_spans_tile(&device->reserved, span)) {
    return gm__bad_argument(err, "vmm_unreserve", "`address` and `bytes` are no reserved range");
  }
  if (gm__cpu_spans_touch(&device->mapped, span)) {
    return gm__fail(err, GM_ERR_BUSY, "vmm_unreserve", "something is still mapped in the range");
  }
  if (!vmm_clear_way(device, span)) return gm__cpu_pages_refused(err, "mremap", errno, bytes);
  bool gone = device->sys->munmap((void *)(uintptr_t)span.begin, bytes) == 0;
  if (!gone && errno == ENOMEM && vmm_spare_give(device)) {
    gone = device->sys->munmap((void *)(uintptr_t)span.begin, bytes) == 0;
  }
  if (!gone) return gm__cpu_pages_refused(err, "munmap", errno, bytes);
  gm__cpu_spans_remove(&device->reserved, span);
  return GM_OK;
}

/* In a forked child a thread that is not there may hold the lock. Closing the device unmaps the range there. */
gm_status gm__cpu_vmm_unreserve(void *device, uint64_t address, uint64_t bytes, gm_close_mode mode, gm_error *err) {
  gm__cpu_device *self = device;
  gm__cpu_span span;
  if (mode == GM_CLOSE_ABANDON) return GM_OK;
  gm_status status = vmm_check_span(address, bytes, &span, err);
  if (status) return status;
  gm__mutex_lock(&self->vmm_lock);
  status = vmm_unreserve(self, span, err);
  gm__mutex_unlock(&self->vmm_lock);
  return status;
}

gm_status gm__cpu_vmm_handle(gm__cpu_device *device, int fd, uint64_t bytes, bool shareable, uint64_t *out_handle,
                             gm_error *err) {
  gm__cpu_physical *physical = gm__alloc(device->services, sizeof *physical);
  if (!physical) return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, "cpu vmm", "no host memory for the record");
  *physical = (gm__cpu_physical){.fd = fd, .bytes = bytes, .shareable = shareable};
  *out_handle = (uintptr_t)physical;
  return GM_OK;
}

gm_status gm__cpu_vmm_create(void *device, const gm_vmm_props *props, uint64_t bytes, uint64_t *out_handle,
                             gm_error *err) {
  gm__cpu_device *self = device;
  int fd = -1;
  gm_status status = gm__plain_check_type("cpu vmm", 1, props->type, err);
  if (status == GM_OK) status = vmm_check_bytes(bytes, err);
  const bool movable = status == GM_OK && vmm_is_movable(self, props);
  if (status == GM_OK && !movable) status = gm__cpu_memfd_make(self, bytes, self->options->hugetlb, &fd, err);
  if (status) return status;
  status = gm__cpu_vmm_handle(self, fd, bytes, props->shareable, out_handle, err);
  if (status && fd >= 0) self->sys->close(fd);
  return status;
}

/* True: the mapping keeps the record. In a forked child a thread that is not there may hold the lock, and nobody unmaps
 * any more. */
static bool vmm_destroy_movable(gm__cpu_device *device, gm__cpu_physical *physical, gm_close_mode mode) {
  if (mode == GM_CLOSE_ABANDON) { /* what stays goes with its range */
    if (!physical->stays) gm__cpu_movable_discard(device->sys, physical);
    return false;
  }
  gm__mutex_lock(&device->vmm_lock);
  if (physical->stays) vmm_forget_staying(device, (uintptr_t)physical->home);
  physical->destroyed = physical->at != NULL;
  const bool kept = physical->destroyed;
  if (!kept) gm__cpu_movable_discard(device->sys, physical);
  gm__mutex_unlock(&device->vmm_lock);
  return kept;
}

gm_status gm__cpu_vmm_destroy(void *device, uint64_t handle, uint64_t bytes, gm_close_mode mode, gm_error *err) {
  (void)bytes, (void)err; /* a close that reports an error has closed */
  gm__cpu_device *self = device;
  gm__cpu_physical *physical = (gm__cpu_physical *)(uintptr_t)handle;
  if (physical->fd < 0 && vmm_destroy_movable(self, physical, mode)) return GM_OK;
  if (physical->fd >= 0) self->sys->close(physical->fd);
  gm__release(self->services, physical, sizeof *physical);
  return GM_OK;
}

static gm_status vmm_place_movable(gm__cpu_device *device, gm__cpu_physical *physical, unsigned char *at,
                                   gm_error *err) {
  const uint64_t stayed = physical->stays ? (uintptr_t)physical->home : 0;
  if (stayed == (uintptr_t)at) {
    device->staying--; /* its record stays, too */
    return gm__cpu_movable_place(device, physical, at, err);
  }
  gm_status status = gm__map_insert(&device->movable, (uintptr_t)at, (uintptr_t)physical);
  if (status) return gm__fail(err, status, "vmm_map", "no host memory for the table");
  status = gm__cpu_movable_place(device, physical, at, err);
  if (status) gm__map_remove(&device->movable, (uintptr_t)at, NULL);
  if (!status && stayed) vmm_forget_staying(device, stayed);
  return status;
}

static gm_status vmm_place(gm__cpu_device *device, gm__cpu_span span, gm__cpu_physical *physical, uint64_t offset,
                           gm_error *err) {
  const uint64_t bytes = span.end - span.begin;
  unsigned char *at = (unsigned char *)(uintptr_t)span.begin;
  const bool back = physical->stays && physical->home == at; /* it needs nothing of the system */
  if (!back && (!vmm_spare_take(device) || !vmm_clear_way(device, span)))
    return gm__cpu_pages_refused(err, "mmap", errno, bytes);
  if (physical->fd < 0) return vmm_place_movable(device, physical, at, err);
  if (gm__cpu_pages_place(device->sys, at, bytes, physical->fd, offset)) return GM_OK;
  return gm__cpu_pages_refused(err, "mmap", errno, bytes);
}

static gm_status vmm_map(gm__cpu_device *device, gm__cpu_span span, gm__cpu_physical *physical, uint64_t offset,
                         gm_error *err) {
  if (physical->fd < 0 && (physical->at || span.end - span.begin != physical->bytes)) {
    return gm__bad_argument(err, "vmm_map", "exclusive memory is mapped as a whole, at one place at a time");
  }
  if (!gm__cpu_spans_hold(&device->reserved, span)) {
    return gm__bad_argument(err, "vmm_map", "`address`: not all of the range is reserved");
  }
  if (gm__cpu_spans_touch(&device->mapped, span)) return gm__bad_argument(err, "vmm_map", "`address`: mapped already");
  if (!gm__cpu_spans_room(&device->mapped)) {
    return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, "vmm_map", "no host memory for the table");
  }
  const gm_status status = vmm_place(device, span, physical, offset, err);
  if (status == GM_OK) gm__cpu_spans_add(&device->mapped, span);
  return status;
}

gm_status gm__cpu_vmm_map(void *device, uint64_t address, uint64_t bytes, uint64_t handle, uint64_t offset,
                          gm_error *err) {
  gm__cpu_device *self = device;
  gm__cpu_physical *physical = (gm__cpu_physical *)(uintptr_t)handle;
  gm__cpu_span span = {0, 0};
  gm_status status = vmm_check_span(address, bytes, &span, err);
  if (status) return status;
  if (offset % gm__cpu_vmm_granule() || offset > physical->bytes || bytes > physical->bytes - offset) {
    return gm__bad_argument(err, "vmm_map", "%llu bytes at `offset` %llu are not in the %llu bytes of the memory",
                            (unsigned long long)bytes, (unsigned long long)offset, (unsigned long long)physical->bytes);
  }
  gm__mutex_lock(&self->vmm_lock);
  status = vmm_map(self, span, physical, offset, err);
  gm__mutex_unlock(&self->vmm_lock);
  return status;
}

/* `physical` is the owner of the mapping where it is movable, else NULL. False: errno says why, and nothing has
 * changed. REQUIRES: vmm lock. */
static bool vmm_withdraw_once(const gm__cpu_device *device, gm__cpu_span span, gm__cpu_physical *physical) {
  if (physical && !physical->destroyed) return gm__cpu_movable_take(device->sys, physical);
  return gm__cpu_pages_empty(device->sys, (void *)(uintptr_t)span.begin, span.end - span.begin);
}

/* Give the pages back without a change of mappings. */
static bool vmm_drop(const gm__cpu_device *device, gm__cpu_span span) {
  return device->sys->madvise((void *)(uintptr_t)span.begin, span.end - span.begin, MADV_DONTNEED) == 0;
}

static bool vmm_withdraw(gm__cpu_device *device, gm__cpu_span span) {
  uint64_t record = 0;
  gm__map_find(&device->movable, span.begin, &record);
  gm__cpu_physical *physical = (gm__cpu_physical *)(uintptr_t)record;
  bool gone = vmm_withdraw_once(device, span, physical);
  if (!gone && errno == ENOMEM && vmm_spare_give(device)) gone = vmm_withdraw_once(device, span, physical);
  if (!gone && errno == ENOMEM && physical && !physical->destroyed) {
    gm__cpu_movable_stay(physical);
    device->staying++;
    return true;
  }
  if (!gone && errno == ENOMEM && physical) gone = vmm_drop(device, span);
  if (!gone || !physical) return gone;
  gm__map_remove(&device->movable, span.begin, NULL);
  if (physical->destroyed) gm__release(device->services, physical, sizeof *physical);
  return true;
}

/* When the system refuses one piece, the pieces before it stay unmapped. REQUIRES: vmm lock. */
static gm_status vmm_unmap(gm__cpu_device *device, gm__cpu_span span, gm_error *err) {
  if (!gm__cpu_spans_tile(&device->mapped, span)) {
    return gm__bad_argument(err, "vmm_unmap", "`address` and `bytes` must hold whole mappings and nothing else");
  }
  while (span.begin < span.end) {
    const gm__cpu_span one = gm__cpu_spans_at(&device->mapped, span.begin);
    if (!vmm_withdraw(device, one)) return gm__cpu_pages_refused(err, "unmapping", errno, one.end - one.begin);
    gm__cpu_spans_remove(&device->mapped, one);
    span.begin = one.end;
  }
  return GM_OK;
}

gm_status gm__cpu_vmm_unmap(void *device, uint64_t address, uint64_t bytes, gm_error *err) {
  gm__cpu_device *self = device;
  gm__cpu_span span;
  gm_status status = vmm_check_span(address, bytes, &span, err);
  if (status) return status;
  gm__mutex_lock(&self->vmm_lock);
  status = vmm_unmap(self, span, err);
  gm__mutex_unlock(&self->vmm_lock);
  return status;
}

gm_status gm__cpu_vmm_access(void *device, uint64_t address, uint64_t bytes, gm_error *err) {
  gm__cpu_device *self = device;
  gm__cpu_span span;
  const gm_status status = vmm_check_span(address, bytes, &span, err);
  if (status) return status;
  gm__mutex_lock(&self->vmm_lock);
  const bool all = gm__cpu_spans_cover(&self->mapped, span);
  gm__mutex_unlock(&self->vmm_lock);
  return all ? GM_OK : gm__bad_argument(err, "vmm_access", "`address`: not all of the range is mapped");
}

gm_status gm__cpu_vmm_memory(void *device, uint64_t address, uint64_t bytes, uint32_t type, gm_memory *out,
                             gm_error *err) {
  gm__cpu_device *self = device;
  gm__cpu_span span;
  gm_status status = gm__plain_check_type("cpu vmm", 1, type, err);
  if (status == GM_OK) status = vmm_check_span(address, bytes, &span, err);
  if (status) return status;
  gm__mutex_lock(&self->vmm_lock);
  const bool held = gm__cpu_spans_hold(&self->reserved, span);
  gm__mutex_unlock(&self->vmm_lock);
  if (!held) return gm__bad_argument(err, "vmm_memory", "`address`: not all of the range is reserved");
  void *host = (void *)(uintptr_t)address;
  *out = (gm_memory){.handle = address, .address = address, .bytes = bytes, .host = host, .wrapped = true};
  return GM_OK;
}

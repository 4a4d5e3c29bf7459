#include "backends/cpu/cpu_mem.h"

#include <errno.h>

#include "backends/cpu/cpu_device.h"
#include "backends/cpu/cpu_entries.h"
#include "backends/cpu/cpu_pages.h"
#include "backends/cpu/cpu_share.h"
#include "backends/shared/native.h"
#include "backends/shared/plain.h"
#include "core/base/error.h"
#include "core/base/sized.h"
#include "gm/native_cpu.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14; older headers do not have it */
#endif

/* Memory of the CPU backend is whole pages by mmap. Large memory is advised to take huge pages. */

gm_status gm__cpu_memory_type(void *device, uint32_t type, gm_memory_type *out, gm_error *err) {
  const gm_status status = gm__plain_check_type("memory_type", 1, type, err);
  if (status) return status;
  *out = (gm_memory_type){.struct_size = sizeof *out,
                          .flags = GM_MEMORY_DEVICE_LOCAL | GM_MEMORY_HOST_VISIBLE | GM_MEMORY_HOST_COHERENT |
                                   GM_MEMORY_HOST_CACHED | GM_MEMORY_HOST_POINTER | GM_MEMORY_LAZY | GM_MEMORY_SYSTEM |
                                   GM_MEMORY_PERSISTENT_MAP,
                          .atom_bytes = 1,
                          .share_kinds = gm__cpu_share_kinds(device)};
  return GM_OK;
}

/* Take the pages now and keep the contents. Kernels before 5.14 do not know the advice (EINVAL). There an atomic "or"
 * with 0 touches each page, and the writes of other threads survive it. */
static gm_status mem_commit(const gm__cpu_device *device, unsigned char *begin, uint64_t bytes, gm_error *err) {
  if (device->sys->madvise(begin, bytes, MADV_POPULATE_WRITE) == 0) return GM_OK;
  if (errno != EINVAL) return gm__cpu_pages_refused(err, "madvise", errno, bytes);
  for (uint64_t at = 0; at < bytes; at += gm__cpu_page()) __atomic_fetch_or(begin + at, 0, __ATOMIC_RELAXED);
  return GM_OK;
}

static gm_status mem_check(const gm_memory_params *params, gm_error *err) {
  const gm_status status = gm__plain_check("memory_alloc", 1, params, err);
  if (status) return status;
  if (params->bytes > GM__CPU_TOO_LARGE || params->align > GM__CPU_TOO_LARGE) {
    return gm__fail(err, GM_ERR_ALLOCATION_TOO_LARGE, "memory_alloc", "%llu bytes are more than an address space",
                    (unsigned long long)(params->bytes > params->align ? params->bytes : params->align));
  }
  return GM_OK;
}

/* Tell the system the node and the size of the pages before anybody touches them. Huge pages are only advice. */
static gm_status mem_settle(const gm__cpu_device *device, unsigned char *begin, uint64_t bytes, uint32_t flags,
                            gm_error *err) {
  const gm_status status = gm__cpu_numa_bind(&device->options->numa, device->sys, begin, bytes, err);
  if (status) return status;
  if (bytes >= GM__CPU_HUGE_PAGE) device->sys->madvise(begin, bytes, MADV_HUGEPAGE);
  return flags & GM_ALLOC_COMMIT ? mem_commit(device, begin, bytes, err) : GM_OK;
}

gm_status gm__cpu_memory_alloc(void *device, const gm_memory_params *params, gm_memory *out, gm_error *err) {
  const gm__cpu_device *self = device;
  gm_status status = mem_check(params, err);
  if (status) return status;
  if (params->share != GM_SHARE_NONE) return gm__cpu_share_alloc(device, params, out, err);
  const uint64_t bytes = gm__cpu_page_up(params->bytes), align = gm__cpu_pages_align(bytes, params->align);
  unsigned char *begin = gm__cpu_pages_map(self->sys, GM__CPU_PAGES_MEMORY, bytes, align);
  if (!begin) return gm__cpu_pages_refused(err, "mmap", errno, params->bytes);
  status = mem_settle(self, begin, bytes, params->flags, err);
  if (status) {
    self->sys->munmap(begin, bytes);
    return status;
  }
  *out = (gm_memory){.handle = (uintptr_t)begin, .address = (uintptr_t)begin, .bytes = bytes, .host = begin};
  return GM_OK;
}

gm_status gm__cpu_memory_wrap(void *device, const gm_native_memory *native, gm_memory *out, gm_error *err) {
  (void)device;
  gm_cpu_memory given;
  const gm_status status = gm__native_in(&given, sizeof given, native, GM_API_CPU, "memory_wrap", "native", err);
  if (status) return status;
  if (!given.pointer || given.bytes == 0 || given.bytes > UINTPTR_MAX - (uintptr_t)given.pointer) {
    return gm__bad_argument(err, "memory_wrap", "`pointer` and `bytes` must name memory");
  }
  const uintptr_t at = (uintptr_t)given.pointer;
  *out = (gm_memory){.handle = at, .address = at, .bytes = given.bytes, .host = given.pointer, .wrapped = true};
  return GM_OK;
}

gm_status gm__cpu_memory_free(void *device, const gm_memory *memory, gm_close_mode mode, gm_error *err) {
  (void)mode; /* a forked child has its own mappings */
  const gm__cpu_device *self = device;
  if (memory->wrapped) return GM_OK;
  if (gm__cpu_share_is(memory)) return gm__cpu_share_free(device, memory, err);
  if (self->sys->munmap((void *)(uintptr_t)memory->address, memory->bytes) == 0) return GM_OK;
  return gm__cpu_pages_refused(err, "munmap", errno, memory->bytes);
}

gm_status gm__cpu_memory_native(void *device, const gm_memory *memory, uint64_t offset, uint64_t bytes,
                                gm_native_memory *out, gm_error *err) {
  (void)device;
  const gm_cpu_memory told = {.head = *out, .pointer = gm__cpu_bytes(memory) + offset, .bytes = bytes};
  const gm_status status = gm__native_check(out, sizeof told, GM_API_CPU, "memory_native", "out", err);
  if (status) return status;
  gm__sized_out(out, &told, sizeof told);
  return GM_OK;
}

/* A mapping is the memory itself, as soon as the work of `stream` is done. */
gm_status gm__cpu_map(void *device, void *stream, const gm_memory *memory, uint64_t offset, uint64_t bytes,
                      uint32_t mode, void **out, gm_error *err) {
  (void)bytes, (void)mode;
  const gm_status status = stream ? gm__cpu_stream_sync(device, stream, err) : GM_OK;
  if (status == GM_OK) *out = gm__cpu_bytes(memory) + offset;
  return status;
}

gm_status gm__cpu_commit(void *device, void *stream, const gm_memory *memory, uint64_t offset, uint64_t bytes,
                         gm_error *err) {
  (void)stream;
  unsigned char *first = gm__cpu_bytes(memory) + offset;
  const uint64_t before = (uintptr_t)first & (gm__cpu_page() - 1); /* wrapped memory may begin inside a page */
  return mem_commit(device, first - before, gm__cpu_page_up(before + bytes), err);
}

#include "backends/cpu/cpu_share.h"

#include <errno.h>
#include <string.h>

#include "backends/cpu/cpu_entries.h"
#include "backends/cpu/cpu_memfd.h"
#include "backends/cpu/cpu_pages.h"
#include "backends/cpu/cpu_vmm.h"
#include "core/base/alloc.h"
#include "core/base/error.h"

/* The handle of plain memory is its address. The handle of memory with a descriptor points to this record. */
typedef struct cpu_share {
  int fd; /* -1: imported */
  unsigned char *begin;
  uint64_t bytes;
} cpu_share;

uint32_t gm__cpu_share_kinds(const gm__cpu_device *device) {
  return gm__cpu_memfd_try(device, false) ? 1u << GM_SHARE_FD : 0;
}

bool gm__cpu_share_is(const gm_memory *memory) { return memory->handle != memory->address; }

/* Map `bytes` of `fd` and make the record. `bytes` and `offset` are whole pages. */
static gm_status share_map(gm__cpu_device *device, int fd, uint64_t offset, uint64_t bytes, uint64_t align,
                           cpu_share **out, gm_error *err) {
  cpu_share *share = gm__alloc(device->services, sizeof *share);
  if (!share) return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, "cpu share", "no host memory for the record");
  unsigned char *begin = gm__cpu_pages_map(device->sys, GM__CPU_PAGES_ADDRESSES, bytes, align);
  if (begin && gm__cpu_pages_place(device->sys, begin, bytes, fd, offset)) {
    *share = (cpu_share){.fd = -1, .begin = begin, .bytes = bytes};
    *out = share;
    return GM_OK;
  }
  const int code = errno;
  if (begin) device->sys->munmap(begin, bytes);
  gm__release(device->services, share, sizeof *share);
  return gm__cpu_pages_refused(err, "mmap", code, bytes);
}

static gm_memory share_memory(const cpu_share *share, uint64_t offset, uint64_t bytes) {
  unsigned char *host = share->begin + offset;
  return (gm_memory){.handle = (uintptr_t)share, .address = (uintptr_t)host, .bytes = bytes, .host = host};
}

gm_status gm__cpu_share_alloc(gm__cpu_device *device, const gm_memory_params *params, gm_memory *out, gm_error *err) {
  const uint64_t bytes = gm__cpu_page_up(params->bytes);
  cpu_share *share = NULL;
  int fd = -1;
  if (params->share != GM_SHARE_FD) {
    return gm__fail(err, GM_ERR_NOT_SUPPORTED, "memory_alloc", "host memory is shared by file descriptor only");
  }
  gm_status status = gm__cpu_memfd_make(device, bytes, false, &fd, err);
  if (status) return status;
  status = share_map(device, fd, 0, bytes, gm__cpu_pages_align(bytes, params->align), &share, err);
  if (status) {
    device->sys->close(fd);
    return status;
  }
  share->fd = fd;
  *out = share_memory(share, 0, bytes);
  return GM_OK;
}

gm_status gm__cpu_share_free(gm__cpu_device *device, const gm_memory *memory, gm_error *err) {
  cpu_share *share = (cpu_share *)(uintptr_t)memory->handle;
  const uint64_t bytes = share->bytes;
  const int code = device->sys->munmap(share->begin, bytes) == 0 ? 0 : errno;
  if (share->fd >= 0) device->sys->close(share->fd);
  gm__release(device->services, share, sizeof *share);
  return code ? gm__cpu_pages_refused(err, "munmap", code, bytes) : GM_OK;
}

static gm_status share_hand_out(gm__cpu_device *device, int fd, uint64_t bytes, gm_shared *out, gm_error *err) {
  int other = -1;
  const gm_status status = gm__cpu_memfd_give_out(device, fd, &other, err);
  if (status) return status;
  *out =
      (gm_shared){.struct_size = sizeof *out, .kind = GM_SHARE_FD, .bytes = bytes, .whole_bytes = bytes, .fd = other};
  return GM_OK;
}

gm_status gm__cpu_share_export(void *device, const gm_memory *memory, gm_share_kind kind, gm_shared *out,
                               gm_error *err) {
  const cpu_share *share = gm__cpu_share_is(memory) ? (const cpu_share *)(uintptr_t)memory->handle : NULL;
  if (kind != GM_SHARE_FD || !share || share->fd < 0) {
    return gm__fail(err, GM_ERR_NOT_SUPPORTED, "share_export",
                    "host memory can be exported as a file descriptor, when it was made for that");
  }
  return share_hand_out(device, share->fd, memory->bytes, out, err);
}

static gm_status share_check(const gm_shared *shared, gm_error *err) {
  if (shared->struct_size < sizeof *shared || shared->kind != GM_SHARE_FD || shared->bytes == 0 || shared->type != 0) {
    return gm__bad_argument(err, "cpu share",
                            "`shared` has struct_size %u, kind %d, type %u and %llu bytes; wanted are %zu, %d, 0, more",
                            (unsigned)shared->struct_size, (int)shared->kind, (unsigned)shared->type,
                            (unsigned long long)shared->bytes, sizeof *shared, (int)GM_SHARE_FD);
  }
  if (shared->whole_bytes > GM__CPU_TOO_LARGE || shared->offset > shared->whole_bytes ||
      shared->bytes > shared->whole_bytes - shared->offset) {
    return gm__bad_argument(err, "cpu share", "`shared`: %llu bytes at %llu, of %llu",
                            (unsigned long long)shared->bytes, (unsigned long long)shared->offset,
                            (unsigned long long)shared->whole_bytes);
  }
  return GM_OK;
}

gm_status gm__cpu_share_import(void *device, const gm_shared *shared, gm_memory *out, gm_error *err) {
  gm__cpu_device *self = device;
  cpu_share *share = NULL;
  int fd = -1;
  gm_status status = share_check(shared, err);
  if (status == GM_OK) status = gm__cpu_memfd_adopt(self, shared->fd, shared->whole_bytes, &fd, err);
  if (status) return status;
  const uint64_t first = shared->offset & ~(gm__cpu_page() - 1), within = shared->offset - first;
  const uint64_t bytes = gm__cpu_page_up(within + shared->bytes);
  status = share_map(self, fd, first, bytes, gm__cpu_pages_align(bytes, 0), &share, err);
  self->sys->close(fd);
  if (status) return status;
  *out = share_memory(share, within, shared->bytes);
  out->wrapped = true;
  return GM_OK;
}

gm_status gm__cpu_share_close(void *device, const gm_memory *memory, gm_close_mode mode, gm_error *err) {
  (void)mode; /* a forked child has its own mappings */
  if (!gm__cpu_share_is(memory) || !memory->wrapped) {
    return gm__bad_argument(err, "share_close", "`memory` was not imported");
  }
  return gm__cpu_share_free(device, memory, err);
}

gm_status gm__cpu_share_export_vmm(void *device, uint64_t handle, uint64_t bytes, gm_shared *out, gm_error *err) {
  const gm__cpu_physical *physical = (const gm__cpu_physical *)(uintptr_t)handle;
  if (bytes != physical->bytes) {
    return gm__bad_argument(err, "share_export_vmm", "`bytes` is %llu, the memory has %llu", (unsigned long long)bytes,
                            (unsigned long long)physical->bytes);
  }
  if (!physical->shareable) {
    return gm__fail(err, GM_ERR_NOT_SUPPORTED, "share_export_vmm", "the memory was not made to be shared");
  }
  return share_hand_out(device, physical->fd, bytes, out, err);
}

gm_status gm__cpu_share_import_vmm(void *device, const gm_shared *shared, uint64_t *out_handle, gm_error *err) {
  gm__cpu_device *self = device;
  int fd = -1;
  gm_status status = share_check(shared, err);
  if (status) return status;
  if (shared->offset || shared->bytes != shared->whole_bytes || shared->bytes % gm__cpu_vmm_granule()) {
    return gm__bad_argument(err, "share_import_vmm", "`shared` must be a whole memory, in pieces of %llu bytes",
                            (unsigned long long)gm__cpu_vmm_granule());
  }
  status = gm__cpu_memfd_adopt(self, shared->fd, shared->bytes, &fd, err);
  if (status) return status;
  status = gm__cpu_vmm_handle(self, fd, shared->bytes, true, out_handle, err);
  if (status) self->sys->close(fd);
  return status;
}

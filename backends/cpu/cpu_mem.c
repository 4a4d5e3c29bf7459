#include "backends/cpu/cpu_mem.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "backends/cpu/cpu_device.h"
#include "backends/cpu/cpu_stream.h"
#include "core/base/error.h"
#include "gm/native_cpu.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14; older headers do not have it */
#endif

/* From here on huge pages are asked for, and the memory begins on one: transparent huge pages of x86-64 and of arm64
 * with 4 KiB pages. */
#define MEM_HUGE_PAGE (UINT64_C(2) << 20)

/* More than any process can map; what is below is for the system to decide. */
#define MEM_TOO_LARGE (UINT64_C(1) << 62)

static uint64_t mem_page(void) { return (uint64_t)sysconf(_SC_PAGESIZE); }

gm_status gm__cpu_memory_type_count(void *device, uint32_t *out, gm_error *err) {
  (void)device, (void)err;
  *out = 1;
  return GM_OK;
}

static gm_status mem_check_type(uint32_t type, const char *op, gm_error *err) {
  if (type == 0) return GM_OK;
  return gm__bad_argument(err, op, "`type` is %u, but the host has one type: 0", type);
}

gm_status gm__cpu_memory_type(void *device, uint32_t type, gm_memory_type *out, gm_error *err) {
  (void)device;
  const gm_status status = mem_check_type(type, "memory_type", err);
  if (status) return status;
  *out = (gm_memory_type){.struct_size = sizeof *out,
                          .flags = GM_MEMORY_DEVICE_LOCAL | GM_MEMORY_HOST_VISIBLE | GM_MEMORY_HOST_COHERENT |
                                   GM_MEMORY_HOST_CACHED | GM_MEMORY_HOST_POINTER,
                          .atom_bytes = 1};
  return GM_OK;
}

static gm_status mem_refused(gm_error *err, const char *op, int code, uint64_t bytes) {
  return gm__fail(err, GM_ERR_OUT_OF_DEVICE_MEMORY, code, op, "the system does not give %llu bytes: %s",
                  (unsigned long long)bytes, strerror(code));
}

/* Takes the pages now, contents kept. Kernels before 5.14 do not know the advice (EINVAL): there each page is touched
 * by an atomic "or" with nothing, which other threads' writes survive. */
static gm_status mem_commit(unsigned char *begin, uint64_t bytes, gm_error *err) {
  if (madvise(begin, bytes, MADV_POPULATE_WRITE) == 0) return GM_OK;
  if (errno != EINVAL) return mem_refused(err, "madvise", errno, bytes);
  for (uint64_t at = 0; at < bytes; at += mem_page()) __atomic_fetch_or(begin + at, 0, __ATOMIC_RELAXED);
  return GM_OK;
}

/* `bytes` (whole pages) at a multiple of `align`: maps what may be needed and gives both ends back. */
static unsigned char *mem_map(uint64_t bytes, uint64_t align) {
  const uint64_t slack = align > mem_page() ? align - mem_page() : 0;
  unsigned char *begin = mmap(NULL, bytes + slack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (begin == MAP_FAILED) return NULL;
  const uint64_t head = (align - ((uintptr_t)begin & (align - 1))) & (align - 1);
  if (head) munmap(begin, head);
  if (slack > head) munmap(begin + head + bytes, slack - head);
  return begin + head;
}

static gm_status mem_check(const gm_memory_params *params, gm_error *err) {
  const gm_status status = mem_check_type(params->type, "memory_alloc", err);
  if (status) return status;
  if (params->bytes == 0) return gm__bad_argument(err, "memory_alloc", "`bytes` must not be 0");
  if (params->align & (params->align - 1)) {
    return gm__bad_argument(err, "memory_alloc", "`align` must be a power of two, is %llu",
                            (unsigned long long)params->align);
  }
  if (params->bytes > MEM_TOO_LARGE || params->align > MEM_TOO_LARGE) {
    return gm__fail(err, GM_ERR_ALLOCATION_TOO_LARGE, 0, "memory_alloc", "%llu bytes are more than an address space",
                    (unsigned long long)(params->bytes > params->align ? params->bytes : params->align));
  }
  return GM_OK;
}

gm_status gm__cpu_memory_alloc(void *device, const gm_memory_params *params, gm_memory *out, gm_error *err) {
  (void)device;
  gm_status status = mem_check(params, err);
  if (status) return status;
  const uint64_t bytes = (params->bytes + mem_page() - 1) & ~(mem_page() - 1);
  uint64_t align = params->align > mem_page() ? params->align : mem_page();
  if (bytes >= MEM_HUGE_PAGE && align < MEM_HUGE_PAGE) align = MEM_HUGE_PAGE;
  unsigned char *begin = mem_map(bytes, align);
  if (!begin) return mem_refused(err, "mmap", errno, params->bytes);
  /* Advice: small pages do as well. */
  if (bytes >= MEM_HUGE_PAGE) madvise(begin, bytes, MADV_HUGEPAGE);
  if (params->flags & GM_ALLOC_COMMIT) status = mem_commit(begin, bytes, err);
  if (status) {
    munmap(begin, bytes);
    return status;
  }
  *out = (gm_memory){.handle = (uintptr_t)begin, .address = (uintptr_t)begin, .bytes = bytes, .host = begin};
  return GM_OK;
}

gm_status gm__cpu_memory_wrap(void *device, const gm_native_memory *native, gm_memory *out, gm_error *err) {
  (void)device;
  if (native->api != GM_API_CPU || native->struct_size != sizeof(gm_cpu_memory)) {
    return gm__bad_argument(err, "memory_wrap", "`native` must be a gm_cpu_memory with its head filled");
  }
  const gm_cpu_memory *given = (const gm_cpu_memory *)native;
  if (!given->pointer || given->bytes == 0 || given->bytes > UINTPTR_MAX - (uintptr_t)given->pointer) {
    return gm__bad_argument(err, "memory_wrap", "`pointer` and `bytes` must name memory");
  }
  const uintptr_t at = (uintptr_t)given->pointer;
  *out = (gm_memory){.handle = at, .address = at, .bytes = given->bytes, .host = given->pointer, .wrapped = true};
  return GM_OK;
}

gm_status gm__cpu_memory_free(void *device, const gm_memory *memory, gm_close_mode mode, gm_error *err) {
  (void)device, (void)mode; /* in a forked child the pages are the child's own copies */
  if (memory->wrapped) return GM_OK;
  if (munmap(memory->host, memory->bytes) == 0) return GM_OK;
  return gm__fail(err, GM_ERR_SYSTEM, errno, "munmap", "%llu bytes: %s", (unsigned long long)memory->bytes,
                  strerror(errno));
}

gm_status gm__cpu_memory_native(void *device, const gm_memory *memory, uint64_t offset, uint64_t bytes,
                                gm_native_memory *out, gm_error *err) {
  (void)device;
  if (out->api != GM_API_CPU || out->struct_size < sizeof(gm_cpu_memory)) {
    return gm__bad_argument(err, "memory_native", "`out` must be a gm_cpu_memory with its head filled");
  }
  gm_cpu_memory *native = (gm_cpu_memory *)out;
  native->pointer = (unsigned char *)memory->host + offset;
  native->bytes = bytes;
  return GM_OK;
}

gm_status gm__cpu_map(void *device, void *stream, const gm_memory *memory, uint64_t offset, uint64_t bytes,
                      uint32_t mode, void **out, gm_error *err) {
  (void)bytes, (void)mode;
  const gm_status status = stream ? gm__cpu_stream_sync(device, stream, err) : GM_OK;
  if (status == GM_OK) *out = (unsigned char *)memory->host + offset;
  return status;
}

gm_status gm__cpu_unmap(void *device, void *stream, const gm_memory *memory, void *pointer, gm_error *err) {
  (void)device, (void)stream, (void)memory, (void)pointer, (void)err;
  return GM_OK;
}

gm_status gm__cpu_flush(void *device, const gm_memory *memory, uint64_t offset, uint64_t bytes, gm_error *err) {
  (void)device, (void)memory, (void)offset, (void)bytes, (void)err;
  return GM_OK;
}

gm_status gm__cpu_commit(void *device, void *stream, const gm_memory *memory, uint64_t offset, uint64_t bytes,
                         gm_error *err) {
  (void)device, (void)stream;
  const uint64_t begin = offset & ~(mem_page() - 1);
  const uint64_t end = (offset + bytes + mem_page() - 1) & ~(mem_page() - 1);
  return mem_commit((unsigned char *)memory->host + begin, end - begin, err);
}

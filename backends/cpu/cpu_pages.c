#include "backends/cpu/cpu_pages.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/base/error.h"
#include "core/base/limits.h"

uint64_t gm__cpu_page(void) { return (uint64_t)sysconf(_SC_PAGESIZE); }

uint64_t gm__cpu_page_up(uint64_t bytes) { return (bytes + gm__cpu_page() - 1) & ~(gm__cpu_page() - 1); }

uint64_t gm__cpu_pages_align(uint64_t bytes, uint64_t align) {
  const uint64_t least = bytes >= GM__CPU_HUGE_PAGE ? GM__CPU_HUGE_PAGE : gm__cpu_page();
  return align > least ? align : least;
}

/* Map enough for every alignment, then unmap both ends. */
unsigned char *gm__cpu_pages_map(const gm__cpu_syms *sys, gm__cpu_pages_kind kind, uint64_t bytes, uint64_t align) {
  const int protection = kind == GM__CPU_PAGES_MEMORY ? PROT_READ | PROT_WRITE : PROT_NONE;
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | (kind == GM__CPU_PAGES_MEMORY ? 0 : MAP_NORESERVE);
  const uint64_t slack = align - gm__cpu_page();
  unsigned char *begin = sys->mmap(NULL, bytes + slack, protection, flags, -1, 0);
  if (begin == MAP_FAILED) {
    if (errno == EINVAL) errno = ENOMEM; /* valgrind answers EINVAL */
    return NULL;
  }
  const uint64_t head = (align - ((uintptr_t)begin & (align - 1))) & (align - 1);
  if (head) sys->munmap(begin, head);
  if (slack > head) sys->munmap(begin + head + bytes, slack - head);
  return begin + head;
}

bool gm__cpu_pages_place(const gm__cpu_syms *sys, void *at, uint64_t bytes, int fd, uint64_t offset) {
  const int protection = PROT_READ | PROT_WRITE;
  return sys->mmap(at, bytes, protection, MAP_SHARED | MAP_FIXED, fd, (off_t)offset) != MAP_FAILED;
}

bool gm__cpu_pages_renew(const gm__cpu_syms *sys, void *at, uint64_t bytes) {
  return sys->mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED;
}

bool gm__cpu_pages_empty(const gm__cpu_syms *sys, void *at, uint64_t bytes) {
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
  return sys->mmap(at, bytes, PROT_NONE, flags, -1, 0) != MAP_FAILED;
}

void gm__cpu_pages_retake(const gm__cpu_syms *sys, void *at, uint64_t bytes) {
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE;
  sys->mmap(at, bytes, PROT_NONE, flags, -1, 0);
}

/* Near that limit the kernel refuses a call that needs two mappings. */
static bool pages_mappings(char *out, size_t capacity) {
  gm__mappings mappings;
  if (!gm__mappings_read(NULL, &mappings) || !gm__mappings_are_used_up(&mappings)) return false;
  snprintf(out, capacity, "; the process has %llu mappings, vm.max_map_count is %llu",
           (unsigned long long)mappings.count, (unsigned long long)mappings.most);
  return true;
}

/* Adds the limit to `out`, where there is one. */
static void pages_limit(gm__limit limit, char *out, size_t capacity) {
  const uint64_t most = gm__limit_of(NULL, limit);
  const size_t length = strlen(out);
  if (most == UINT64_MAX) return;
  snprintf(out + length, capacity - length, "; %s is %llu", gm__limit_name(limit), (unsigned long long)most);
}

static void pages_limits(int code, char *out, size_t capacity) {
  if (code == EMFILE || code == ENFILE) pages_limit(GM__LIMIT_DESCRIPTORS, out, capacity);
  if (code == EFBIG) pages_limit(GM__LIMIT_FILE, out, capacity);
  if (code != ENOMEM || pages_mappings(out, capacity)) return;
  pages_limit(GM__LIMIT_ADDRESSES, out, capacity);
  pages_limit(GM__LIMIT_DATA, out, capacity);
}

gm_status(gm__cpu_pages_refused)(gm_error *err, const char *op, int code, uint64_t bytes) {
  char why[120] = "";
  const bool files = code == EMFILE || code == ENFILE;
  const bool memory = code == ENOMEM || code == ENOSPC || code == EAGAIN || code == EFBIG;
  pages_limits(code, why, sizeof why);
  return gm__fail_native(err, files || memory ? GM_ERR_OUT_OF_DEVICE_MEMORY : GM_ERR_SYSTEM, code, op,
                         "the system does not give %llu bytes: %s%s", (unsigned long long)bytes, strerror(code), why);
}

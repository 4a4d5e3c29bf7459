#include "backends/cpu/cpu_pages.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/text.h"

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

static bool pages_count_line(void *user, char *line) {
  (void)line;
  ++*(uint64_t *)user;
  return true;
}

/* This is the only limit that a process can read. Near it, the kernel refuses a call that needs two mappings. */
static bool pages_mappings(char *out, size_t capacity) {
  char text[32];
  uint64_t limit, count = 0;
  if (gm__file_text("", "/proc/sys/vm/max_map_count", text, sizeof text) != GM__FILE_OK) return false;
  text[strcspn(text, "\n")] = 0;
  if (gm__text_u64("vm.max_map_count", text, &limit, NULL) != GM_OK) return false;
  gm__file_lines("", "/proc/self/maps", pages_count_line, &count);
  if (count + 2 < limit) return false;
  snprintf(out, capacity, "; the process has %llu mappings, vm.max_map_count is %llu", (unsigned long long)count,
           (unsigned long long)limit);
  return true;
}

static void pages_limit(unsigned resource, const char *name, char *out, size_t capacity) {
  struct rlimit limit;
  if (getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return;
  snprintf(out, capacity, "; %s is %llu", name, (unsigned long long)limit.rlim_cur);
}

gm_status(gm__cpu_pages_refused)(gm_error *err, const char *op, int code, uint64_t bytes) {
  char why[120] = "";
  const bool files = code == EMFILE || code == ENFILE;
  const bool memory = code == ENOMEM || code == ENOSPC || code == EAGAIN || code == EFBIG;
  if (code == ENOMEM && !pages_mappings(why, sizeof why)) pages_limit(RLIMIT_AS, "RLIMIT_AS", why, sizeof why);
  if (files) pages_limit(RLIMIT_NOFILE, "RLIMIT_NOFILE", why, sizeof why);
  return gm__fail(err, files || memory ? GM_ERR_OUT_OF_DEVICE_MEMORY : GM_ERR_SYSTEM, code, op,
                  "the system does not give %llu bytes: %s%s", (unsigned long long)bytes, strerror(code), why);
}

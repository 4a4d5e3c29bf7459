#include "core/base/mapping.h"

#include <linux/mempolicy.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

void *gm__mapping_new(size_t bytes) {
  void *mapping = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return mapping == MAP_FAILED ? NULL : mapping;
}

void *gm__mapping_grow(void *mapping, size_t bytes, size_t more) {
  void *grown = mremap(mapping, bytes, more, MREMAP_MAYMOVE);
  return grown == MAP_FAILED ? NULL : grown;
}

/* The C library has no mbind. The kernel wants the number of bits plus one. */
bool gm__mapping_prefer(void *mapping, size_t bytes, uint32_t node) {
  enum { NODES = 1024, BITS = 8 * sizeof(unsigned long) };
  unsigned long nodes[NODES / BITS] = {0};
  if (node >= NODES) return false;
  nodes[node / BITS] = 1UL << node % BITS;
  return syscall(SYS_mbind, mapping, bytes, (long)MPOL_PREFERRED, nodes, (long)NODES + 1, 0L) == 0;
}

void gm__mapping_unback(void *at, size_t bytes) { madvise(at, bytes, MADV_DONTNEED); }

void gm__mapping_release(void *mapping, size_t bytes) { munmap(mapping, bytes); }

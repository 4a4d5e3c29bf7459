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
int gm__mapping_bind(void *mapping, size_t bytes, int mode, const uint64_t *nodes, size_t node_count) {
  return (int)syscall(SYS_mbind, mapping, bytes, mode, nodes, node_count + 1, 0);
}

bool gm__mapping_prefer(void *mapping, size_t bytes, uint32_t node) {
  enum { NODES = 1024 };
  uint64_t nodes[NODES / 64] = {0};
  if (node >= NODES) return false;
  nodes[node / 64] = UINT64_C(1) << node % 64;
  return gm__mapping_bind(mapping, bytes, MPOL_PREFERRED, nodes, NODES) == 0;
}

void gm__mapping_unback(void *at, size_t bytes) { madvise(at, bytes, MADV_DONTNEED); }

void gm__mapping_release(void *mapping, size_t bytes) { munmap(mapping, bytes); }

#include "core/base/mapping.h"

#include <sys/mman.h>

void *gm__mapping_new(size_t bytes) {
  void *mapping = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return mapping == MAP_FAILED ? NULL : mapping;
}

void *gm__mapping_grow(void *mapping, size_t bytes, size_t more) {
  void *grown = mremap(mapping, bytes, more, MREMAP_MAYMOVE);
  return grown == MAP_FAILED ? NULL : grown;
}

void gm__mapping_unback(void *at, size_t bytes) { madvise(at, bytes, MADV_DONTNEED); }

void gm__mapping_release(void *mapping, size_t bytes) { munmap(mapping, bytes); }

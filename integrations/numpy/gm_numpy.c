#include "gm_numpy.h"

#include <string.h>

#include "../shared/engines.h"

_Static_assert(offsetof(gm_numpy_handler, functions) == 128, "as NumPy has it");
_Static_assert(sizeof(gm_numpy_handler) == 128 + 5 * sizeof(void *), "as NumPy has it");

/* NumPy frees and resizes what it got, also of 0 bytes, so each request gets memory. */
static void *allocate(void *user, size_t bytes) {
  (void)user;
  return gm_engines_host_alloc(bytes ? bytes : 1);
}

static void *allocate_zeroed(void *user, size_t count, size_t bytes_each) {
  if (bytes_each && count > SIZE_MAX / bytes_each) return NULL;
  void *pointer = allocate(user, count * bytes_each);
  return pointer ? memset(pointer, 0, count * bytes_each) : NULL;
}

static void release(void *user, void *pointer, size_t bytes) {
  (void)user, (void)bytes; /* of an array that was resized NumPy may have an old size */
  gm_engines_host_free(pointer);
}

/* A block that is large enough, and not twice as large as needed, stays. */
static void *resize(void *user, void *pointer, size_t bytes) {
  gm_block old;
  if (!pointer) return allocate(user, bytes);
  if (gm_block_of(gm_engines_host_pool(), pointer, &old) || old.address != (uintptr_t)pointer) return NULL;
  if (bytes <= old.bytes && bytes > old.bytes / 2) return pointer;
  void *moved = allocate(user, bytes);
  if (!moved) return NULL;
  memcpy(moved, pointer, bytes < old.bytes ? bytes : (size_t)old.bytes);
  release(user, pointer, 0);
  return moved;
}

const gm_numpy_handler gm_numpy = {
    .name = "gm", .version = 1, .functions = {NULL, allocate, allocate_zeroed, resize, release}};

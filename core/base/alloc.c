#include "core/base/alloc.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/error.h"
#include "core/base/mapping.h"
#include "core/base/shadow.h"

/* Invariant: every byte of host memory passes through these functions, with its size at both ends. So a host program
 * can account for it, and a test can fail each request. The size alone says whether memory without a host program's
 * hooks is a mapping of its own. */

/* An object that fills several cache lines begins with one, so threads that share it share the lines that its struct
 * shows. */
enum { ALLOC_ALIGN = 16, ALLOC_LINE = 64, ALLOC_LINES_FROM = 256, ALLOC_MAPPED = 1 << 20 };

/* A sanitizer watches only memory of the C library. */
static bool alloc_is_large(size_t bytes) { return bytes >= ALLOC_MAPPED && !gm__shadow_present(); }

static void *alloc_libc(void *user, size_t bytes, size_t align) {
  (void)user;
  void *ptr = NULL;
  if (alloc_is_large(bytes)) return gm__mapping_new(bytes);
  if (align < sizeof(void *)) align = sizeof(void *);
  return posix_memalign(&ptr, align, bytes) == 0 ? ptr : NULL;
}

static void alloc_libc_release(void *user, void *ptr, size_t bytes) {
  (void)user;
  if (alloc_is_large(bytes)) {
    gm__mapping_release(ptr, bytes);
  } else {
    free(ptr);
  }
}

const gm_services *gm__default_services(void) {
  static const gm_services services = {.alloc = alloc_libc, .release = alloc_libc_release};
  return &services;
}

gm_status gm__services_check(const gm_services *services, gm_error *err) {
  if (!services) return GM_OK;
  for (size_t i = 0; i < sizeof services->reserved / sizeof *services->reserved; i++) {
    if (services->reserved[i]) return gm__bad_argument(err, "gm_services", "`services->reserved` must be NULL");
  }
  if (!services->alloc == !services->release) return GM_OK;
  return gm__bad_argument(err, "gm_services", "`services` has %s but no %s: give both or neither",
                          services->alloc ? "alloc" : "release", services->alloc ? "release" : "alloc");
}

static const gm_services *alloc_owner(const gm_services *services) {
  return services && services->alloc ? services : gm__default_services();
}

static bool alloc_is_mapped(const gm_services *owner, size_t bytes) {
  return owner->alloc == alloc_libc && alloc_is_large(bytes);
}

static void *alloc_zeroed(const gm_services *services, size_t bytes, size_t align) {
  const gm_services *owner = alloc_owner(services);
  if (bytes == 0) bytes = 1;
  if (bytes > PTRDIFF_MAX) return NULL;
  void *ptr = owner->alloc(owner->user, bytes, align);
  return !ptr || alloc_is_mapped(owner, bytes) ? ptr : memset(ptr, 0, bytes);
}

void *gm__alloc(const gm_services *services, size_t bytes) {
  return alloc_zeroed(services, bytes, bytes < ALLOC_LINES_FROM ? ALLOC_ALIGN : ALLOC_LINE);
}

void *gm__alloc_plain(const gm_services *services, size_t bytes) { return alloc_zeroed(services, bytes, ALLOC_ALIGN); }

void *gm__alloc_array(const gm_services *services, size_t count, size_t size) {
  if (size && count > SIZE_MAX / size) return NULL;
  return gm__alloc(services, count * size);
}

void gm__release(const gm_services *services, void *ptr, size_t bytes) {
  const gm_services *owner = alloc_owner(services);
  if (ptr) owner->release(owner->user, ptr, bytes ? bytes : 1);
}

void gm__alloc_unback(const gm_services *services, size_t block_bytes, void *at, size_t bytes) {
  if (alloc_is_mapped(alloc_owner(services), block_bytes)) gm__mapping_unback(at, bytes);
}

/* Grows a mapping where it is, or moves its pages. NULL: it is none, or the system refuses. */
static void *alloc_grow_mapping(const gm_services *owner, void *old, size_t old_bytes, size_t new_bytes) {
  if (!old || new_bytes < old_bytes || new_bytes > PTRDIFF_MAX || !alloc_is_mapped(owner, old_bytes)) return NULL;
  return gm__mapping_grow(old, old_bytes, new_bytes);
}

bool gm__grow(const gm_services *services, void *pointer_at, size_t old_bytes, size_t new_bytes) {
  void *old;
  memcpy(&old, pointer_at, sizeof old); /* the caller has a T *, not a void *, so copy its bytes */
  void *moved = alloc_grow_mapping(alloc_owner(services), old, old_bytes, new_bytes);
  void *grown = moved ? moved : gm__alloc(services, new_bytes);
  if (!grown) return false;
  if (old && !moved) memcpy(grown, old, old_bytes < new_bytes ? old_bytes : new_bytes);
  memcpy(pointer_at, &grown, sizeof grown);
  if (!moved) gm__release(services, old, old_bytes); /* last: a forked child must not find freed memory */
  return true;
}

#include "core/base/alloc.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/error.h"

/* Invariant: every byte of host memory passes through these functions, with its size at both ends. So a host program
 * can account for it, and a test can fail each request. */

/* An object that fills several cache lines begins with one, so threads that share it share the lines that its struct
 * shows. */
enum { ALLOC_ALIGN = 16, ALLOC_LINE = 64, ALLOC_LINES_FROM = 256 };

static void *alloc_libc(void *user, size_t bytes, size_t align) {
  (void)user;
  void *ptr = NULL;
  if (align < sizeof(void *)) align = sizeof(void *);
  return posix_memalign(&ptr, align, bytes) == 0 ? ptr : NULL;
}

static void alloc_libc_release(void *user, void *ptr, size_t bytes) {
  (void)user;
  (void)bytes;
  free(ptr);
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

void *gm__alloc(const gm_services *services, size_t bytes) {
  const gm_services *owner = alloc_owner(services);
  if (bytes == 0) bytes = 1;
  if (bytes > PTRDIFF_MAX) return NULL;
  void *ptr = owner->alloc(owner->user, bytes, bytes < ALLOC_LINES_FROM ? ALLOC_ALIGN : ALLOC_LINE);
  return ptr ? memset(ptr, 0, bytes) : NULL;
}

void *gm__alloc_array(const gm_services *services, size_t count, size_t size) {
  if (size && count > SIZE_MAX / size) return NULL;
  return gm__alloc(services, count * size);
}

void gm__release(const gm_services *services, void *ptr, size_t bytes) {
  const gm_services *owner = alloc_owner(services);
  if (ptr) owner->release(owner->user, ptr, bytes ? bytes : 1);
}

bool gm__grow(const gm_services *services, void *pointer_at, size_t old_bytes, size_t new_bytes) {
  void *old;
  memcpy(&old, pointer_at, sizeof old); /* the caller has a T *, not a void *, so copy its bytes */
  void *grown = gm__alloc(services, new_bytes);
  if (!grown) return false;
  if (old) memcpy(grown, old, old_bytes < new_bytes ? old_bytes : new_bytes);
  gm__release(services, old, old_bytes);
  memcpy(pointer_at, &grown, sizeof grown);
  return true;
}

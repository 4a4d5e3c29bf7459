#include "backends/cpu/cpu_movable.h"

#include <errno.h>
#include <string.h>

#include "backends/cpu/cpu_numa.h"
#include "backends/cpu/cpu_pages.h"

#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4 /* Linux 5.7; older headers do not have it */
#endif

/* Invariant: `at` and `home` are never both set. A move to a fixed address removes the old mapping there, even where
 * the move then fails. So gm fixes only addresses in its own reserved ranges. After a failed move it reserves them
 * again, because another thread's mapping could come there. The system chooses the address of a home. */

/* Move pages to a home; the addresses stay reserved. NULL: errno says why. */
static unsigned char *movable_home(const gm__cpu_syms *sys, unsigned char *from, uint64_t bytes) {
  unsigned char *hint = gm__cpu_pages_map(sys, GM__CPU_PAGES_ADDRESSES, bytes, gm__cpu_pages_align(bytes, 0));
  if (hint) sys->munmap(hint, bytes); /* without the hint, Linux before 6.7 chooses an address that splits huge pages */
  void *home = sys->mremap(from, bytes, bytes, MREMAP_MAYMOVE | MREMAP_DONTUNMAP, hint);
  return home == MAP_FAILED ? NULL : home;
}

/* Move pages out of a home, which is then gone. False: errno says why. */
static bool movable_leave(const gm__cpu_syms *sys, unsigned char *home, unsigned char *to, uint64_t bytes) {
  if (sys->mremap(home, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, to) != MAP_FAILED) return true;
  const int code = errno;
  gm__cpu_pages_retake(sys, to, bytes);
  errno = code;
  return false;
}

/* Move pages to `to`, also those that stay in a reserved range: nothing else may come there meanwhile. */
static bool movable_bring(const gm__cpu_syms *sys, const gm__cpu_physical *physical, unsigned char *to) {
  const uint64_t bytes = physical->bytes;
  if (!physical->stays) return movable_leave(sys, physical->home, to, bytes);
  const int flags = MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP;
  if (sys->mremap(physical->home, bytes, bytes, flags, to) == MAP_FAILED) {
    const int code = errno;
    gm__cpu_pages_retake(sys, to, bytes);
    errno = code;
    return false;
  }
  gm__cpu_pages_empty(sys, physical->home, bytes); /* only for order: no pages are left there */
  return true;
}

bool gm__cpu_movable_try(const gm__cpu_syms *sys) {
  const uint64_t page = gm__cpu_page();
  unsigned char *begin = gm__cpu_pages_map(sys, GM__CPU_PAGES_MEMORY, page, page);
  if (!begin) return false;
  unsigned char *home = movable_home(sys, begin, page);
  const int code = errno;
  if (home) sys->munmap(home, page);
  sys->munmap(begin, page);
  errno = code;
  return home != NULL;
}

/* Make new pages. Their node and size are told to the system before anybody touches them. Huge pages are only advice.
 */
static gm_status movable_make(const gm__cpu_device *device, unsigned char *at, uint64_t bytes, gm_error *err) {
  if (!gm__cpu_pages_renew(device->sys, at, bytes)) return gm__cpu_pages_refused(err, "mmap", errno, bytes);
  const gm_status status = gm__cpu_numa_bind(&device->options->numa, device->sys, at, bytes, err);
  if (status) {
    gm__cpu_pages_empty(device->sys, at, bytes);
    return status;
  }
  device->sys->madvise(at, bytes, MADV_HUGEPAGE);
  return GM_OK;
}

gm_status gm__cpu_movable_place(const gm__cpu_device *device, gm__cpu_physical *physical, unsigned char *at,
                                gm_error *err) {
  if (physical->stays && physical->home == at) {
    physical->home = NULL;
    physical->stays = false;
    physical->at = at;
    return GM_OK;
  }
  if (physical->home && !movable_bring(device->sys, physical, at)) {
    return gm__cpu_pages_refused(err, "mremap", errno, physical->bytes);
  }
  const gm_status status = physical->home ? GM_OK : movable_make(device, at, physical->bytes, err);
  if (status) return status;
  physical->home = NULL;
  physical->stays = false;
  physical->at = at;
  return GM_OK;
}

/* The system cannot move pages at once where the host has locked or advised a part of them. Copy those. */
static unsigned char *movable_copy(const gm__cpu_syms *sys, const gm__cpu_physical *physical) {
  const uint64_t bytes = physical->bytes;
  unsigned char *home = gm__cpu_pages_map(sys, GM__CPU_PAGES_MEMORY, bytes, gm__cpu_pages_align(bytes, 0));
  if (!home) return NULL;
  memcpy(home, physical->at, bytes);
  if (gm__cpu_pages_empty(sys, physical->at, bytes)) return home;
  const int code = errno;
  sys->munmap(home, bytes);
  errno = code;
  return NULL;
}

/* Bring the pages to a home, and leave no memory at the old addresses. NULL: errno says why, and nothing has changed.
 */
static unsigned char *movable_park(const gm__cpu_syms *sys, const gm__cpu_physical *physical) {
  unsigned char *home = movable_home(sys, physical->at, physical->bytes);
  if (!home) return errno == EFAULT ? movable_copy(sys, physical) : NULL;
  if (gm__cpu_pages_empty(sys, physical->at, physical->bytes)) return home;
  const int code = errno;
  if (!movable_leave(sys, home, physical->at, physical->bytes)) return home;
  errno = code;
  return NULL;
}

bool gm__cpu_movable_take(const gm__cpu_syms *sys, gm__cpu_physical *physical) {
  unsigned char *home = movable_park(sys, physical);
  if (!home) return false;
  physical->home = home;
  physical->at = NULL;
  return true;
}

void gm__cpu_movable_stay(gm__cpu_physical *physical) {
  physical->home = physical->at;
  physical->at = NULL;
  physical->stays = true;
}

bool gm__cpu_movable_leave(const gm__cpu_syms *sys, gm__cpu_physical *physical) {
  unsigned char *const from = physical->home;
  physical->at = from;
  unsigned char *home = movable_park(sys, physical);
  physical->at = NULL;
  if (!home) return false;
  physical->home = home;
  physical->stays = false;
  return true;
}

/* The addresses of pages that stay are a reserved range's. Without a mapping to spare they keep empty pages. */
void gm__cpu_movable_discard(const gm__cpu_syms *sys, gm__cpu_physical *physical) {
  if (!physical->home) return;
  if (!physical->stays) {
    sys->munmap(physical->home, physical->bytes);
  } else if (!gm__cpu_pages_empty(sys, physical->home, physical->bytes)) {
    sys->madvise(physical->home, physical->bytes, MADV_DONTNEED);
  }
  physical->home = NULL;
  physical->stays = false;
}

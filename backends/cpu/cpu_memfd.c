#include "backends/cpu/cpu_memfd.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "backends/cpu/cpu_pages.h"
#include "core/base/error.h"
#include "core/base/limits.h"

#ifndef MFD_HUGE_2MB
#define MFD_HUGE_2MB (21u << 26)
#endif

enum {
  MEMFD_SEALS = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL, /* so nobody can add a seal against writing either */
  MEMFD_STEP = 64 << 20                                    /* a signal undoes all that one fallocate has taken */
};

static gm_status memfd_populate(const gm__cpu_syms *sys, int fd, uint64_t bytes, gm_error *err) {
  for (uint64_t at = 0; at < bytes;) {
    const uint64_t step = bytes - at < MEMFD_STEP ? bytes - at : MEMFD_STEP;
    if (sys->fallocate(fd, 0, (off_t)at, (off_t)step) == 0) {
      at += step;
    } else if (errno != EINTR) {
      return gm__cpu_pages_refused(err, "fallocate", errno, bytes);
    }
  }
  return GM_OK;
}

/* A policy that is set on a mapping of a memfd belongs to its pages. The policy stays when the mapping goes. */
static gm_status memfd_place(const gm__cpu_device *device, int fd, uint64_t bytes, gm_error *err) {
  const gm__cpu_syms *sys = device->sys;
  if (device->options->numa.policy == GM__CPU_NUMA_DEFAULT) return GM_OK;
  void *begin = sys->mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (begin == MAP_FAILED) return gm__cpu_pages_refused(err, "mmap", errno, bytes);
  const gm_status status = gm__cpu_numa_bind(&device->options->numa, sys, begin, bytes, err);
  sys->munmap(begin, bytes);
  return status;
}

static gm_status memfd_size(const gm__cpu_device *device, int fd, uint64_t bytes, gm_error *err) {
  const gm__cpu_syms *sys = device->sys;
  if (!gm__limit_allows_file(bytes)) return gm__cpu_pages_refused(err, "ftruncate", EFBIG, bytes);
  if (sys->ftruncate(fd, (off_t)bytes) != 0) return gm__cpu_pages_refused(err, "ftruncate", errno, bytes);
  if (sys->add_seals(fd, MEMFD_SEALS) != 0) return gm__cpu_pages_refused(err, "F_ADD_SEALS", errno, bytes);
  const gm_status status = memfd_place(device, fd, bytes, err);
  return status ? status : memfd_populate(sys, fd, bytes, err);
}

/* Check `other`, the answer of duplicating `fd`. */
static gm_status memfd_duplicated(int fd, int other, int *out_fd, gm_error *err) {
  if (other < 0 && errno == EBADF) return gm__bad_argument(err, "cpu share", "`fd` %d is no open descriptor", fd);
  if (other < 0) return gm__cpu_pages_refused(err, "F_DUPFD_CLOEXEC", errno, 0);
  *out_fd = other;
  return GM_OK;
}

gm_status gm__cpu_memfd_give_out(const gm__cpu_device *device, int fd, int *out_fd, gm_error *err) {
  return memfd_duplicated(fd, device->sys->give_out(fd), out_fd, err);
}

static int memfd_create_one(const gm__cpu_syms *sys, bool hugetlb) {
  return sys->memfd_create("gm", MFD_CLOEXEC | MFD_ALLOW_SEALING | (hugetlb ? MFD_HUGETLB | MFD_HUGE_2MB : 0));
}

/* The page, or a reason that may pass: a lack at this moment does not mean that the system cannot make them. */
static bool memfd_try_page(const gm__cpu_syms *sys, int fd, uint64_t page) {
  const bool made = sys->ftruncate(fd, (off_t)page) == 0 && sys->add_seals(fd, MEMFD_SEALS) == 0 &&
                    sys->fallocate(fd, 0, 0, (off_t)page) == 0;
  return made || errno == EINTR || errno == ENOMEM || errno == ENOSPC;
}

bool gm__cpu_memfd_try(const gm__cpu_device *device, bool hugetlb) {
  const gm__cpu_syms *sys = device->sys;
  const uint64_t page = hugetlb ? GM__CPU_HUGE_PAGE : gm__cpu_page();
  const int fd = memfd_create_one(sys, hugetlb);
  if (fd < 0) return errno == EMFILE || errno == ENFILE || errno == ENOMEM;
  const bool can = !gm__limit_allows_file(page) || memfd_try_page(sys, fd, page);
  const int code = errno;
  sys->close(fd);
  errno = code;
  return can;
}

gm_status gm__cpu_memfd_make(const gm__cpu_device *device, uint64_t bytes, bool hugetlb, int *out_fd, gm_error *err) {
  const gm__cpu_syms *sys = device->sys;
  if (bytes > GM__CPU_TOO_LARGE) {
    return gm__fail(err, GM_ERR_ALLOCATION_TOO_LARGE, "memfd_create", "%llu bytes are more than an address space",
                    (unsigned long long)bytes);
  }
  const int fd = memfd_create_one(sys, hugetlb);
  if (fd < 0) return gm__cpu_pages_refused(err, "memfd_create", errno, bytes);
  const gm_status status = memfd_size(device, fd, bytes, err);
  if (status) {
    sys->close(fd);
    return status;
  }
  *out_fd = fd;
  return GM_OK;
}

/* The system would fill a hole at the first access. Without memory for it, that access ends the process. */
static gm_status memfd_check(const gm__cpu_syms *sys, int fd, uint64_t bytes, gm_error *err) {
  struct stat got;
  const int seals = sys->get_seals(fd);
  if (seals < 0 || !(seals & F_SEAL_SHRINK)) {
    return gm__bad_argument(err, "cpu share", "`fd` is no memory that is sealed against shrinking");
  }
  const int mode = sys->get_flags(fd) & O_ACCMODE; /* a failure (-1) gives none of the modes */
  if (mode != O_RDWR || seals & (F_SEAL_WRITE | F_SEAL_FUTURE_WRITE)) {
    return gm__bad_argument(err, "cpu share", "`fd` cannot be written");
  }
  if (sys->fstat(fd, &got) != 0) return gm__cpu_pages_refused(err, "fstat", errno, bytes);
  if (got.st_size < 0 || (uint64_t)got.st_size < bytes || (uint64_t)got.st_blocks * 512 < bytes) {
    return gm__bad_argument(err, "cpu share", "`fd` has %lld bytes, %lld of them there, not %llu",
                            (long long)got.st_size, (long long)got.st_blocks * 512, (unsigned long long)bytes);
  }
  return GM_OK;
}

gm_status gm__cpu_memfd_adopt(const gm__cpu_device *device, int fd, uint64_t bytes, int *out_fd, gm_error *err) {
  int other = -1;
  gm_status status = memfd_duplicated(fd, device->sys->duplicate(fd), &other, err);
  if (status) return status;
  status = memfd_check(device->sys, other, bytes, err);
  if (status) {
    device->sys->close(other);
    return status;
  }
  *out_fd = other;
  return GM_OK;
}

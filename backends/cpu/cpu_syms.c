#include "backends/cpu/cpu_syms.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "core/base/error.h"
#include "core/base/mapping.h"

static void *syms_mremap(void *address, size_t old_bytes, size_t bytes, int flags, void *to) {
  return mremap(address, old_bytes, bytes, flags, to);
}

static int syms_add_seals(int fd, int seals) { return fcntl(fd, F_ADD_SEALS, seals); }

static int syms_get_seals(int fd) { return fcntl(fd, F_GET_SEALS); }

static int syms_get_flags(int fd) { return fcntl(fd, F_GETFL); }

/* The new descriptor is never 0 to 2. Where the host has closed those, some code still prints to them. */
static int syms_duplicate(int fd) { return fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1); }

static void *syms_hooked(const gm_backend_host *host, const char *symbol, void *real) {
  return host->symbol_hook ? host->symbol_hook(host->symbol_hook_user, "cpu", symbol, real) : real;
}

gm_status gm__cpu_syms_load(const gm_backend_host *host, gm__cpu_syms *out, gm_error *err) {
  gm__cpu_syms syms = {.mmap = mmap,
                       .munmap = munmap,
                       .mremap = syms_mremap,
                       .mprotect = mprotect,
                       .madvise = madvise,
                       .mlock = mlock,
                       .munlock = munlock,
                       .mbind = gm__mapping_bind,
                       .memfd_create = memfd_create,
                       .ftruncate = ftruncate,
                       .fallocate = fallocate,
                       .add_seals = syms_add_seals,
                       .get_seals = syms_get_seals,
                       .get_flags = syms_get_flags,
                       .fstat = fstat,
                       .duplicate = syms_duplicate,
                       .give_out = syms_duplicate,
                       .close = close};
  void *entry;
#define X(fault, result, symbol, parameters, arguments)                                               \
  memcpy(&entry, &syms.symbol, sizeof entry);                                                         \
  entry = syms_hooked(host, #symbol, entry);                                                          \
  if (!entry) return gm__fail(err, GM_ERR_UNAVAILABLE, #symbol, "the hook took away what is needed"); \
  memcpy(&syms.symbol, &entry, sizeof entry);
#include "backends/cpu/cpu_syms.def"
#undef X
  *out = syms;
  return GM_OK;
}

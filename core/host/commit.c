#include "core/host/commit.h"

#include <string.h>

#include "core/base/decimal.h"
#include "core/base/saturate.h"
#include "core/host/host_readers.h"

enum { COMMIT_STRICT = 2, COMMIT_IPC_LOCK = 14 }; /* vm.overcommit_memory; the bit of CAP_IPC_LOCK */

/* The value behind a label; GM_UNKNOWN_BYTES for a word. */
static uint64_t commit_value(const char *text) {
  const char *end;
  uint64_t value;
  return gm__decimal(gm__skip_blanks(text), &end, &value) ? value : GM_UNKNOWN_BYTES;
}

/* "CapEff:\t000001ffffffffff": the bit is in the fourth digit from the end. */
static bool commit_may_lock(const char *line) {
  const size_t length = strlen(line);
  const char digit = length > 8 ? line[length - COMMIT_IPC_LOCK / 4 - 1] : '0';
  return strchr("4567cdef", digit) != NULL; /* bit 2 of the digit */
}

static uint64_t commit_kib(const char *text) { return gm__mul_sat(commit_value(text), 1024); }

static bool commit_status_line(void *user, char *line) {
  gm__host_commit *out = user;
  if (strncmp(line, "VmSize:", 7) == 0) out->address_bytes = commit_kib(line + 7);
  if (strncmp(line, "VmLck:", 6) == 0) out->locked_bytes = commit_kib(line + 6);
  if (strncmp(line, "CapEff:", 7) == 0 && commit_may_lock(line)) out->lock_limit = GM_UNKNOWN_BYTES;
  return true;
}

static bool commit_limit_line(void *user, char *line) {
  static const char locked[] = "Max locked memory", address[] = "Max address space";
  gm__host_commit *out = user;
  if (strncmp(line, locked, sizeof locked - 1) == 0) out->lock_limit = commit_value(line + sizeof locked - 1);
  if (strncmp(line, address, sizeof address - 1) == 0) out->address_limit = commit_value(line + sizeof address - 1);
  return true;
}

static bool commit_mode_line(void *user, char *line) {
  const char *end;
  uint64_t mode;
  ((gm__host_commit *)user)->strict = gm__decimal(line, &end, &mode) && *end == 0 && mode == COMMIT_STRICT;
  return false;
}

void gm__host_commit_read(const char *root, gm__host_commit *out) {
  gm__meminfo info;
  *out = (gm__host_commit){.address_bytes = GM_UNKNOWN_BYTES,
                           .address_limit = GM_UNKNOWN_BYTES,
                           .locked_bytes = GM_UNKNOWN_BYTES,
                           .lock_limit = GM_UNKNOWN_BYTES};
  gm__meminfo_read(root, "/proc/meminfo", &info);
  out->limit_bytes = info.commit_limit;
  out->committed_bytes = info.committed;
  gm__file_lines(root, "/proc/sys/vm/overcommit_memory", commit_mode_line, out);
  gm__file_lines(root, "/proc/self/limits", commit_limit_line, out);
  gm__file_lines(root, "/proc/self/status", commit_status_line, out);
}

static uint64_t commit_over(uint64_t used, uint64_t bytes, uint64_t limit) {
  if (used == GM_UNKNOWN_BYTES || limit == GM_UNKNOWN_BYTES) return 0;
  return gm__sub_sat(gm__add_sat(used, bytes), limit);
}

uint64_t gm__host_commit_lack(const gm__host_commit *commit, uint64_t bytes) {
  const uint64_t address = commit_over(commit->address_bytes, bytes, commit->address_limit);
  return commit->strict ? gm__max(address, commit_over(commit->committed_bytes, bytes, commit->limit_bytes)) : address;
}

uint64_t gm__host_lock_lack(const gm__host_commit *commit, uint64_t bytes) {
  const uint64_t locked = commit->locked_bytes == GM_UNKNOWN_BYTES ? 0 : commit->locked_bytes;
  return commit_over(locked, bytes, commit->lock_limit);
}

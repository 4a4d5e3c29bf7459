#include "core/host/commit.h"

#include <string.h>

#include "core/base/decimal.h"
#include "core/base/limits.h"
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
  if (strncmp(line, "VmData:", 7) == 0) out->data_bytes = commit_kib(line + 7);
  if (strncmp(line, "VmLck:", 6) == 0) out->locked_bytes = commit_kib(line + 6);
  if (strncmp(line, "CapEff:", 7) == 0 && commit_may_lock(line)) out->lock_limit = GM_UNKNOWN_BYTES;
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
                           .address_limit = gm__limit_of(root, GM__LIMIT_ADDRESSES),
                           .data_bytes = GM_UNKNOWN_BYTES,
                           .data_limit = gm__limit_of(root, GM__LIMIT_DATA),
                           .locked_bytes = GM_UNKNOWN_BYTES,
                           .lock_limit = gm__limit_of(root, GM__LIMIT_LOCKED)};
  gm__meminfo_read(root, "/proc/meminfo", &info);
  out->limit_bytes = info.commit_limit;
  out->committed_bytes = info.committed;
  gm__file_lines(root, "/proc/sys/vm/overcommit_memory", commit_mode_line, out);
  gm__file_lines(root, "/proc/self/status", commit_status_line, out);
}

static uint64_t commit_over(uint64_t used, uint64_t bytes, uint64_t limit) {
  if (used == GM_UNKNOWN_BYTES || limit == GM_UNKNOWN_BYTES) return 0;
  return gm__sub_sat(gm__add_sat(used, bytes), limit);
}

static uint64_t commit_strict_lack(const gm__host_commit *commit, uint64_t bytes) {
  return commit->strict ? commit_over(commit->committed_bytes, bytes, commit->limit_bytes) : 0;
}

uint64_t gm__host_commit_lack(const gm__host_commit *commit, uint64_t bytes) {
  const uint64_t address = commit_over(commit->address_bytes, bytes, commit->address_limit);
  const uint64_t data = commit_over(commit->data_bytes, bytes, commit->data_limit);
  return gm__max(gm__max(address, data), commit_strict_lack(commit, bytes));
}

const char *gm__host_commit_name(const gm__host_commit *commit, uint64_t bytes) {
  const uint64_t lack = gm__host_commit_lack(commit, bytes);
  if (!lack) return NULL;
  if (commit_strict_lack(commit, bytes) == lack) return "vm.overcommit_memory";
  const bool address = commit_over(commit->address_bytes, bytes, commit->address_limit) == lack;
  return gm__limit_name(address ? GM__LIMIT_ADDRESSES : GM__LIMIT_DATA);
}

static void commit_leave(gm__host_process *out, uint64_t limit, uint64_t used) {
  if (limit == GM_UNKNOWN_BYTES) return;
  out->total_bytes = gm__min(out->total_bytes, limit);
  out->free_bytes = gm__min(out->free_bytes, used == GM_UNKNOWN_BYTES ? limit : gm__sub_sat(limit, used));
}

/* Most processes have no such limit. Then this reads no file. */
gm__host_process gm__host_process_read(const char *root) {
  gm__host_process out = {GM_UNKNOWN_BYTES, GM_UNKNOWN_BYTES};
  gm__host_commit now = {.address_bytes = GM_UNKNOWN_BYTES, .data_bytes = GM_UNKNOWN_BYTES};
  const uint64_t address = gm__limit_of(root, GM__LIMIT_ADDRESSES), data = gm__limit_of(root, GM__LIMIT_DATA);
  if (address == GM_UNKNOWN_BYTES && data == GM_UNKNOWN_BYTES) return out;
  gm__file_lines(root, "/proc/self/status", commit_status_line, &now);
  commit_leave(&out, address, now.address_bytes);
  commit_leave(&out, data, now.data_bytes);
  return out;
}

uint64_t gm__host_lock_lack(const gm__host_commit *commit, uint64_t bytes) {
  const uint64_t locked = commit->locked_bytes == GM_UNKNOWN_BYTES ? 0 : commit->locked_bytes;
  return commit_over(locked, bytes, commit->lock_limit);
}

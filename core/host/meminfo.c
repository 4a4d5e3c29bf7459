/* One table names every line that is used. Lines are found by name in any order, and the first of a name counts. A
 * line that does not parse is as if absent. */
#include "core/host/host_readers.h"

#include <stddef.h>
#include <string.h>

#include "core/base/decimal.h"
#include "core/base/saturate.h"
#include "gm/memory_info.h"

typedef struct meminfo_key {
  const char *name;
  size_t at;
  const char *unit;
} meminfo_key;

static const meminfo_key meminfo_keys[] = {
    {"MemTotal", offsetof(gm__meminfo, total), "kB"},
    {"MemFree", offsetof(gm__meminfo, free_memory), "kB"},
    {"MemAvailable", offsetof(gm__meminfo, available), "kB"},
    {"Buffers", offsetof(gm__meminfo, buffers), "kB"},
    {"Cached", offsetof(gm__meminfo, cached), "kB"},
    {"Shmem", offsetof(gm__meminfo, shmem), "kB"},
    {"Active(file)", offsetof(gm__meminfo, active_file), "kB"},
    {"Inactive(file)", offsetof(gm__meminfo, inactive_file), "kB"},
    {"SReclaimable", offsetof(gm__meminfo, reclaimable_slab), "kB"},
    {"CommitLimit", offsetof(gm__meminfo, commit_limit), "kB"},
    {"Committed_AS", offsetof(gm__meminfo, committed), "kB"},
    {"HugePages_Free", offsetof(gm__meminfo, hugepages_free), ""},
    {"Hugepagesize", offsetof(gm__meminfo, hugepage_bytes), "kB"},
};

enum { MEMINFO_KEYS = sizeof meminfo_keys / sizeof *meminfo_keys };

static uint64_t *meminfo_field(gm__meminfo *info, const meminfo_key *key) {
  return (uint64_t *)(void *)((char *)info + key->at);
}

/* "MemFree:  123 kB" behind its colon. */
static bool meminfo_value(const char *text, const char *unit, uint64_t *out) {
  uint64_t value;
  if (!gm__decimal(gm__skip_blanks(text), &text, &value)) return false;
  text = gm__skip_blanks(text);
  size_t length = strlen(unit);
  if (strncmp(text, unit, length) != 0 || *gm__skip_blanks(text + length) != 0) return false;
  if (length && value > UINT64_MAX / 1024) return false;
  *out = length ? value * 1024 : value;
  return true;
}

/* Node files have "Node N " in front of every line. */
static const char *meminfo_skip_node(const char *line) {
  if (strncmp(line, "Node ", 5) != 0) return line;
  uint64_t node;
  const char *end;
  return gm__decimal(line + 5, &end, &node) && *end == ' ' ? gm__skip_blanks(end) : line;
}

static bool meminfo_line(void *user, char *text) {
  gm__meminfo *info = user;
  const char *line = meminfo_skip_node(text);
  const char *colon = strchr(line, ':');
  if (!colon) return true;
  size_t length = (size_t)(colon - line);
  for (size_t i = 0; i < MEMINFO_KEYS; i++) {
    const meminfo_key *key = &meminfo_keys[i];
    if (strlen(key->name) != length || memcmp(key->name, line, length) != 0) continue;
    uint64_t *field = meminfo_field(info, key);
    if (*field == GM_UNKNOWN_BYTES) meminfo_value(colon + 1, key->unit, field);
  }
  return true;
}

gm__file_answer gm__meminfo_read(const char *root, const char *path, gm__meminfo *out) {
  for (size_t i = 0; i < MEMINFO_KEYS; i++) *meminfo_field(out, &meminfo_keys[i]) = GM_UNKNOWN_BYTES;
  return gm__file_lines(root, path, meminfo_line, out);
}

static uint64_t meminfo_or_zero(uint64_t bytes) { return bytes == GM_UNKNOWN_BYTES ? 0 : bytes; }

/* The kernel keeps the smaller of half the page cache and its low watermark; without watermarks the half is the safe
 * side. Cached holds shared memory, which cannot be dropped. */
uint64_t gm__meminfo_estimate(const gm__meminfo *info) {
  if (info->free_memory == GM_UNKNOWN_BYTES) return GM_UNKNOWN_BYTES;
  uint64_t pages;
  if (info->active_file != GM_UNKNOWN_BYTES && info->inactive_file != GM_UNKNOWN_BYTES) {
    pages = gm__add_sat(info->active_file, info->inactive_file);
  } else {
    uint64_t cache = gm__add_sat(meminfo_or_zero(info->cached), meminfo_or_zero(info->buffers));
    pages = gm__sub_sat(cache, meminfo_or_zero(info->shmem));
  }
  uint64_t slab = meminfo_or_zero(info->reclaimable_slab);
  return gm__add_sat(info->free_memory, gm__add_sat(pages / 2, slab / 2));
}

#include "core/base/limits.h"

#include <string.h>
#include <sys/resource.h>

#include "core/base/decimal.h"
#include "core/base/file.h"

static const struct {
  unsigned resource;
  const char *name, *label; /* in /proc/PID/limits */
} limits[GM__LIMITS] = {
    [GM__LIMIT_FILE] = {RLIMIT_FSIZE, "RLIMIT_FSIZE", "Max file size"},
    [GM__LIMIT_DATA] = {RLIMIT_DATA, "RLIMIT_DATA", "Max data size"},
    [GM__LIMIT_ADDRESSES] = {RLIMIT_AS, "RLIMIT_AS", "Max address space"},
    [GM__LIMIT_LOCKED] = {RLIMIT_MEMLOCK, "RLIMIT_MEMLOCK", "Max locked memory"},
    [GM__LIMIT_DESCRIPTORS] = {RLIMIT_NOFILE, "RLIMIT_NOFILE", "Max open files"},
};

typedef struct limits_search {
  const char *label;
  uint64_t value;
} limits_search;

static bool limits_line(void *user, char *line) {
  limits_search *search = user;
  const size_t length = strlen(search->label);
  const char *end;
  uint64_t value;
  if (strncmp(line, search->label, length) != 0) return true;
  if (gm__decimal(gm__skip_blanks(line + length), &end, &value) && (*end == ' ' || *end == 0)) search->value = value;
  return false;
}

uint64_t gm__limit_of(const char *root, gm__limit limit) {
  limits_search search = {limits[limit].label, UINT64_MAX};
  struct rlimit own;
  if (root && *root) {
    gm__file_lines(root, "/proc/self/limits", limits_line, &search);
  } else if (getrlimit(limits[limit].resource, &own) == 0 && own.rlim_cur != RLIM_INFINITY) {
    search.value = own.rlim_cur;
  }
  return search.value;
}

const char *gm__limit_name(gm__limit limit) { return limits[limit].name; }

bool gm__limit_allows_file(uint64_t bytes) { return bytes <= gm__limit_of(NULL, GM__LIMIT_FILE); }

static bool limits_count_line(void *user, char *line) {
  (void)line;
  ++*(uint64_t *)user;
  return true;
}

bool gm__mappings_read(const char *root, gm__mappings *out) {
  char text[32];
  const char *end;
  *out = (gm__mappings){0, 0};
  if (gm__file_text(root, "/proc/sys/vm/max_map_count", text, sizeof text) != GM__FILE_OK) return false;
  if (!gm__decimal(text, &end, &out->most) || (*end && *end != '\n')) return false;
  return gm__file_lines(root, "/proc/self/maps", limits_count_line, &out->count) == GM__FILE_OK;
}

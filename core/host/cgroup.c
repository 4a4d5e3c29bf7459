/* Each level's room comes from its own files, since a group's usage covers all its descendants. Differences stop at 0:
 * usage may exceed a limit for a while. Reading is independent of order and nothing is cached. */
#include "core/host/host_readers.h"

#include <stdio.h>
#include <string.h>

#include "core/base/decimal.h"
#include "core/base/file.h"
#include "core/base/saturate.h"

/* No machine addresses more than 2^57 bytes: a larger limit says "none", whatever the page size it was rounded to. */
#define CGROUP_NO_LIMIT (UINT64_C(1) << 57)

typedef struct cgroup_walk {
  const char *root;
  const char *kind;
  gm__host_scratch *scratch;
  gm__host_bounds *bounds;
  uint64_t lowest_limit;       /* version 1: of every level seen */
  uint64_t hierarchical_limit; /* version 1: of the last level seen */
  uint64_t own_use;            /* version 1: of the last level seen */
} cgroup_walk;

typedef struct cgroup_stat {
  uint64_t inactive_file;
  uint64_t total_inactive_file;
  uint64_t hierarchical_memory_limit;
} cgroup_stat;

const char *gm__cgroup_file(gm__host_scratch *scratch, const char *name) {
  const int length = snprintf(scratch->path, sizeof scratch->path, "%s/%s", scratch->directory, name);
  return length > 0 && (size_t)length < sizeof scratch->path ? scratch->path : NULL;
}

bool gm__cgroup_number(const char *text, uint64_t *out) {
  static const char blanks[] = " \t\r\n";
  text += strspn(text, blanks);
  const char *end = text + 3;
  uint64_t value = GM_UNKNOWN_BYTES;
  if (strncmp(text, "max", 3) != 0 && !gm__decimal(text, &end, &value)) return false;
  if (end[strspn(end, blanks)] != 0) return false;
  *out = value;
  return true;
}

/* The number in a group's file; GM_UNKNOWN_BYTES without one. A file that is there and cannot be understood makes the
 * answer an estimate. */
static uint64_t cgroup_value(const cgroup_walk *walk, const char *name) {
  char text[256];
  uint64_t value = GM_UNKNOWN_BYTES;
  const char *path = gm__cgroup_file(walk->scratch, name);
  if (!path) return GM_UNKNOWN_BYTES;
  gm__file_answer answer = gm__file_text(walk->root, path, text, sizeof text);
  if (answer == GM__FILE_ABSENT) return GM_UNKNOWN_BYTES;
  if (answer != GM__FILE_OK || !gm__cgroup_number(text, &value)) walk->bounds->estimated = true;
  return value;
}

static uint64_t cgroup_limit(const cgroup_walk *walk, const char *name) {
  uint64_t limit = cgroup_value(walk, name);
  return limit > CGROUP_NO_LIMIT ? GM_UNKNOWN_BYTES : limit;
}

static bool cgroup_stat_line(void *user, char *line) {
  cgroup_stat *stat = user;
  char *space = strchr(line, ' ');
  if (!space) return true;
  *space = 0;
  uint64_t *field = NULL;
  if (strcmp(line, "inactive_file") == 0) field = &stat->inactive_file;
  if (strcmp(line, "total_inactive_file") == 0) field = &stat->total_inactive_file;
  if (strcmp(line, "hierarchical_memory_limit") == 0) field = &stat->hierarchical_memory_limit;
  uint64_t value;
  if (field && gm__cgroup_number(space + 1, &value)) *field = value;
  return true;
}

static cgroup_stat cgroup_stat_read(const cgroup_walk *walk) {
  cgroup_stat stat = {GM_UNKNOWN_BYTES, GM_UNKNOWN_BYTES, GM_UNKNOWN_BYTES};
  const char *path = gm__cgroup_file(walk->scratch, "memory.stat");
  if (path) gm__file_lines(walk->root, path, cgroup_stat_line, &stat);
  return stat;
}

/* limit - (usage - reclaimable). Without usage the limit itself is all that can be said. */
static void cgroup_room(cgroup_walk *walk, uint64_t limit, uint64_t usage, uint64_t inactive) {
  if (limit == GM_UNKNOWN_BYTES) return;
  uint64_t room = limit;
  if (usage == GM_UNKNOWN_BYTES || inactive == GM_UNKNOWN_BYTES) walk->bounds->estimated = true;
  if (inactive == GM_UNKNOWN_BYTES) inactive = 0;
  if (usage != GM_UNKNOWN_BYTES) room = gm__sub_sat(limit, gm__sub_sat(usage, inactive));
  gm__host_bound_by(&walk->bounds->room, room, walk->kind, walk->scratch->directory);
}

static void cgroup_level_v2(void *user) {
  cgroup_walk *walk = user;
  uint64_t hard = cgroup_limit(walk, "memory.max");
  uint64_t limit = gm__min(hard, cgroup_limit(walk, "memory.high"));
  if (limit == GM_UNKNOWN_BYTES) return;
  gm__host_bound_by(&walk->bounds->total, hard, walk->kind, walk->scratch->directory);
  cgroup_room(walk, limit, cgroup_value(walk, "memory.current"), cgroup_stat_read(walk).inactive_file);
}

/* Memory plus swap is what memsw charges, so its room bounds memory too. */
static void cgroup_level_v1(void *user) {
  cgroup_walk *walk = user;
  cgroup_stat stat = cgroup_stat_read(walk);
  bool whole_tree = stat.total_inactive_file != GM_UNKNOWN_BYTES;
  uint64_t inactive = whole_tree ? stat.total_inactive_file : stat.inactive_file;
  uint64_t limit = cgroup_limit(walk, "memory.limit_in_bytes");
  uint64_t usage = cgroup_value(walk, "memory.usage_in_bytes");
  gm__host_bound_by(&walk->bounds->total, limit, walk->kind, walk->scratch->directory);
  cgroup_room(walk, limit, usage, inactive);
  uint64_t both = cgroup_limit(walk, "memory.memsw.limit_in_bytes");
  if (both != GM_UNKNOWN_BYTES) {
    cgroup_room(walk, both, cgroup_value(walk, "memory.memsw.usage_in_bytes"), inactive);
  }
  walk->lowest_limit = gm__min(walk->lowest_limit, limit);
  if (stat.hierarchical_memory_limit == GM_UNKNOWN_BYTES) return; /* a level out of sight, or no memory group */
  walk->hierarchical_limit = stat.hierarchical_memory_limit;
  walk->own_use = usage == GM_UNKNOWN_BYTES ? 0 : gm__sub_sat(usage, inactive == GM_UNKNOWN_BYTES ? 0 : inactive);
}

/* A hierarchical limit below everything seen sits on an ancestor that is out of sight. The use of its other
 * descendants is unknown, so the room is only an upper bound. */
static void cgroup_hidden_ancestor(cgroup_walk *walk, uint64_t mem_total) {
  uint64_t limit = walk->hierarchical_limit;
  if (limit > CGROUP_NO_LIMIT || limit >= walk->lowest_limit || limit >= mem_total) return;
  walk->bounds->estimated = true;
  gm__host_bound_by(&walk->bounds->total, limit, "cgroup1", "hierarchical");
  gm__host_bound_by(&walk->bounds->room, gm__sub_sat(limit, walk->own_use), "cgroup1", "hierarchical");
}

void gm__cgroup_each_level(gm__host_scratch *scratch, const gm__cgroup_place *place, void (*level)(void *user),
                           void *user) {
  char *directory = scratch->directory;
  size_t length = strlen(place->mount);
  memcpy(directory, place->mount, length + 1);
  level(user);
  for (const char *at = place->below; *at == '/';) {
    size_t step = 1 + strcspn(at + 1, "/");
    memcpy(directory + length, at, step);
    length += step;
    directory[length] = 0;
    level(user);
    at += step;
  }
}

void gm__cgroup_bound(const char *root, uint64_t mem_total, gm__host_scratch *scratch, gm__host_bounds *bounds) {
  if (!gm__cgroup_find(root, scratch)) bounds->estimated = true;
  cgroup_walk walk = {.root = root,
                      .scratch = scratch,
                      .bounds = bounds,
                      .lowest_limit = GM_UNKNOWN_BYTES,
                      .hierarchical_limit = GM_UNKNOWN_BYTES};
  if (scratch->v1.found) {
    walk.kind = "cgroup1";
    gm__cgroup_each_level(scratch, &scratch->v1, cgroup_level_v1, &walk);
    cgroup_hidden_ancestor(&walk, mem_total);
  }
  if (scratch->v2.found) {
    walk.kind = "cgroup2";
    gm__cgroup_each_level(scratch, &scratch->v2, cgroup_level_v2, &walk);
  }
}

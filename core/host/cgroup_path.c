/* /proc/self/cgroup names the group, /proc/self/mountinfo says where it can be seen. Names are used as they are; only
 * mountinfo's octal escapes are decoded. A group that lies outside the mount is represented by the mount point alone.
 */
#include "core/host/host_readers.h"

#include <stdio.h>
#include <string.h>

typedef struct cgroup_paths {
  bool has_v1;
  bool has_v2;
  char *v1; /* GM__FILE_PATH_SIZE each */
  char *v2;
} cgroup_paths;

typedef struct cgroup_mounts {
  const cgroup_paths *paths;
  gm__cgroup_place *v1;
  gm__cgroup_place *v2;
} cgroup_mounts;

/* Whether a comma-separated list holds `word`. */
static bool cgroup_list_has(const char *list, const char *word) {
  size_t length = strlen(word);
  for (const char *at = list; at; at = strchr(at, ',')) {
    if (*at == ',') at++;
    if (strncmp(at, word, length) == 0 && (at[length] == ',' || at[length] == 0)) return true;
  }
  return false;
}

static bool cgroup_copy(const char *text, char *out) {
  if (*text != '/' || strlen(text) >= GM__FILE_PATH_SIZE) return false;
  memcpy(out, text, strlen(text) + 1);
  return true;
}

/* "4:memory:/a/b" or "0::/a/b". */
static bool cgroup_self_line(void *user, char *line) {
  cgroup_paths *paths = user;
  char *controllers = strchr(line, ':');
  char *path = controllers ? strchr(controllers + 1, ':') : NULL;
  if (!path) return true;
  *controllers++ = 0;
  *path++ = 0;
  if (cgroup_list_has(controllers, "memory")) {
    if (!paths->has_v1) paths->has_v1 = cgroup_copy(path, paths->v1);
  } else if (strcmp(line, "0") == 0 && *controllers == 0) {
    if (!paths->has_v2) paths->has_v2 = cgroup_copy(path, paths->v2);
  }
  return true;
}

static bool cgroup_is_octal(const char *digits) {
  for (int i = 0; i < 3; i++) {
    if (digits[i] < '0' || digits[i] > '7') return false;
  }
  return digits[0] <= '3';
}

/* "my\040group" in place. */
static void cgroup_unescape(char *text) {
  char *to = text;
  for (const char *from = text; *from; to++) {
    if (*from == '\\' && cgroup_is_octal(from + 1)) {
      *to = (char)((from[1] - '0') << 6 | (from[2] - '0') << 3 | (from[3] - '0'));
      from += 4;
    } else {
      *to = *from++;
    }
  }
  *to = 0;
}

/* Whether a component of the path is "..": it leaves what this process may name. */
static bool cgroup_leaves(const char *path) {
  for (const char *at = path; (at = strstr(at, "/..")); at += 3) {
    if (at[3] == '/' || at[3] == 0) return true;
  }
  return false;
}

/* The rest of `path` below the mount's root; NULL when it is not there. */
static const char *cgroup_below(const char *path, const char *mount_root) {
  size_t length = strcmp(mount_root, "/") == 0 ? 0 : strlen(mount_root);
  if (cgroup_leaves(path) || strncmp(path, mount_root, length) != 0) return NULL;
  const char *rest = path + length;
  if (*rest != '/' && *rest != 0) return NULL;
  return strcmp(rest, "/") == 0 ? "" : rest;
}

/* Choose among mounts. One that shows the group is better than one that does not. One that shows more levels is
 * better than one with fewer. A later mount on the same point hides the earlier one. */
static bool cgroup_is_better(const gm__cgroup_place *place, bool inside, size_t root_length, const char *mount) {
  if (!place->found || strcmp(place->mount, mount) == 0) return true;
  if (inside != place->inside) return inside;
  return inside && root_length < place->root_length;
}

static void cgroup_offer(gm__cgroup_place *place, const char *path, const char *mount_root, const char *mount) {
  const char *below = cgroup_below(path, mount_root);
  size_t length = strlen(mount_root);
  if (strlen(mount) >= sizeof place->mount || !cgroup_is_better(place, below != NULL, length, mount)) return;
  place->found = true;
  place->inside = below != NULL;
  place->root_length = length;
  snprintf(place->mount, sizeof place->mount, "%s", strcmp(mount, "/") == 0 ? "" : mount);
  snprintf(place->below, sizeof place->below, "%s", below ? below : "");
}

enum { CGROUP_MOUNT_FIELDS = 64, CGROUP_MOUNT_ROOT = 3, CGROUP_MOUNT_POINT = 4, CGROUP_MOUNT_OPTIONAL = 6 };

/* The fields of a mountinfo line: `out_type` is the index of the file system type, behind the lone "-", `out_last` that
 * of the super options. */
static bool cgroup_mount_fields(char *line, char **fields, size_t *out_type, size_t *out_last) {
  size_t count = 0, type = 0;
  char *save = NULL;
  for (char *field = strtok_r(line, " ", &save); field; field = strtok_r(NULL, " ", &save)) {
    if (count == CGROUP_MOUNT_FIELDS) return false;
    if (!type && count >= CGROUP_MOUNT_OPTIONAL && strcmp(field, "-") == 0) type = count + 1;
    fields[count++] = field;
  }
  *out_type = type;
  *out_last = count - 1;
  return type && count >= type + 2; /* type and options; an empty source leaves no field */
}

/* "36 29 0:33 /root /mount/point rw,nosuid shared:15 - cgroup cgroup rw,memory" */
static bool cgroup_mount_line(void *user, char *line) {
  cgroup_mounts *mounts = user;
  char *fields[CGROUP_MOUNT_FIELDS];
  size_t type, last;
  if (!cgroup_mount_fields(line, fields, &type, &last)) return true;
  char *mount_root = fields[CGROUP_MOUNT_ROOT], *mount = fields[CGROUP_MOUNT_POINT];
  cgroup_unescape(mount_root);
  cgroup_unescape(mount);
  if (strcmp(fields[type], "cgroup2") == 0 && mounts->paths->has_v2) {
    cgroup_offer(mounts->v2, mounts->paths->v2, mount_root, mount);
  } else if (strcmp(fields[type], "cgroup") == 0 && mounts->paths->has_v1 && cgroup_list_has(fields[last], "memory")) {
    cgroup_offer(mounts->v1, mounts->paths->v1, mount_root, mount);
  }
  return true;
}

/* Where distributions mount the trees, for a process that has no mountinfo. */
static void cgroup_usual_mounts(const cgroup_mounts *mounts) {
  const cgroup_paths *paths = mounts->paths;
  if (paths->has_v1) cgroup_offer(mounts->v1, paths->v1, "/", "/sys/fs/cgroup/memory");
  if (!paths->has_v2) return;
  cgroup_offer(mounts->v2, paths->v2, "/", paths->has_v1 ? "/sys/fs/cgroup/unified" : "/sys/fs/cgroup");
}

bool gm__cgroup_find(const char *root, gm__host_scratch *scratch) {
  scratch->v1.found = scratch->v2.found = false;
  cgroup_paths paths = {.v1 = scratch->own[0], .v2 = scratch->own[1]};
  char *line = scratch->line;
  gm__file_answer answer = gm__file_long_lines(root, "/proc/self/cgroup", line, cgroup_self_line, &paths);
  cgroup_mounts mounts = {&paths, &scratch->v1, &scratch->v2};
  if (gm__file_long_lines(root, "/proc/self/mountinfo", line, cgroup_mount_line, &mounts) != GM__FILE_OK) {
    cgroup_usual_mounts(&mounts);
  }
  return answer == GM__FILE_OK || answer == GM__FILE_ABSENT;
}

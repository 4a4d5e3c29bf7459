/* Where the files of this process's memory groups are (rule H6). */
#ifndef GM_CORE_DEVICE_CGROUP_PATH_H
#define GM_CORE_DEVICE_CGROUP_PATH_H

#include <stdbool.h>
#include <stddef.h>

#include "core/base/file.h"

/* One tree: every level from `mount` down to mount + below is to be evaluated. */
typedef struct gm__cgroup_place {
  bool found;
  bool inside;        /* the group lies below the mount's root, so `below` leads to it */
  size_t root_length; /* of the mount's root: the shortest shows the most levels */
  char mount[GM__FILE_PATH_SIZE];
  char below[GM__FILE_PATH_SIZE]; /* "" or "/a/b" */
} gm__cgroup_place;

/* Find the trees of version 1 and 2. False: /proc/self/cgroup exists and could not be read, so limits may be missed. */
bool gm__cgroup_find(const char *root, gm__cgroup_place *out_v1, gm__cgroup_place *out_v2);

#endif

/* The readers of the kernel's files about the host. host_info.c puts their answers together. */
#ifndef GM_CORE_HOST_HOST_READERS_H
#define GM_CORE_HOST_HOST_READERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/alloc.h"
#include "core/base/file.h"
#include "core/base/id_set.h"
#include "gm/memory_info.h"

/* ---- meminfo files, of the machine and of one NUMA node: rules H1, H4, H5 ---- */

/* Bytes, or GM_UNKNOWN_BYTES where the line is missing or does not parse; hugepages_free is a count. */
typedef struct gm__meminfo {
  uint64_t total;
  uint64_t free_memory;
  uint64_t available;
  uint64_t buffers;
  uint64_t cached;
  uint64_t shmem;
  uint64_t active_file;
  uint64_t inactive_file;
  uint64_t reclaimable_slab;
  uint64_t commit_limit;
  uint64_t committed;
  uint64_t hugepages_free;
  uint64_t hugepage_bytes;
} gm__meminfo;

/* Read one file. Every figure is unknown where the file cannot be read. */
gm__file_answer gm__meminfo_read(const char *root, const char *path, gm__meminfo *out);

/* An estimate of MemAvailable, for kernels that do not give it (rule H4). Unknown without MemFree. */
uint64_t gm__meminfo_estimate(const gm__meminfo *info);

/* ---- ZFS: rule H12 ---- */

/* False: the machine has no ZFS. Otherwise *out is what its cache gives back on demand, of the `used_bytes` that the
 * machine's figures call used; 0 where that is not known. */
bool gm__zfs_read(const char *root, uint64_t used_bytes, uint64_t *out);

/* ---- NUMA nodes: rule H5 ---- */

typedef struct gm__numa {
  uint32_t count;       /* nodes found */
  bool left_out;        /* a node that has memory is not allowed */
  bool unread;          /* whether a node was left out could not be read */
  bool complete;        /* every allowed node told its total and its free memory */
  uint64_t total_bytes; /* of the allowed nodes */
  uint64_t room_bytes;  /* of the allowed nodes: free, page cache and reclaimable slab, an upper bound */
  uint32_t listed;      /* entries of `nodes` */
  gm_host_node nodes[GM_HOST_NODES_MAX]; /* by rising id */
} gm__numa;

/* ---- bounds ---- */

/* The smallest of all bounds of the host's memory, with the name of its source. Callers offer sources in the order of
 * their rank: of equal values the earlier one stays (rule H9). */
typedef struct gm__host_bound {
  uint64_t bytes; /* GM_UNKNOWN_BYTES: nothing bounds */
  bool by_group;
  char source[GM_HOST_SOURCE_SIZE];
} gm__host_bound;

typedef struct gm__host_bounds {
  gm__host_bound total;
  gm__host_bound room; /* what could still be taken */
  bool estimated;      /* some figure was missing, repaired or only an upper bound */
} gm__host_bounds;

void gm__host_bounds_init(gm__host_bounds *out);

/* Offer a bound; GM_UNKNOWN_BYTES is none. The source is `kind`, and with a directory "kind:directory". */
void gm__host_bound_by(gm__host_bound *bound, uint64_t bytes, const char *kind, const char *directory);

/* ---- memory groups: rules H6 to H8 ---- */

/* One tree. Each level from `mount` down to mount + below counts. */
typedef struct gm__cgroup_place {
  bool found;
  bool inside;        /* the group lies below the mount's root, so `below` leads to it */
  size_t root_length; /* of the mount's root: the shortest shows the most levels */
  char mount[GM__FILE_PATH_SIZE];
  char below[GM__FILE_PATH_SIZE]; /* "" or "/a/b" */
} gm__cgroup_place;

/* The memory that the readers need beside the stack, which may be small. */
typedef struct gm__host_scratch {
  char line[GM__FILE_LONG_LINE_SIZE];
  char path[GM__FILE_PATH_SIZE];          /* of a file of a group */
  char own[2][GM__FILE_PATH_SIZE];        /* the own group, in the trees of version 1 and 2 */
  char directory[2 * GM__FILE_PATH_SIZE]; /* of the group that is read */
  gm__cgroup_place v1, v2;
  gm__id_set cpus, nodes; /* that this process may use */
  gm__id_set some;
  gm__numa numa;
} gm__host_scratch;

/* NULL: no host memory. */
gm__host_scratch *gm__host_scratch_take(const gm_services *services);
void gm__host_scratch_give(const gm_services *services, gm__host_scratch *scratch);

/* Read all nodes into scratch->numa. `allowed` NULL: all may be used. Without `list` no node's file is read where
 * `has_memory` says that none was left out: then `count`, `nodes` and the sums stay empty. */
void gm__numa_read(const char *root, const gm__id_set *allowed, bool list, gm__host_scratch *scratch);

/* Find the trees of version 1 and 2, for scratch->v1 and v2. False: /proc/self/cgroup exists and could not be read, so
 * limits may be missed. */
bool gm__cgroup_find(const char *root, gm__host_scratch *scratch);

/* Call `level` for the mount point and for each directory below it down to the own group: scratch->directory. */
void gm__cgroup_each_level(gm__host_scratch *scratch, const gm__cgroup_place *place, void (*level)(void *user),
                           void *user);

/* The path of a file of that directory, in scratch->path; NULL: it is too long. */
const char *gm__cgroup_file(gm__host_scratch *scratch, const char *name);

/* One number, or "max" which is GM_UNKNOWN_BYTES, white space around it allowed. False: something else. */
bool gm__cgroup_number(const char *text, uint64_t *out);

/* Offer every limit and every room to `bounds`: version 1 from the root down, then version 2. `mem_total`: the
 * machine's memory, or GM_UNKNOWN_BYTES. */
void gm__cgroup_bound(const char *root, uint64_t mem_total, gm__host_scratch *scratch, gm__host_bounds *bounds);

/* ---- pressure: rule H11 ---- */

/* Read /proc/pressure/memory. A figure is invalid where its line is missing or not understood. It changes no total and
 * no free figure. */
void gm__psi_read(const char *root, gm_host_stall *out_some, gm_host_stall *out_full);

/* ---- processors ---- */

/* The name for people; "" when no file tells. */
void gm__host_cpu_name(const char *root, gm__host_scratch *scratch, char *out, size_t capacity);

/* Processors that are online and in `allowed` (NULL: all), or those of /proc/cpuinfo; 0 when no file tells. */
uint32_t gm__host_cpu_cores(const char *root, const gm__id_set *allowed, gm__host_scratch *scratch);

#endif

/* The memory nodes of the host and those that this process may use (rule H5). */
#ifndef GM_CORE_DEVICE_NUMA_H
#define GM_CORE_DEVICE_NUMA_H

#include "core/base/id_set.h"
#include "gm/memory_info.h"

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

/* Read all nodes. `allowed` NULL: all may be used. */
void gm__numa_read(const char *root, const gm__id_set *allowed, gm__numa *out);

#endif

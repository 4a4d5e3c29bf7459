/* How much memory there is and how much is free, of the host and of each device (gm_device_memory_info). gm computes
 * these figures in one place, and has no other source of "free". The rules are in docs/memory-view.md. */
#ifndef GM_MEMORY_INFO_H
#define GM_MEMORY_INFO_H

#include <stdbool.h>
#include <stdint.h>

#include "gm/export.h"
#include "gm/status.h"

GM_BEGIN_DECLS

/* "Unknown" as a number of bytes. It is never 0, because a free figure of 0 means full. */
#define GM_UNKNOWN_BYTES UINT64_MAX

/* How far a free figure can be trusted. */
typedef enum gm_figure_state {
  GM_FIGURE_UNKNOWN = 0,   /* there is no figure: the number is GM_UNKNOWN_BYTES */
  GM_FIGURE_ESTIMATED = 1, /* a bound, a heuristic, or a figure that was repaired or only partly read */
  GM_FIGURE_KNOWN = 2      /* a live source for exactly this memory */
} gm_figure_state;

/* The source of a figure. */
typedef enum gm_figure_source {
  GM_SOURCE_NONE = 0,
  GM_SOURCE_DRIVER = 1,         /* the device's own API */
  GM_SOURCE_NVML = 2,           /* NVML, for the same device or the same slice */
  GM_SOURCE_SYSFS = 3,          /* amdgpu's files under /sys */
  GM_SOURCE_SYSMAN = 4,         /* Level Zero sysman modules */
  GM_SOURCE_OS = 5,             /* the operating system's view of host memory */
  GM_SOURCE_OWN_ACCOUNTING = 6, /* total less what gm holds: an upper bound */
  GM_SOURCE_PEER_API = 7,       /* another API's figure for the same physical device */
  GM_SOURCE_GROUP = 8           /* a group that bounds the device's memory: cgroup v2's dmem files, or MPS by NVML */
} gm_figure_source;

/* One part of the memory of an APU. Both figures are GM_UNKNOWN_BYTES where there is no such part. Never grows. */
typedef struct gm_memory_part {
  uint64_t total_bytes;
  uint64_t free_bytes;
} gm_memory_part;

/* The figures of one device at one moment. Where both are known, free_bytes <= total_bytes, and free_bytes <=
 * total_bytes - used_by_us_bytes. free_bytes includes what is promised to reservations (gm/reserve.h). Any number may
 * be GM_UNKNOWN_BYTES, except reclaimable_bytes, margin_bytes and the two promised ones. */
typedef struct gm_memory_info {
  uint32_t struct_size;
  gm_figure_state free_state;         /* of free_bytes */
  gm_figure_source total_source;      /* source of total_bytes */
  gm_figure_source free_source;       /* source of the number that bounds free_bytes */
  bool unified;                       /* the device's memory is host memory */
  uint64_t total_bytes;               /* what a caller could ever get */
  uint64_t free_bytes;                /* what a caller could take now without harm to others */
  uint64_t free_by_driver_bytes;      /* what the device's API said, before any rule */
  uint64_t free_by_os_bytes;          /* the host's free memory, where it matters */
  uint64_t used_by_us_bytes;          /* held by all gm contexts of this process */
  uint64_t used_by_others_bytes;      /* total - free - used by us, where free was measured */
  uint64_t reclaimable_bytes;         /* part of used by us that gm gives back on demand (pooled or evictable) */
  uint64_t margin_bytes;              /* kept free on purpose (key min_free_bytes) */
  uint64_t nvml_used_by_others_bytes; /* sum of NVML's per-process figures; unknown if one of them is */
  gm_memory_part vram;                /* APU: the memory set aside for the GPU */
  gm_memory_part gtt;                 /* APU: host memory that the GPU may map */
  uint64_t read_at_ns;                /* monotonic clock */
  uint64_t promised_bytes;            /* held by reservations of this process, and not taken */
  uint64_t promised_by_others_bytes;  /* held by reservations of other processes, and not taken */
  uint64_t borrowed_bytes;            /* held by the process's group beyond what it is sure of: under NVIDIA's MPS the
                                         process may be ended when others need them. 0 also where nothing tells */
  uint64_t reserved[1];               /* 0 */
} gm_memory_info;

typedef enum gm_heap_flags {
  GM_HEAP_DEVICE_LOCAL = 1, /* the device's own memory; with unified memory, host memory that the device uses */
  GM_HEAP_HOST = 2          /* host memory beside the device's own: pinned memory, staging memory */
} gm_heap_flags;

/* The figures of one heap of a device at one moment (gm_device_heap). A number of bytes may be GM_UNKNOWN_BYTES, except
 * used_bytes and reserved_bytes. */
typedef struct gm_heap_info {
  uint32_t struct_size;
  uint32_t flags;               /* gm_heap_flags */
  uint32_t number;              /* gm_memory_type.heap of its types; on Vulkan the index of the VkMemoryHeap */
  gm_figure_state free_state;   /* of free_bytes and budget_bytes */
  gm_figure_source free_source; /* source of free_bytes */
  uint32_t reserved;            /* 0 */
  uint64_t total_bytes;         /* size of the heap */
  uint64_t budget_bytes;        /* what this process can hold in it altogether */
  uint64_t used_bytes;          /* what this process holds in it: as the driver says with VK_EXT_memory_budget, else
                                   what gm holds */
  uint64_t free_bytes;          /* what this process can still take of it */
  uint64_t reserved_bytes;      /* what gm holds in it through this gm_device: blocks, and memory kept for reuse */
  uint64_t allocation_count;    /* driver allocations of gm in it through this gm_device */
} gm_heap_info;

enum { GM_HOST_NODES_MAX = 64, GM_HOST_SOURCE_SIZE = 512, GM_HOST_CPU_NAME_SIZE = 128 };

/* One NUMA node of the host. `allowed` says whether this process may take memory there. Never grows. */
typedef struct gm_host_node {
  uint32_t id;
  bool allowed;
  uint64_t total_bytes;
  uint64_t free_bytes; /* MemFree of the node, where page cache counts as used */
} gm_host_node;

/* How long tasks waited for memory. avg10_centi is the share of the last ten seconds, in hundredths of a percent.
 * total_us is the sum since boot, in microseconds. Never grows. */
typedef struct gm_host_stall {
  bool valid; /* false: the kernel gives no figure, and the others are 0 */
  uint32_t avg10_centi;
  uint64_t total_us;
} gm_host_stall;

/* The figures of the host at one moment. A number of bytes may be GM_UNKNOWN_BYTES. `cores` is 0 and `cpu_name` is
 * empty when unknown. A source is "meminfo", "numa", "cgroup1:DIRECTORY", "cgroup1:hierarchical", "cgroup2:DIRECTORY"
 * or "none". */
typedef struct gm_host_info {
  uint32_t struct_size;
  uint32_t cores; /* cores that this process may run on */
  char cpu_name[GM_HOST_CPU_NAME_SIZE];
  uint64_t total_bytes; /* the smallest of: memory, allowed nodes (if not all are), hard limits */
  uint64_t free_bytes;
  gm_figure_state free_state;
  bool cgroup_limited;                    /* a cgroup limit bounds total_bytes or free_bytes */
  char total_source[GM_HOST_SOURCE_SIZE]; /* what bounds total_bytes; longer text is cut */
  char limit_source[GM_HOST_SOURCE_SIZE]; /* what bounds free_bytes; longer text is cut */
  uint64_t mem_total_bytes;               /* of the machine, without cgroup limits */
  uint64_t mem_available_bytes;           /* of the machine, without cgroup limits */
  uint64_t page_bytes;
  uint64_t huge_page_bytes;    /* size of the default huge page */
  uint64_t hugetlb_free_bytes; /* reserved huge pages that are not in use; no part of free_bytes */
  gm_host_stall stall_some;    /* at least one task waited */
  gm_host_stall stall_full;    /* all tasks waited */
  uint32_t node_count;         /* nodes found; `nodes` has the first GM_HOST_NODES_MAX, by rising id */
  gm_host_node nodes[GM_HOST_NODES_MAX];
  uint64_t read_at_ns; /* monotonic clock */
} gm_host_info;

/* Reads the host's figures from the files below `root`. NULL means "/"; tests use a directory of their own. A missing
 * or unreadable source leaves its figures unknown; that is no failure. Nothing is cached. Thread-safe.
 * INVALID_ARGUMENT: `out` is NULL, gm does not know its struct_size, or the path `root` is too long.
 * OUT_OF_HOST_MEMORY. */
GM_API gm_status gm_host_info_read(const char *root, gm_host_info *out, gm_error *err);

/* Returns the word of a state: "known", "estimated" or "unknown". Another number gives "?". The string is static and
 * never NULL. Thread-safe. */
GM_API const char *gm_figure_state_name(gm_figure_state state);

/* Returns the word of a source: "driver", "nvml", "sysfs", "sysman", "os", "own_accounting", "peer_api" or "none".
 * Another number gives "?". The string is static and never NULL. Thread-safe. */
GM_API const char *gm_figure_source_name(gm_figure_source source);

GM_END_DECLS

#endif

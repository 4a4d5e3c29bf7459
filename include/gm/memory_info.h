/* What memory there is and how much of it is free: of the host here, of each device in gm/device.h. One structure,
 * built in one place, is the only source of "free". The rules are in docs/memory-view.md. */
#ifndef GM_MEMORY_INFO_H
#define GM_MEMORY_INFO_H

#include <stdbool.h>
#include <stdint.h>

#include "gm/export.h"
#include "gm/status.h"

GM_BEGIN_DECLS

/* "Unknown" as a number of bytes. Never 0: a free figure of 0 means full. */
#define GM_UNKNOWN_BYTES UINT64_MAX

/* How far a free figure can be trusted. */
typedef enum gm_figure_state {
  GM_FIGURE_UNKNOWN = 0,   /* no figure: the number is GM_UNKNOWN_BYTES */
  GM_FIGURE_ESTIMATED = 1, /* a bound, a heuristic, or a figure that was repaired or only partly read */
  GM_FIGURE_KNOWN = 2      /* a live source for exactly this memory */
} gm_figure_state;

/* Who gave a figure. */
typedef enum gm_figure_source {
  GM_SOURCE_NONE = 0,
  GM_SOURCE_DRIVER = 1,         /* the device's own API */
  GM_SOURCE_NVML = 2,           /* NVML, for the same device or the same slice */
  GM_SOURCE_SYSFS = 3,          /* amdgpu's files under /sys */
  GM_SOURCE_SYSMAN = 4,         /* Level Zero sysman modules */
  GM_SOURCE_OS = 5,             /* the operating system's view of host memory */
  GM_SOURCE_OWN_ACCOUNTING = 6, /* total less what gm holds: an upper bound */
  GM_SOURCE_PEER_API = 7        /* another API's figure for the same physical device */
} gm_figure_source;

/* One of the parts that the memory of an APU consists of; both GM_UNKNOWN_BYTES where there is no such part. Never
 * grows. */
typedef struct gm_memory_part {
  uint64_t total_bytes;
  uint64_t free_bytes;
} gm_memory_part;

/* The figures of one device at one moment. free_bytes <= total_bytes whenever both are known, and
 * free_bytes <= total_bytes - used_by_us_bytes. Any number except reclaimable and margin may be GM_UNKNOWN_BYTES. */
typedef struct gm_memory_info {
  uint32_t struct_size;
  gm_figure_state free_state;         /* of free_bytes */
  gm_figure_source total_source;      /* who gave total_bytes */
  gm_figure_source free_source;       /* who gave the number that bounds free_bytes */
  bool unified;                       /* the device's memory is host memory */
  uint64_t total_bytes;               /* what a caller could ever have */
  uint64_t free_bytes;                /* what a caller could take now without hurting */
  uint64_t free_by_driver_bytes;      /* as the device's API said it, before any rule */
  uint64_t free_by_os_bytes;          /* the host's free memory, where it plays a role */
  uint64_t used_by_us_bytes;          /* held by all gm contexts of this process */
  uint64_t used_by_others_bytes;      /* total - free - used by us, where free was measured */
  uint64_t reclaimable_bytes;         /* part of used by us that gm gives back on demand (pooled or evictable) */
  uint64_t margin_bytes;              /* kept free on purpose (min_free_bytes) */
  uint64_t nvml_used_by_others_bytes; /* NVML's per-process figures added up; unknown if one of them is */
  gm_memory_part vram;                /* APU: the carve-out */
  gm_memory_part gtt;                 /* APU: host memory that the device may map */
  uint64_t read_at_ns;                /* monotonic clock */
  uint64_t reserved[4];               /* 0 */
} gm_memory_info;

enum { GM_HOST_NODES_MAX = 64, GM_HOST_SOURCE_SIZE = 512, GM_HOST_CPU_NAME_SIZE = 128 };

/* One NUMA node. `allowed`: this process may take memory there. Never grows. */
typedef struct gm_host_node {
  uint32_t id;
  bool allowed;
  uint64_t total_bytes;
  uint64_t free_bytes; /* MemFree: the page cache counts as used here */
} gm_host_node;

/* Share of the last ten seconds in which tasks waited for memory, in hundredths of a percent, and the sum since boot.
 * Never grows. */
typedef struct gm_host_stall {
  bool valid; /* false: the kernel gives no figure, the others are 0 */
  uint32_t avg10_centi;
  uint64_t total_us;
} gm_host_stall;

/* The host at one moment. Numbers of bytes may be GM_UNKNOWN_BYTES; `cores` is 0 and `cpu_name` empty when unknown.
 * Sources are "meminfo", "numa", "cgroup1:DIRECTORY", "cgroup1:hierarchical", "cgroup2:DIRECTORY" or "none". */
typedef struct gm_host_info {
  uint32_t struct_size;
  uint32_t cores; /* that this process may run on */
  char cpu_name[GM_HOST_CPU_NAME_SIZE];
  uint64_t total_bytes; /* the smallest of memory, allowed nodes (if not all are) and hard limits */
  uint64_t free_bytes;
  gm_figure_state free_state;
  bool cgroup_limited;                    /* a group limit bounds total_bytes or free_bytes */
  char total_source[GM_HOST_SOURCE_SIZE]; /* what bounds total_bytes; text that does not fit is cut */
  char limit_source[GM_HOST_SOURCE_SIZE]; /* what bounds free_bytes */
  uint64_t mem_total_bytes;               /* of the machine, no group applied */
  uint64_t mem_available_bytes;           /* of the machine, no group applied */
  uint64_t page_bytes;
  uint64_t huge_page_bytes;    /* the default huge page */
  uint64_t hugetlb_free_bytes; /* reserved huge pages not in use: no part of free_bytes */
  gm_host_stall stall_some;    /* at least one task waited */
  gm_host_stall stall_full;    /* all tasks waited */
  uint32_t node_count;         /* nodes found; only the first GM_HOST_NODES_MAX are in `nodes`, by rising id */
  gm_host_node nodes[GM_HOST_NODES_MAX];
  uint64_t read_at_ns; /* monotonic clock */
} gm_host_info;

/* Read the host's figures from the files below `root` (NULL: "/"; tests use a directory of their own). Sources that are
 * missing or not understood leave their figures unknown: that is no failure. Nothing is cached. Thread-safe.
 * GM_ERR_INVALID_ARGUMENT: `out` is NULL, its struct_size is none, or `root` is too long a path.
 */
GM_API gm_status gm_host_info_read(const char *root, gm_host_info *out, gm_error *err);

/* "known", "estimated", "unknown"; "?" for a number that is none. Static storage, never NULL. */
GM_API const char *gm_figure_state_name(gm_figure_state state);

/* "driver", "nvml", "sysfs", "sysman", "os", "own_accounting", "peer_api", "none"; "?" for a number that is none. */
GM_API const char *gm_figure_source_name(gm_figure_source source);

GM_END_DECLS

#endif

/* A driver's answers about a device's memory: numbers with their source, and no policy. A backend fills in this
 * structure, and repairs nothing, not even nonsense. gm's core turns it into a gm_memory_info by rules in one place.
 * The core also adds figures from files (sysfs, fdinfo), and what gm itself holds. */
#ifndef GM_RAW_FIGURES_H
#define GM_RAW_FIGURES_H

#include <stdint.h>

#include "gm/memory_info.h"

GM_BEGIN_DECLS

enum { GM_RAW_HEAPS_MAX = 16, GM_RAW_MODULES_MAX = 16, GM_RAW_PROCESSES_MAX = 64 };

/* Which rules the numbers follow. */
typedef enum gm_raw_rules {
  GM_RAW_DRIVER = 0, /* `driver` counts as it is: gm has no rules for this API */
  GM_RAW_HOST = 1,   /* the device is the host: gm reads nothing of this structure */
  GM_RAW_CUDA = 2,   /* driver = cuMemGetInfo, device_total = cuDeviceTotalMem, nvml */
  GM_RAW_HIP = 3,    /* driver = hipMemGetInfo, device_total = hipDeviceTotalMem */
  GM_RAW_OPENCL = 4, /* device_total = CL_DEVICE_GLOBAL_MEM_SIZE, amd, modules */
  GM_RAW_VULKAN = 5  /* heaps */
} gm_raw_rules;

/* Where the device's memory is. */
typedef enum gm_raw_place {
  GM_RAW_OWN_MEMORY = 0, /* a card with memory of its own */
  GM_RAW_INTEGRATED = 1, /* the API says that the device is integrated or shares host memory */
  GM_RAW_CPU_DEVICE = 2  /* the API says that the device is a CPU */
} gm_raw_place;

typedef enum gm_raw_flags {
  GM_RAW_WDDM = 1,          /* Windows or WSL2: memory may be moved elsewhere */
  GM_RAW_PARTITION = 2,     /* the device is a slice of a card (MIG) */
  GM_RAW_BUDGET = 4,        /* VK_EXT_memory_budget is there: gm reads budget and usage of the heaps */
  GM_RAW_ONE_LOCAL_HEAP = 8 /* Vulkan: device-local heaps are windows on one another (the NVIDIA driver) */
} gm_raw_flags;

typedef enum gm_raw_state {
  GM_RAW_ABSENT = 0, /* the backend did not ask, or the API has no such query */
  GM_RAW_OK = 1,
  GM_RAW_ERROR = 2 /* the call failed: `code` is the API's, and gm ignores the numbers */
} gm_raw_state;

/* The reply to one query. A query with only one number leaves the other at GM_UNKNOWN_BYTES. */
typedef struct gm_raw_reply {
  gm_raw_state state;
  int32_t code;
  uint64_t total_bytes;
  uint64_t free_bytes;
} gm_raw_reply;

/* Which device an NVML handle named. */
typedef enum gm_raw_nvml_handle {
  GM_RAW_NVML_DEVICE = 0, /* this card */
  GM_RAW_NVML_SLICE = 1,  /* this very slice, by its MIG UUID */
  GM_RAW_NVML_PARENT = 2  /* the card that holds the slice: gm never uses its figures */
} gm_raw_nvml_handle;

typedef struct gm_raw_nvml {
  gm_raw_nvml_handle handle;
  gm_raw_reply memory;
  uint32_t process_count;                       /* number of other processes; it may exceed the array */
  uint64_t process_bytes[GM_RAW_PROCESSES_MAX]; /* as NVML gave them: all ones is its "not available" */
} gm_raw_nvml;

/* The limits of the process's group on this device, as NVML gave them (nvmlDeviceGetMemoryLimits_v1). */
typedef struct gm_raw_limits {
  gm_raw_state state;
  int32_t code;
  uint64_t soft_bytes; /* 0: no limit */
  uint64_t hard_bytes; /* all ones: no limit */
  uint64_t used_bytes; /* of the group */
} gm_raw_limits;

/* CL_DEVICE_GLOBAL_FREE_MEMORY_AMD (0x4039) as the driver gave it: KiB, one or two values. */
typedef struct gm_raw_amd_query {
  gm_raw_state state;
  int32_t code;
  uint32_t count;
  uint64_t kib[2];
} gm_raw_amd_query;

/* One Vulkan heap. Budget and usage are as the driver gave them; 0 without VK_EXT_memory_budget. */
typedef struct gm_raw_heap {
  uint64_t bytes;
  uint64_t budget_bytes;
  uint64_t usage_bytes;
  uint64_t own_bytes; /* what gm's devices in this process hold in it */
  uint32_t flags;     /* VkMemoryHeapFlags: 1 is DEVICE_LOCAL */
} gm_raw_heap;

/* One Level Zero sysman memory module. */
typedef struct gm_raw_module {
  uint64_t bytes;
  uint64_t free_bytes;
} gm_raw_module;

/* All raw figures of a device. A zeroed structure says that nothing was asked. Counts beyond the arrays are cut to
 * them. */
typedef struct gm_raw_figures {
  uint32_t struct_size;
  gm_raw_rules rules;
  gm_raw_place place;
  uint32_t flags; /* gm_raw_flags */
  gm_raw_reply driver;
  gm_raw_reply device_total; /* gm ignores its free_bytes */
  gm_raw_nvml nvml;
  gm_raw_amd_query amd;
  uint32_t heap_count;
  gm_raw_heap heaps[GM_RAW_HEAPS_MAX];
  uint32_t module_count;
  gm_raw_module modules[GM_RAW_MODULES_MAX];
  gm_raw_limits limits;
  const char *group; /* in: the folder of the process's memory group (cgroup v2), borrowed during the call; NULL or "":
                        unknown. A backend that clears the structure reads it before */
} gm_raw_figures;

GM_END_DECLS

#endif

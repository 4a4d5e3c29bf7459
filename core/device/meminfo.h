/* The kernel's meminfo files, of the machine and of one NUMA node (rules H1, H4, H5). */
#ifndef GM_CORE_DEVICE_MEMINFO_H
#define GM_CORE_DEVICE_MEMINFO_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/file.h"

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
  uint64_t hugepages_free;
  uint64_t hugepage_bytes;
} gm__meminfo;

/* Read one file. A file that cannot be read leaves every figure unknown. */
gm__file_answer gm__meminfo_read(const char *root, const char *path, gm__meminfo *out);

/* What MemAvailable would be on kernels that do not give it (H4): unknown without MemFree. */
uint64_t gm__meminfo_estimate(const gm__meminfo *info);

#endif

/* Figures of the amdgpu kernel driver about a card, from sysfs (rules D8, D9). They cover all clients of the card. */
#ifndef GM_CORE_HOST_SYSFS_H
#define GM_CORE_HOST_SYSFS_H

#include <stdint.h>

#include "core/host/pci.h"

/* Bytes; GM_UNKNOWN_BYTES where the file is missing or not a number. */
typedef struct gm__sysfs_memory {
  uint64_t vram_total;
  uint64_t vram_used;
  uint64_t gtt_total;
  uint64_t gtt_used;
} gm__sysfs_memory;

/* Read the four mem_info files of the card at a full address; any other address leaves all unknown. */
void gm__sysfs_read(const char *root, gm__pci address, gm__sysfs_memory *out);

#endif

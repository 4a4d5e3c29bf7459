/* Reads what sysfs says of a card: figures of the amdgpu kernel driver, of all clients (rules D8, D9), and its slot. */
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

enum { GM__SYSFS_LINK_SIZE = 40 };

/* The slot of the card at a full address: its greatest speed and its lanes, "16.0 GT/s PCIe x16". Cards at rest go
 * slower, so the speed of the moment says nothing. "": the kernel does not tell. */
void gm__sysfs_link(const char *root, gm__pci address, char out[GM__SYSFS_LINK_SIZE]);

#endif

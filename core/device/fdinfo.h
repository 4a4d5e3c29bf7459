/* What each client of a card holds, from the fdinfo files of all processes (rule D14). Only processes that this one may
 * look at are seen, so the sums are lower bounds. */
#ifndef GM_CORE_DEVICE_FDINFO_H
#define GM_CORE_DEVICE_FDINFO_H

#include <stdbool.h>
#include <stdint.h>

#include "core/device/pci.h"

typedef struct gm__fdinfo_use {
  bool valid;           /* at least one client of the card was seen */
  uint64_t vram_bytes;  /* of all clients, in the card's own memory */
  uint64_t gtt_bytes;   /* of all clients, in host memory */
  uint64_t vram_others; /* without the clients that the own process has open */
  uint64_t gtt_others;
} gm__fdinfo_use;

enum { GM__FDINFO_CLIENTS_MAX = 512 };

/* Walk /proc. Reads a file per open descriptor of every visible process: for reports, not for each allocation. Clients
 * beyond GM__FDINFO_CLIENTS_MAX are left out. Without a full address nothing is found. */
void gm__fdinfo_read(const char *root, gm__pci address, uint64_t self_pid, gm__fdinfo_use *out);

#endif

/* Memory that each client of a card holds, from the fdinfo files of all processes (rule D14). A process sees only
 * those that it may look at, so the sums are lower bounds. */
#ifndef GM_CORE_HOST_FDINFO_H
#define GM_CORE_HOST_FDINFO_H

#include <stdbool.h>
#include <stdint.h>

#include "core/host/pci.h"

typedef struct gm__fdinfo_use {
  bool valid;           /* at least one client of the card was seen */
  uint64_t vram_bytes;  /* of all clients, in the card's own memory */
  uint64_t gtt_bytes;   /* of all clients, in host memory */
  uint64_t vram_others; /* without the clients that the own process has open */
  uint64_t gtt_others;
} gm__fdinfo_use;

enum { GM__FDINFO_CLIENTS_MAX = 512 };

/* Walk /proc. This reads a file for each open descriptor of each visible process: call it for reports, not for each
 * allocation. Clients beyond GM__FDINFO_CLIENTS_MAX are left out. Without a full address nothing is found. */
void gm__fdinfo_read(const char *root, gm__pci address, uint64_t self_pid, gm__fdinfo_use *out);

#endif

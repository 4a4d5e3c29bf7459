/* Groups that bound a card's own memory: cgroup v2's dmem controller (rule D16). */
#ifndef GM_CORE_HOST_DMEM_H
#define GM_CORE_HOST_DMEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/host/pci.h"
#include "gm/services.h"

enum { GM__DMEM_NAME_SIZE = 256 };

typedef struct gm__dmem {
  uint64_t total_bytes;    /* the smallest limit of the own group and those above; GM_UNKNOWN_BYTES: none */
  uint64_t free_bytes;     /* the smallest that a limit leaves */
  uint64_t borrowed_bytes; /* what the own group holds beyond what it is sure of (dmem.min); 0 also without one */
  bool partly;             /* a group has a limit, and does not say what it holds: an upper bound */
  char total_name[GM__DMEM_NAME_SIZE], free_name[GM__DMEM_NAME_SIZE]; /* of the groups, "dmem:<directory>"; cut */
} gm__dmem;

/* Read the groups of this process about the card at a full address. Any other address, and a system without the
 * controller: no bound. False: no host memory to read them with. */
bool gm__dmem_read(const gm_services *services, const char *root, gm__pci address, gm__dmem *out);

/* The folder of the process's own group in the tree of version 2; "": there is none, or its name is too long. */
void gm__dmem_own_group(const gm_services *services, const char *root, char *out, size_t capacity);

#endif

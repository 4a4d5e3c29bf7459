/* Discovery in a helper process (gm-probe, started by exec). A driver that aborts or hangs there does not harm this
 * process. */
#ifndef GM_CORE_DISCOVERY_ISOLATE_H
#define GM_CORE_DISCOVERY_ISOLATE_H

#include "core/discovery/registry.h"

enum {
  GM__ISOLATE_TIMEOUT_MS = 20000, /* for its answer */
  GM__ISOLATE_LOOK_MS = 10000     /* for each card that it opens after that */
};

/* The helper writes this head on its standard output, then entry_count gm_device_entry, then a gm__isolate_look for
 * each entry of gm__isolate_looks. */
typedef struct gm__isolate_head {
  uint64_t magic; /* GM__ISOLATE_MAGIC: changes with the layout */
  uint32_t info_size, entry_size;
  uint32_t entry_count;
  uint32_t reserved;
  gm_backend_info info;
} gm__isolate_head;

#define GM__ISOLATE_MAGIC 0x32656270726d67u /* "gmrpbe2" */

/* The figures of an open card, which the helper closes again. The bytes that the open takes are not free in them: the
 * caller's own open takes as many. */
typedef struct gm__isolate_look {
  uint32_t index;
  gm_status status; /* of opening it */
  gm_memory_info memory;
} gm__isolate_look;

/* True for a device of that API of which nobody tells what is free before it is open. The API tells it afterwards. */
bool gm__isolate_looks(gm_api api, const gm_device_entry *entry);

/* Fill driver->info and driver->entries from a helper. REQUIRES: the driver's lock. Returns the backend's status:
 * GM_OK, UNAVAILABLE, TIMEOUT, OUT_OF_HOST_MEMORY. A helper that died gives UNAVAILABLE; the reason names the
 * signal. One that died or hung while it had a card open has answered: that card is driver->deadly, and no more cards
 * are looked at. */
gm_status gm__isolate(gm__driver *driver, gm_error *err);

#endif

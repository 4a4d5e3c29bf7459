/* Discovery in a helper process (gm-probe, started by exec). A driver that aborts or hangs there does not harm this
 * process. */
#ifndef GM_CORE_DISCOVERY_ISOLATE_H
#define GM_CORE_DISCOVERY_ISOLATE_H

#include "core/discovery/registry.h"

enum { GM__ISOLATE_TIMEOUT_MS = 20000, GM__ISOLATE_END_MS = 2000 }; /* for its answer; for its end after that */

/* The helper writes this head on its standard output, then entry_count gm_device_entry. */
typedef struct gm__isolate_head {
  uint64_t magic; /* GM__ISOLATE_MAGIC: changes with the layout */
  uint32_t info_size, entry_size;
  uint32_t entry_count;
  uint32_t reserved;
  gm_backend_info info;
} gm__isolate_head;

#define GM__ISOLATE_MAGIC 0x31656270726d67u /* "gmrpbe1" */

/* Fill driver->info and driver->entries from a helper. REQUIRES: the driver's lock. Returns the backend's status:
 * GM_OK, UNAVAILABLE, TIMEOUT, OUT_OF_HOST_MEMORY. A helper that died gives UNAVAILABLE; the reason names the
 * signal. */
gm_status gm__isolate(gm__driver *driver, gm_error *err);

#endif

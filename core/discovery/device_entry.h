/* Entries of gm for the devices of a backend: cleaned, named, and grouped into physical devices. */
#ifndef GM_CORE_DISCOVERY_DEVICE_ENTRY_H
#define GM_CORE_DISCOVERY_DEVICE_ENTRY_H

#include "core/discovery/registry.h"

/* Mend what a backend said of its device `index` (answer.h), and fill in what gm knows better: index, backend, and the
 * capabilities of whole groups. */
void gm__device_entry_clean(const gm__driver *driver, uint32_t index, gm_device_info *info);

/* Clean entry->info and make the id of entry `index` of the driver's list. */
void gm__device_entry_enter(const gm__driver *driver, uint32_t index, gm_device_entry *entry);

/* Set physical, host_pool and counted of each entry, from what the entries say of themselves. OUT_OF_HOST_MEMORY. */
gm_status gm__device_entry_group(const gm_services *services, gm_device_entry *entries, size_t count, gm_error *err);

#endif

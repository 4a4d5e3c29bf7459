/* Keeps what was measured of the links of devices, in a file of the user, for later processes. Nobody needs the file.
 * Where it is missing, damaged, in use, or not the user's alone, nothing was kept. Thread-safe. */
#ifndef GM_CORE_STAGING_LINK_FILE_H
#define GM_CORE_STAGING_LINK_FILE_H

#include "core/device/device.h"

enum { GM__LINK_KEY_SIZE = 256 };

/* Which links these are: backend, device, PCI address; then driver, its version, and the slot that the card sits in. A
 * device has one line in the file, so that of a newer driver replaces it. Returns the length of the first part. */
size_t gm__link_key(const gm_device *device, char out[GM__LINK_KEY_SIZE]);

/* Bytes per second up and down. False: nothing was kept. */
bool gm__link_file_find(const gm_device *device, double *out_up, double *out_down);

/* Keeps them, if the configuration lets it (`links.folder`). A simulated device needs a folder that was named. */
void gm__link_file_keep(const gm_device *device, double up, double down);

#endif

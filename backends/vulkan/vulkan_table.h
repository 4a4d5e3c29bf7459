/* A buffer of the 256 bytes from 0 to 255: the device copies any byte from there. Thread-safe, but for clear. */
#ifndef GM_BACKENDS_VULKAN_TABLE_H
#define GM_BACKENDS_VULKAN_TABLE_H

#include "gm/backend.h"

typedef struct gm__vulkan_device gm__vulkan_device;
typedef struct gm__vulkan_memory gm__vulkan_memory;

/* The device's table, made at the first need. It stays until clear. Errors: those of gm__vulkan_host_make. */
gm_status gm__vulkan_table(gm__vulkan_device *device, const gm__vulkan_memory **out, gm_error *err);

/* GM_CLOSE_NORMAL frees the driver's memory and the record, the other mode only the record. */
void gm__vulkan_table_clear(gm__vulkan_device *device, gm_close_mode mode);

#endif

/* The life of a device: the steps that opening and adopting share. gm__vulkan_device_close undoes them. */
#ifndef GM_BACKENDS_VULKAN_DEVICE_OPEN_H
#define GM_BACKENDS_VULKAN_DEVICE_OPEN_H

#include "backends/vulkan/vulkan_device.h"

/* Make the record. NULL: no host memory. */
gm__vulkan_device *gm__vulkan_device_make(gm__vulkan_driver *driver, gm_error *err);

/* Look the device's entries up, and ask the driver for types, sharing and sparse buffers. */
gm_status gm__vulkan_device_ready(gm__vulkan_device *device, gm_error *err);

#endif

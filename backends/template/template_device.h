/* The driver and the device. gm makes one driver object for each context, and one device object for each opening. */
#ifndef TEMPLATE_DEVICE_H
#define TEMPLATE_DEVICE_H

#include <stdatomic.h>

#include "gm/backend.h"

#define TEMPLATE_CAPABILITIES (GM_CAP_STREAMS | GM_CAP_POINTS | GM_CAP_ADDRESS)
#define TEMPLATE_CAPACITY (UINT64_C(1) << 30)
#define TEMPLATE_ALIGNMENT 256u

typedef struct template_driver {
  const gm_services *services;
  _Atomic uint64_t used; /* bytes of the one device */
} template_driver;

typedef struct template_device {
  const gm_services *services;
  template_driver *driver;
} template_device;

/* Fill `err`, unless it is NULL, and return `status`. */
gm_status template_fail(gm_error *err, gm_status status, const char *op, const char *format, ...) GM_PRINTF(4, 5);

/* Zeroed host memory from the services that gm lends, or NULL. */
void *template_take(const gm_services *services, size_t bytes);

gm_status template_probe(const gm_backend_host *host, gm_probe_level level, gm_driver_info *out, gm_error *err);
gm_status template_init(const gm_backend_host *host, void **out_driver, gm_error *err);
void template_fini(void *driver, gm_close_mode mode);
gm_status template_device_count(void *driver, uint32_t *out, gm_error *err);
gm_status template_device_info(void *driver, uint32_t index, void *device, gm_device_info *out, gm_error *err);
gm_status template_device_open(void *driver, uint32_t index, void **out_device, gm_error *err);
void template_device_close(void *device, gm_close_mode mode);
gm_status template_device_state(void *device, gm_error *err);
gm_status template_device_native(void *device, gm_native_device *out, gm_error *err);
gm_status template_figures(void *driver, uint32_t index, void *device, gm_raw_figures *out, gm_error *err);

#endif

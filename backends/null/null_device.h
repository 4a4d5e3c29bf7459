/* Driver and device of the null backend. Devices opened twice share one capacity, as a card does. */
#ifndef GM_BACKENDS_NULL_NULL_DEVICE_H
#define GM_BACKENDS_NULL_NULL_DEVICE_H

#include "backends/null/null_options.h"
#include "backends/null/null_range.h"
#include "core/base/map.h"
#include "core/base/thread.h"
#include "gm/backend.h"

#define GM__NULL_CAPABILITIES (GM_CAP_STREAMS | GM_CAP_POINTS | GM_CAP_VMM | GM_CAP_ADDRESS)

/* One card. */
typedef struct gm__null_card {
  gm__mutex lock; /* of the rest */
  uint64_t used;  /* bytes; never more than the capacity */
  gm__null_ranges ranges;
} gm__null_card;

typedef struct gm__null_driver {
  const gm_services *services;
  gm__null_options options;
  gm__null_card cards[GM__NULL_DEVICES_MAX];
} gm__null_driver;

typedef struct gm__null_device {
  const gm_services *services;
  const gm__null_options *options;
  gm__null_card *card;
  uint32_t index;
  gm__mutex lock;                 /* of the rest */
  uint64_t now;                   /* virtual nanoseconds */
  gm__map reservations, mappings; /* null_vmm.c */
  uint64_t orders;                /* of ranges that were ever reserved, a bit each */
} gm__null_device;

/* The lock of an abandoned object may be held for ever by a thread that does not exist here: then none is taken. */
void gm__null_lock(gm__mutex *mutex, gm_close_mode mode);
void gm__null_unlock(gm__mutex *mutex, gm_close_mode mode);

/* Entries 2 to 4 and 6 of the seam. */
gm_status gm__null_probe(const gm_backend_host *host, gm_probe_level level, gm_driver_info *out, gm_error *err);
gm_status gm__null_init(const gm_backend_host *host, void **out_driver, gm_error *err);
void gm__null_fini(void *driver, gm_close_mode mode);
gm_status gm__null_device_count(void *driver, uint32_t *out, gm_error *err);
gm_status gm__null_device_info(void *driver, uint32_t index, void *device, gm_device_info *out, gm_error *err);
gm_status gm__null_device_open(void *driver, uint32_t index, void **out_device, gm_error *err);
void gm__null_device_close(void *device, gm_close_mode mode);
gm_status gm__null_device_state(void *device, gm_error *err);
gm_status gm__null_device_native(void *device, gm_native_device *out, gm_error *err);
gm_status gm__null_figures(void *driver, uint32_t index, void *device, gm_raw_figures *out, gm_error *err);

#endif

/* The driver and the device of the null backend. Devices that are opened twice share one capacity, as a card does. */
#ifndef GM_BACKENDS_NULL_NULL_DEVICE_H
#define GM_BACKENDS_NULL_NULL_DEVICE_H

#include "backends/null/null_options.h"
#include "backends/null/null_range.h"
#include "core/base/map.h"
#include "core/base/thread.h"
#include "gm/backend.h"

#define GM__NULL_CAPABILITIES (GM_CAP_STREAMS | GM_CAP_POINTS | GM_CAP_VMM | GM_CAP_ADDRESS)

/* One card. Its lock guards the other members. */
typedef struct gm__null_card {
  gm__mutex lock;
  uint64_t used; /* bytes; never more than the capacity */
  gm__null_ranges ranges;
} gm__null_card;

typedef struct gm__null_driver {
  const gm_services *services;
  gm__null_options options;
  gm__null_card cards[GM__NULL_DEVICES_MAX];
} gm__null_driver;

typedef struct gm__null_model gm__null_model; /* null_link.c */

typedef struct gm__null_device {
  const gm_services *services;
  const gm__null_options *options;
  gm__null_card *card;
  uint32_t index;
  gm__mutex lock;                 /* guards the members below */
  uint64_t now;                   /* virtual nanoseconds */
  gm__null_model *link;           /* NULL: no link model */
  uint64_t link_number;           /* of the model, and no work before it has a greater one */
  gm__map reservations, mappings; /* null_vmm.c */
  uint64_t orders;                /* bit n is set when a range of order n was ever reserved */
} gm__null_device;

/* With GM_CLOSE_ABANDON neither function touches the mutex: a thread that does not exist here may hold it. */
void gm__null_lock(gm__mutex *mutex, gm_close_mode mode);
void gm__null_unlock(gm__mutex *mutex, gm_close_mode mode);

/* Count `bytes` as used. GM_ERR_OUT_OF_DEVICE_MEMORY beyond the capacity. REQUIRES: card lock. */
gm_status gm__null_charge(gm__null_device *device, uint64_t bytes, gm_error *err);

#endif

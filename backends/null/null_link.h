/* The link model beside the streams of a null device: what null_stream.c asks for while a model is on. REQUIRES device
 * lock throughout. */
#ifndef GM_BACKENDS_NULL_NULL_LINK_H
#define GM_BACKENDS_NULL_NULL_LINK_H

#include "backends/null/null_device.h"
#include "backends/shared/link_model.h"

/* A stream's part of the model: its lane, which `model` knows (another number: a model that is gone). */
typedef struct gm__null_lane {
  gm__link_lane lane;
  uint64_t model;
} gm__null_lane;

/* Submit work like `like` to `lane` (NULL: the device's own). The number of the work; 0:
 * out of host memory. */
uint64_t gm__null_link_submit(gm__null_device *device, gm__null_lane *lane, const gm__link_op *like);

/* Has the work of this number ended? */
bool gm__null_link_ended(const gm__null_device *device, uint64_t sequence);

/* Let time pass until the work of this number has ended, or until `limit`. False: it has not. */
bool gm__null_link_wait(gm__null_device *device, uint64_t sequence, uint64_t limit);

/* Let time pass until `limit`. */
void gm__null_link_pass(gm__null_device *device, uint64_t limit);

/* The number of the newest work of the lane that has not ended; 0: all has. */
uint64_t gm__null_link_newest(const gm__null_device *device, const gm__null_lane *lane);

/* A look that finds work unfinished costs the host time. */
void gm__null_link_poll(gm__null_device *device);

/* The lane goes, and its work is forgotten. */
void gm__null_link_close_lane(gm__null_device *device, gm__null_lane *lane);

/* The device goes. */
void gm__null_link_end(gm__null_device *device);

#endif

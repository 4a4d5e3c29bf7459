#include "core/staging/staging.h"

#include "core/base/alloc.h"
#include "core/base/error.h"
#include "core/device/device.h"

/* A staging leaves the device, under the device's lock, only while nobody has it open. Then it is ended without a lock.
 * So a device that stays open after all gets a new one when it needs one. */

enum { STAGING_SLOTS = 16 };

struct gm__staging {
  gm__ring *ring;
  uint32_t users; /* opens that were not closed */
  bool measured;
  uint64_t small;  /* of `measured` */
  double up, down; /* 0: not measured */
};

/* Takes the device's staging away if nobody uses it; NULL: there is none, or it is in use. */
static struct gm__staging *staging_detach(gm_device *device, bool forked) {
  if (!forked) gm__mutex_lock(&device->lock);
  struct gm__staging *staging = device->staging;
  if (staging && staging->users && !forked) staging = NULL;
  if (staging) device->staging = NULL;
  if (!forked) gm__mutex_unlock(&device->lock);
  return staging;
}

/* The device's own from now on; false: it has one. */
static bool staging_attach(gm_device *device, struct gm__staging *staging, gm_status (*end)(gm_device *, gm_error *)) {
  gm__mutex_lock(&device->lock);
  const bool first = !device->staging;
  if (first) device->staging = staging;
  device->end_staging = end;
  gm__mutex_unlock(&device->lock);
  return first;
}

static void staging_release(const gm_device *device, struct gm__staging *staging) {
  gm__release(gm__context_services(device->ctx), staging, sizeof *staging);
}

static gm_status staging_end(gm_device *device, gm_error *err) {
  const bool forked = gm__context_forked(device->ctx);
  struct gm__staging *staging = staging_detach(device, forked);
  if (!staging) return GM_OK;
  const gm_status status = gm__ring_destroy(staging->ring, err);
  if (status == GM_OK) {
    staging_release(device, staging);
  } else {
    staging_attach(device, staging, staging_end);
  }
  return status;
}

gm_status gm__staging_shape(gm_device *device, uint32_t slots, uint64_t slot_bytes, gm_error *err) {
  struct gm__staging *staging = gm__alloc(gm__context_services(device->ctx), sizeof *staging);
  if (!staging) return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, 0, "staging", "no host memory for a device's ring");
  const gm_status status = gm__ring_create(device, slots, slot_bytes, &staging->ring, err);
  if (status == GM_OK && staging_attach(device, staging, staging_end)) return GM_OK;
  if (status == GM_OK) gm__ring_destroy(staging->ring, NULL); /* another thread was first */
  staging_release(device, staging);
  return status;
}

/* NULL: there is none yet. */
static gm__ring *staging_use(gm_device *device) {
  gm__mutex_lock(&device->lock);
  struct gm__staging *staging = device->staging;
  if (staging) staging->users++;
  gm__mutex_unlock(&device->lock);
  return staging ? staging->ring : NULL;
}

gm_status gm__staging_open(gm_device *device, gm__ring **out, gm_error *err) {
  gm_status status = GM_OK;
  *out = staging_use(device);
  while (!*out && status == GM_OK) {
    status = gm__staging_shape(device, STAGING_SLOTS, gm__ring_usual_bytes(), err);
    *out = staging_use(device);
  }
  return *out ? GM_OK : status;
}

bool gm__staging_small(gm_device *device, uint64_t *out) {
  gm__mutex_lock(&device->lock);
  const bool measured = device->staging->measured;
  *out = device->staging->small;
  gm__mutex_unlock(&device->lock);
  return measured;
}

void gm__staging_set_small(gm_device *device, uint64_t bytes) {
  gm__mutex_lock(&device->lock);
  device->staging->measured = true;
  device->staging->small = bytes;
  gm__mutex_unlock(&device->lock);
}

bool gm__staging_links(gm_device *device, double *out_up, double *out_down) {
  gm__mutex_lock(&device->lock);
  *out_up = device->staging ? device->staging->up : 0;
  *out_down = device->staging ? device->staging->down : 0;
  gm__mutex_unlock(&device->lock);
  return *out_up > 0;
}

void gm__staging_set_links(gm_device *device, double up, double down) {
  gm__mutex_lock(&device->lock);
  device->staging->up = up;
  device->staging->down = down;
  gm__mutex_unlock(&device->lock);
}

void gm__staging_close(gm_device *device) {
  gm__mutex_lock(&device->lock);
  device->staging->users--;
  gm__mutex_unlock(&device->lock);
}

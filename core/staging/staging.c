#include "core/staging/staging.h"

#include "core/device/device.h"
#include "core/device/device_alloc.h"
#include "core/staging/stock.h"

/* The ring leaves the stock, under the device's lock, only while nobody uses the stock. Then it is ended without a
 * lock. So a device that stays open after all gets a new one when it needs one. */

enum { STAGING_SLOTS = 16 };

/* Takes the device's ring away if nobody uses it, and the memory beside it. NULL: there is none, or it is in use. In a
 * forked child nobody closes what the parent opened. */
static gm__ring *staging_detach(gm_device *device, bool forked, gm_memory *out_beside) {
  gm__ring *ring = NULL;
  if (!forked) gm__mutex_lock(&device->lock);
  gm__stock *stock = device->stock;
  if (stock && forked) {
    stock->users -= stock->own.opens;
    stock->own.opens = 0;
  }
  if (stock && stock->own.ring && stock->users == 1) {
    ring = stock->own.ring;
    stock->own.ring = NULL;
    for (int use = 0; use < GM__BESIDES; use++) {
      out_beside[use] = stock->own.beside[use].memory;
      stock->own.beside[use].memory = (gm_memory){.handle = 0};
      stock->own.beside[use].known = false;
    }
  }
  if (!forked) gm__mutex_unlock(&device->lock);
  return ring;
}

static gm_status staging_end(gm_device *device, gm_error *err);

/* False: it has one. */
static bool staging_attach(gm_device *device, gm__ring *ring, const gm_memory *beside) {
  gm__mutex_lock(&device->lock);
  const bool first = !device->stock->own.ring;
  if (first) device->stock->own.ring = ring;
  for (int use = 0; use < GM__BESIDES && first && beside; use++) {
    device->stock->own.beside[use].memory = beside[use];
    device->stock->own.beside[use].known = beside[use].handle != 0;
  }
  device->end_stock = staging_end;
  gm__mutex_unlock(&device->lock);
  return first;
}

static gm_status staging_end(gm_device *device, gm_error *err) {
  gm_memory beside[GM__BESIDES] = {{.handle = 0}};
  gm__ring *ring = staging_detach(device, gm__context_forked(device->ctx), beside);
  const gm_status status = gm__ring_destroy(ring, err);
  for (int use = 0; use < GM__BESIDES && status == GM_OK; use++) {
    if (beside[use].handle) gm__device_free(device, &beside[use], NULL);
  }
  if (status == GM_OK) return gm__stock_end(device, err);
  staging_attach(device, ring, beside);
  return status;
}

gm_status gm__staging_shape(gm_device *device, uint32_t slots, uint64_t slot_bytes, gm_error *err) {
  gm__ring *ring;
  const gm_status status = gm__ring_create(device, slots, slot_bytes, &ring, err);
  if (status == GM_OK && !staging_attach(device, ring, NULL))
    gm__ring_destroy(ring, NULL); /* another thread was first */
  return status;
}

static gm__ring *staging_use(gm_device *device, uint32_t opens) {
  gm__mutex_lock(&device->lock);
  gm__ring *ring = device->stock->own.ring;
  device->stock->own.opens += opens;
  gm__mutex_unlock(&device->lock);
  return ring;
}

gm_status gm__staging_open(gm_device *device, gm__ring **out, gm_error *err) {
  gm__stock *stock;
  *out = NULL;
  gm_status status = gm__stock_join(device, &stock, err);
  if (status) return status;
  if (!staging_use(device, 1)) status = gm__staging_shape(device, STAGING_SLOTS, gm__ring_usual_bytes(), err);
  if (status) return gm__staging_close(device), status;
  *out = staging_use(device, 0);
  return GM_OK;
}

bool gm__staging_small(gm_device *device, uint64_t *out) {
  gm__mutex_lock(&device->lock);
  const bool measured = device->stock->own.measured;
  *out = device->stock->own.small;
  gm__mutex_unlock(&device->lock);
  return measured;
}

void gm__staging_set_small(gm_device *device, uint64_t bytes) {
  gm__mutex_lock(&device->lock);
  device->stock->own.measured = true;
  device->stock->own.small = bytes;
  gm__mutex_unlock(&device->lock);
}

bool gm__staging_beside(gm_device *device, gm__beside use, uint64_t *out_most, gm_memory *out_memory) {
  gm__mutex_lock(&device->lock);
  const bool known = device->stock->own.beside[use].known;
  *out_most = device->stock->own.beside[use].most;
  *out_memory = device->stock->own.beside[use].memory;
  gm__mutex_unlock(&device->lock);
  return known;
}

void gm__staging_set_beside(gm_device *device, gm__beside use, uint64_t most, const gm_memory *memory) {
  gm__mutex_lock(&device->lock);
  const bool first = !device->stock->own.beside[use].known;
  if (first) device->stock->own.beside[use].most = most;
  if (first) device->stock->own.beside[use].memory = *memory;
  device->stock->own.beside[use].known = true;
  gm__mutex_unlock(&device->lock);
  if (!first && memory->handle) gm__device_free(device, memory, NULL); /* another thread was first */
}

bool gm__staging_links(gm_device *device, double *out_up, double *out_down) {
  gm__mutex_lock(&device->lock);
  *out_up = device->stock ? device->stock->own.up : 0;
  *out_down = device->stock ? device->stock->own.down : 0;
  gm__mutex_unlock(&device->lock);
  return *out_up > 0;
}

void gm__staging_set_links(gm_device *device, double up, double down) {
  gm__mutex_lock(&device->lock);
  device->stock->own.up = up;
  device->stock->own.down = down;
  gm__mutex_unlock(&device->lock);
}

void gm__staging_close(gm_device *device) {
  gm__mutex_lock(&device->lock);
  device->stock->own.opens--;
  device->stock->users--;
  gm__mutex_unlock(&device->lock);
}

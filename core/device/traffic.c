#include "core/device/traffic.h"

#include "core/device/device.h"

void gm__traffic_count(gm_device *device, gm__traffic_way way, uint64_t bytes, uint64_t useful_bytes) {
  gm__traffic *traffic = &device->traffic;
  atomic_fetch_add_explicit(&traffic->bytes[way], bytes, memory_order_relaxed);
  atomic_fetch_add_explicit(&traffic->copies[way], 1, memory_order_relaxed);
  atomic_fetch_add_explicit(&traffic->useful_bytes, useful_bytes, memory_order_relaxed);
}

void gm__traffic_begin(gm_device *device, uint64_t now) {
  gm__traffic *traffic = &device->traffic;
  gm__mutex_lock(&device->lock);
  if (!traffic->users++) traffic->since_ns = now;
  traffic->begun++;
  gm__mutex_unlock(&device->lock);
}

void gm__traffic_end(gm_device *device, uint64_t now) {
  gm__traffic *traffic = &device->traffic;
  gm__mutex_lock(&device->lock);
  if (!--traffic->users && now > traffic->since_ns) traffic->ns += now - traffic->since_ns;
  gm__mutex_unlock(&device->lock);
}

uint64_t gm__traffic_users(gm_device *device, uint64_t now, uint64_t *out_ns) {
  const gm__traffic *traffic = &device->traffic;
  gm__mutex_lock(&device->lock);
  const uint64_t users = traffic->begun;
  *out_ns = traffic->ns;
  if (traffic->users && now > traffic->since_ns) *out_ns += now - traffic->since_ns;
  gm__mutex_unlock(&device->lock);
  return users;
}

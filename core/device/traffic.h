/* Counts what went over a device's link: by transfers, loads, saves, pipelines, copies between devices. How long at
 * least one of them was under way stands beside it. Thread-safe; no call takes a lock. */
#ifndef GM_CORE_DEVICE_TRAFFIC_H
#define GM_CORE_DEVICE_TRAFFIC_H

#include <stdatomic.h>
#include <stdint.h>

#include "core/base/inner.h"

struct gm_device;

typedef enum gm__traffic_way { GM__TRAFFIC_UP, GM__TRAFFIC_DOWN, GM__TRAFFIC_WAYS } gm__traffic_way;

/* Each device has one. Zero-initialised. */
typedef struct gm__traffic {
  _Atomic uint64_t bytes[GM__TRAFFIC_WAYS], copies[GM__TRAFFIC_WAYS], useful_bytes;
  _Atomic uint64_t begun; /* users that there ever were */
  _Atomic uint64_t users; /* how many there are, and since when there is one: traffic.c */
  _Atomic uint64_t ticks; /* the whole time, before that, in which there was one */
} gm__traffic;

/* A copy was submitted. So many of its bytes were asked for: the rest lies between small pieces. */
GM__INNER void gm__traffic_count(struct gm_device *device, gm__traffic_way way, uint64_t bytes, uint64_t useful_bytes);

/* From one to the other a user is under way. */
GM__INNER void gm__traffic_begin(struct gm_device *device, uint64_t now);
GM__INNER void gm__traffic_end(struct gm_device *device, uint64_t now);

/* How many users there were, and the nanoseconds, as of `now`, in which there was one. */
uint64_t gm__traffic_users(const struct gm_device *device, uint64_t now, uint64_t *out_ns);

#endif

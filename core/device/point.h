/* Points in a stream's work, from outside the core: numbers that must be looked at before they are used. */
#ifndef GM_CORE_DEVICE_POINT_H
#define GM_CORE_DEVICE_POINT_H

#include "core/device/stream.h"

/* GM_OK; INVALID_ARGUMENT for NULL, and for a point of another device. */
GM__INNER gm_status gm__point_check(const gm_device *device, const gm_point *point, const char *op, gm_error *err);

/* The stream of a point that may not have passed yet; NULL: the point has passed. Borrowed, as from
 * gm__device_find_stream. */
gm_stream *gm__point_stream(gm_device *device, const gm_point *point);

/* A second point at the same place, released by itself; zero where it has passed. NULL counts as passed. NOT_SUPPORTED:
 * the backend cannot. */
GM__INNER gm_status gm__point_keep(gm_device *device, const gm_point *point, gm_point *out, gm_error *err);

#endif

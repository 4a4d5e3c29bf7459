/* The plain case of the seam: checks of a request that every backend makes, and entries for an API that needs nothing
 * there. Thread-safe, no state. `op` names the entry in reasons. */
#ifndef GM_BACKENDS_SHARED_PLAIN_H
#define GM_BACKENDS_SHARED_PLAIN_H

#include "gm/backend.h"

/* INVALID_ARGUMENT unless `type` is one of `types` memory types. */
gm_status gm__plain_check_type(const char *op, uint32_t types, uint32_t type, gm_error *err);

/* INVALID_ARGUMENT unless the type is one of `types`, the bytes are not 0, and the alignment is 0 or a power of two. */
gm_status gm__plain_check(const char *op, uint32_t types, const gm_memory_params *params, gm_error *err);

/* NOT_FOUND unless `index` is one of `count` devices. */
gm_status gm__plain_check_index(const char *op, uint64_t count, uint32_t index, gm_error *err);

/* The device is never lost. */
gm_status gm__plain_device_state(void *device, gm_error *err);

/* The device has one memory type. */
gm_status gm__plain_type_count(void *device, uint32_t *out, gm_error *err);

/* Work of a stream runs by itself and in order: for stream_flush and stream_barrier. */
gm_status gm__plain_stream_done(void *device, void *stream, gm_error *err);

/* A point is two numbers. */
gm_status gm__plain_point_copy(void *device, const gm_backend_point *point, gm_backend_point *out, gm_error *err);
void gm__plain_point_release(void *device, const gm_backend_point *point, gm_close_mode mode);

#endif

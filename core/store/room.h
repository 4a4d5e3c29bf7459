/* Values come to the device. Where it has no room, others go down first. The caller does not hold the lock. */
#ifndef GM_CORE_STORE_ROOM_H
#define GM_CORE_STORE_ROOM_H

#include "core/store/entry.h"

/* Make a tensor on the device, of a checked description, written from host memory. */
gm_status gm__room_tensor(gm_store *store, const gm_tensor_desc *desc, uint64_t bytes, const gm__transfer *from,
                          gm_value **out, gm_error *err);

/* The value itself, with one reference more, or a copy of it that has nothing in plain host memory. */
gm_status gm__room_value(gm_store *store, gm_value *value, gm_value **out, gm_error *err);

/* Make a value of its image. */
gm_status gm__room_image(gm_store *store, const gm__image *image, gm_value **out, gm_error *err);

#endif

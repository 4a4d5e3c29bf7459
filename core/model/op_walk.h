/* The operations of a whole decoder, in the engine's order (rule 5a). */
#ifndef GM_CORE_MODEL_OP_WALK_H
#define GM_CORE_MODEL_OP_WALK_H

#include "core/model/estimate_shape.h"

/* Bytes of the compute buffer when everything runs on the device, or on the host. The shape has a row. */
gm_status gm__op_walk(const gm_services *services, const gm__shape *shape, bool on_host, uint64_t *out, gm_error *err);

#endif

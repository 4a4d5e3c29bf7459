/* Floats of 16 bits that the device makes floats of 32 bits. */
#ifndef GM_CORE_TRANSFER_EXPAND_H
#define GM_CORE_TRANSFER_EXPAND_H

#include <stdbool.h>

#include "gm/codec.h"
#include "gm/dtype.h"

/* The floats that a codec encodes to, if a kernel can expand them. False: `codec` is not one of gm's own two. */
bool gm__expand_type(const gm_codec *codec, gm_dtype *out);

#endif

/* Values go up that came to host memory because the device was full. */
#ifndef GM_CORE_STORE_RISE_H
#define GM_CORE_STORE_RISE_H

#include "core/store/value.h"

/* Bring the tensors of a value to the device that fell back, as far as there is room without taking others down.
 * `alone`: nobody but the store and the caller has the value, nor can get it meanwhile. The caller holds no lock. */
void gm__rise(gm_value *value, bool alone);

#endif

/* Page-locks the caller's memory with mlock. */
#ifndef GM_BACKENDS_CPU_CPU_PINNED_H
#define GM_BACKENDS_CPU_CPU_PINNED_H

#include "backends/cpu/cpu_device.h"

/* Forget every registered range. GM_CLOSE_NORMAL unlocks them too. */
void gm__cpu_pinned_clear(gm__cpu_device *device, gm_close_mode mode);

#endif

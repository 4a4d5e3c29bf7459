/* Names in the lists of the program and the operator that stand for no backend. */
#ifndef GM_CORE_DEVICE_UNKNOWN_NAMES_H
#define GM_CORE_DEVICE_UNKNOWN_NAMES_H

#include "core/device/registry.h"

/* Log a warning for each such name, the first time that it is called for the registry: a misspelt one would otherwise
 * be passed over in silence. No failure, because a stranger's backend may be registered later. */
void gm__unknown_names_log(gm__registry *registry);

#endif

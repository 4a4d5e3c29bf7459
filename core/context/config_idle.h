/* Keys that somebody set, and that change nothing as the configuration is. REQUIRES: the configuration's lock. */
#ifndef GM_CORE_CONTEXT_CONFIG_IDLE_H
#define GM_CORE_CONTEXT_CONFIG_IDLE_H

#include "core/context/config_values.h"

/* Say of each key that somebody set without effect, once in the life of the configuration, that it has none. */
void gm__config_say_idle(gm__config *config);

/* Say it of one key, likewise. */
void gm__config_say_idle_key(gm__config *config, size_t index);

#endif

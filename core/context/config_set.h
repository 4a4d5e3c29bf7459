/* Where values come from: presets, a file, the environment. REQUIRES: the configuration's lock. */
#ifndef GM_CORE_CONTEXT_CONFIG_SET_H
#define GM_CORE_CONTEXT_CONFIG_SET_H

#include "core/context/config_values.h"

gm_status gm__config_apply_preset(gm__config *config, const char *preset, gm_error *err);
gm_status gm__config_apply_file(gm__config *config, const char *path, gm_error *err); /* all or nothing */

/* Read the file GM_CONFIG, then the variable of each key. A GM_ variable that is none is logged. */
gm_status gm__config_apply_environment(gm__config *config, gm_error *err);

#endif

/* The configuration of one context: values with their origin, behind a lock of its own. */
#ifndef GM_CORE_CONTEXT_CONFIG_H
#define GM_CORE_CONTEXT_CONFIG_H

#include "core/context/context.h"
#include "gm/config.h"

/* Defaults, then `preset` (NULL: none), the file GM_CONFIG, the environment (both unless `ignore_environment`). Errors
 * as gm_context_create. */
gm_status gm__config_create(const gm_services *services, const char *preset, bool ignore_environment, gm__config **out,
                            gm_error *err);
void gm__config_destroy(gm__config *config, const gm_services *services);

#endif

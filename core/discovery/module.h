/* Modules: shared libraries that export a backend (`const gm_backend_ops *gm_backend_module(void)`). The probe helper
 * can load one, so such a backend is isolated as gm's own are. */
#ifndef GM_CORE_DISCOVERY_MODULE_H
#define GM_CORE_DISCOVERY_MODULE_H

#include <stdbool.h>
#include <stddef.h>

#include "gm/backend.h"

/* The file of the module that the table comes from. False: it comes from the program itself, from a library that
 * exports another backend or none, or the path is too long. */
bool gm__module_of(const gm_backend_ops *ops, char *path, size_t capacity);

/* Loads a module, for good, and returns its table. UNAVAILABLE: it cannot be loaded, or exports no backend. */
gm_status gm__module_load(const char *path, const gm_backend_ops **out, gm_error *err);

#endif

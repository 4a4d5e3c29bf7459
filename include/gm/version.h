/* Version of the headers (macros) and of the library in use (function). CMake reads its version from here. */
#ifndef GM_VERSION_H
#define GM_VERSION_H

#include "gm/export.h"

GM_BEGIN_DECLS

#define GM_VERSION_MAJOR 0
#define GM_VERSION_MINOR 1
#define GM_VERSION_PATCH 0

/* "0.1.0", of the library that is linked or loaded. Static storage, never NULL. Thread-safe. */
GM_API const char *gm_version_string(void);

GM_END_DECLS

#endif

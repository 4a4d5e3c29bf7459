/* Version of the headers (macros) and of the library in use (function). CMake reads its version from here. */
#ifndef GM_VERSION_H
#define GM_VERSION_H

#include <stdint.h>

#include "gm/export.h"

GM_BEGIN_DECLS

#define GM_VERSION_MAJOR 0
#define GM_VERSION_MINOR 1
#define GM_VERSION_PATCH 0

/* The three as one number: a later version has a higher one. */
#define GM_VERSION_NUMBER (GM_VERSION_MAJOR * 1000000 + GM_VERSION_MINOR * 1000 + GM_VERSION_PATCH)

/* GM_VERSION_NUMBER of the library that is linked or loaded, which may be another than the headers'. Thread-safe. */
GM_API uint32_t gm_version(void);

/* "0.1.0", of the library that is linked or loaded. Static storage, never NULL. Thread-safe. */
GM_API const char *gm_version_string(void);

GM_END_DECLS

#endif

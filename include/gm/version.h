/* The version of these headers (macros) and of the library in use (functions). CMake reads gm's version from this file.
 */
#ifndef GM_VERSION_H
#define GM_VERSION_H

#include <stdint.h>

#include "gm/export.h"

GM_BEGIN_DECLS

#define GM_VERSION_MAJOR 0
#define GM_VERSION_MINOR 1
#define GM_VERSION_PATCH 0

/* The version as one number. A later version has a higher number. */
#define GM_VERSION_NUMBER (GM_VERSION_MAJOR * 1000000 + GM_VERSION_MINOR * 1000 + GM_VERSION_PATCH)

/* Returns GM_VERSION_NUMBER of the library in use. Its version may differ from that of the headers. Thread-safe. */
GM_API uint32_t gm_version(void);

/* Returns the version of the library in use as text, such as "0.1.0". The string is static and never NULL. Thread-safe.
 */
GM_API const char *gm_version_string(void);

GM_END_DECLS

#endif

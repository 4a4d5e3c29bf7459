/* UUIDs for devices whose API has none. Thread-safe. */
#ifndef GM_CORE_BASE_UUID_H
#define GM_CORE_BASE_UUID_H

#include <stdint.h>

/* The same 16 bytes for the same four values on every machine, of the form of a version 8 UUID (RFC 9562: made by the
 * application). A hash, not a proof: different values give different bytes but by accident. */
void gm__uuid_derive(const char *backend, const char *driver, const char *name, uint32_t ordinal, uint8_t out[16]);

#endif

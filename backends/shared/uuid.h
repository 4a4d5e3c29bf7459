/* UUIDs: whether there is one, and one for devices whose API has none. Thread-safe. */
#ifndef GM_BACKENDS_SHARED_UUID_H
#define GM_BACKENDS_SHARED_UUID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Make a version 8 UUID (RFC 9562: made by the application). The same four values give the same 16 bytes on every
 * machine. It is a hash: different values can give the same bytes only by accident. */
void gm__uuid_derive(const char *backend, const char *driver, const char *name, uint32_t ordinal, uint8_t out[16]);

/* All `count` bytes are zero: the driver told no UUID, or no LUID. */
bool gm__uuid_is_zero(const void *bytes, size_t count);

#endif

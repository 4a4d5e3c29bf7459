/* The 32-bit checksum of zip files (ISO 3309). Pure and thread-safe. */
#ifndef GM_CORE_BASE_CRC32_H
#define GM_CORE_BASE_CRC32_H

#include <stddef.h>
#include <stdint.h>

#include "core/base/inner.h"

/* The checksum of all bytes so far, where `before` is that of those before `bytes` (0: there are none). */
GM__INNER uint32_t gm__crc32(uint32_t before, const void *bytes, size_t count);

#endif

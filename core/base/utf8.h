/* Whether text is UTF-8. It calls nothing. */
#ifndef GM_CORE_BASE_UTF8_H
#define GM_CORE_BASE_UTF8_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/inner.h"

/* The bytes of the UTF-8 sequence that `text` begins with; `left` bytes are there (1 or more). 0: it is none,
 * because it is overlong, a surrogate, beyond U+10FFFF, or cut off. */
GM__INNER uint32_t gm__utf8_length(const char *text, uint64_t left);

/* Is all of it UTF-8? */
GM__INNER bool gm__utf8_is(const char *text, uint64_t bytes);

#endif

/* Decimal numbers in foreign text. */
#ifndef GM_CORE_BASE_DECIMAL_H
#define GM_CORE_BASE_DECIMAL_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/inner.h"

/* Read the digits at `text`, without sign or white space. False: there is no digit, or the number needs more than 64
 * bits. `end` (may be NULL) gets the first character after them. A failure leaves the outputs untouched. */
GM__INNER bool gm__decimal(const char *text, const char **end, uint64_t *out);

/* `text` with blanks and tabs skipped. */
const char *gm__skip_blanks(const char *text);

#endif

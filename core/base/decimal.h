/* Decimal numbers in text that others wrote. */
#ifndef GM_CORE_BASE_DECIMAL_H
#define GM_CORE_BASE_DECIMAL_H

#include <stdbool.h>
#include <stdint.h>

/* The digits at `text`: false when there is none or the number needs more than 64 bits. No sign, no white space.
 * `end` (nullable) gets the first character behind them; outputs are untouched on failure. */
bool gm__decimal(const char *text, const char **end, uint64_t *out);

/* `text` with blanks and tabs skipped. */
const char *gm__skip_blanks(const char *text);

#endif

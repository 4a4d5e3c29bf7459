/* AddressSanitizer's marks on memory, where the program runs under it. gm itself may be built without it. Thread-safe.
 */
#ifndef GM_CORE_BASE_SHADOW_H
#define GM_CORE_BASE_SHADOW_H

#include <stdbool.h>
#include <stdint.h>

/* Does the program run under AddressSanitizer? If not, the functions below do nothing. */
bool gm__shadow_present(void);

/* After close, nobody may touch these bytes until open. */
void gm__shadow_close(const void *bytes, uint64_t count);
void gm__shadow_open(const void *bytes, uint64_t count);

#endif

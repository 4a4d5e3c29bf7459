/* AddressSanitizer's marks on memory, where the program runs under it: also in a gm that was built without.
 * Thread-safe.
 */
#ifndef GM_CORE_BASE_SHADOW_H
#define GM_CORE_BASE_SHADOW_H

#include <stdbool.h>
#include <stdint.h>

/* False: the others do nothing. */
bool gm__shadow_present(void);

/* Nobody may touch these bytes until gm__shadow_open. */
void gm__shadow_close(const void *bytes, uint64_t count);
void gm__shadow_open(const void *bytes, uint64_t count);

#endif

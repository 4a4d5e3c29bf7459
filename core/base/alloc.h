/* All host memory of the library. Thread-safe as far as the services are. */
#ifndef GM_CORE_BASE_ALLOC_H
#define GM_CORE_BASE_ALLOC_H

#include <stdbool.h>
#include <stddef.h>

#include "gm/services.h"
#include "gm/status.h"

/* The C library's allocator and no log. Static storage. Wherever services are taken, NULL means these. */
const gm_services *gm__default_services(void);

/* GM_ERR_INVALID_ARGUMENT when only one of `alloc` and `release` is given. NULL services are fine. */
gm_status gm__services_check(const gm_services *services, gm_error *err);

/* Zeroed memory at a multiple of 16; NULL when there is none. 0 bytes count as 1. Give it back with gm__release. */
void *gm__alloc(const gm_services *services, size_t bytes);

/* The same for `count` * `size` bytes; NULL also when the product overflows. */
void *gm__alloc_array(const gm_services *services, size_t count, size_t size);

/* Give back `ptr` with the bytes it was asked for with. NULL `ptr`: nothing. */
void gm__release(const gm_services *services, void *ptr, size_t bytes);

/* Move the memory that `pointer_at` (a T **; *pointer_at may be NULL when `old_bytes` is 0) points to into one of
 * `new_bytes`, contents kept up to the smaller size, the rest zero. False when there is none: then all stays as it was.
 */
bool gm__grow(const gm_services *services, void *pointer_at, size_t old_bytes, size_t new_bytes);

#endif

/* All host memory of the library. Thread-safe as far as the services are. */
#ifndef GM_CORE_BASE_ALLOC_H
#define GM_CORE_BASE_ALLOC_H

#include <stdbool.h>
#include <stddef.h>

#include "core/base/inner.h"
#include "gm/services.h"
#include "gm/status.h"

/* The C library's allocator, without a log. Static storage. Every function that takes services uses these for NULL. */
GM__INNER const gm_services *gm__default_services(void);

/* GM_ERR_INVALID_ARGUMENT when only one of `alloc` and `release` is given. NULL services are fine. */
GM__INNER gm_status gm__services_check(const gm_services *services, gm_error *err);

/* Allocate zeroed memory at a multiple of 16, from 256 bytes on of 64. NULL: no memory. 0 bytes count as 1. gm__release
 * frees it. */
GM__INNER void *gm__alloc(const gm_services *services, size_t bytes);

/* gm__alloc at a multiple of 16, whatever the size: the C library is faster. For memory that few threads share. */
void *gm__alloc_plain(const gm_services *services, size_t bytes);

/* gm__alloc for `count` * `size` bytes. NULL also when the product overflows. */
GM__INNER void *gm__alloc_array(const gm_services *services, size_t count, size_t size);

/* Free `ptr`. `bytes` is the size of its request. NULL does nothing. */
GM__INNER void gm__release(const gm_services *services, void *ptr, size_t bytes);

/* `bytes` bytes at `at`, whole pages of a block of `block_bytes` bytes, are zero. They stay so, and take no memory
 * until somebody writes there again, if the block is large and not a host program's. */
void gm__alloc_unback(const gm_services *services, size_t block_bytes, void *at, size_t bytes);

/* Resize the memory at *pointer_at to `new_bytes`. `pointer_at` is a T **; *pointer_at may be NULL when `old_bytes` is
 * 0. The contents stay, up to the smaller size, and the rest is zero. Large memory grows without a copy, but for memory
 * of a host program's hooks. False: no memory, and nothing has changed. */
GM__INNER bool gm__grow(const gm_services *services, void *pointer_at, size_t old_bytes, size_t new_bytes);

#endif

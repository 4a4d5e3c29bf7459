/* Filling a caller's gm_error. Thread-safe: touches only what the caller passes. */
#ifndef GM_CORE_BASE_ERROR_H
#define GM_CORE_BASE_ERROR_H

#include <stdarg.h>

#include "gm/status.h"

/* Fill `err` (NULL: nothing to fill) and return `status`, so that failing is one line:
 *   return gm__fail(err, GM_ERR_IO, errno, "open", "%s: %s", path, strerror(errno));
 * Text that does not fit is cut; control characters in it (it may quote a file) become '?'. */
gm_status gm__fail(gm_error *err, gm_status status, int32_t native_code, const char *op, const char *format, ...)
    GM_PRINTF(5, 6);

/* Static analysis reads one file at a time and must know that what is returned is `status`, not GM_OK. */
#ifdef __clang_analyzer__
#define gm__fail(err, status, ...) ((void)gm__fail((err), (status), __VA_ARGS__), (status))
#endif

/* A status that must be looked at: what comes next is only right on GM_OK. */
#define GM__MUST_USE __attribute__((warn_unused_result))

/* `status` is what a backend answered to the public call `op`. What it refused by itself, with no answer of a driver or
 * the system behind it, is named after that call: a backend does not know which one was made. */
gm_status gm__error_of(const char *op, gm_status status, gm_error *err);

/* gm__fail for an argument: "gm_pool_create: `align` must be a power of two, is 3". */
#define gm__bad_argument(err, op, ...) gm__fail((err), GM_ERR_INVALID_ARGUMENT, 0, (op), __VA_ARGS__)

#endif

/* Functions that fill a caller's gm_error. Thread-safe: they touch only the caller's arguments. */
#ifndef GM_CORE_BASE_ERROR_H
#define GM_CORE_BASE_ERROR_H

#include <stdarg.h>

#include "core/base/inner.h"
#include "gm/status.h"

/* Fill `err`, unless it is NULL, and return `status`. So a failure is one line:
 *
 *   return gm__fail(err, GM_ERR_IO, "read", "%s: ends before its table", path);
 *
 * Text that does not fit is cut; control characters in it (it may quote a file) become '?'. */
GM__INNER gm_status gm__fail(gm_error *err, gm_status status, const char *op, const char *format, ...) GM_PRINTF(4, 5);

/* gm__fail with the code of the driver or the system that refused:
 *
 *   return gm__fail_native(err, GM_ERR_IO, errno, "open", "%s: %s", path, strerror(errno)); */
GM__INNER gm_status gm__fail_native(gm_error *err, gm_status status, int32_t native_code, const char *op,
                                    const char *format, ...) GM_PRINTF(5, 6);

/* Static analysis reads one file at a time and must know that both return `status`, not GM_OK. */
#ifdef __clang_analyzer__
#define gm__fail(err, status, ...) ((void)gm__fail((err), (status), __VA_ARGS__), (status))
#define gm__fail_native(err, status, ...) ((void)gm__fail_native((err), (status), __VA_ARGS__), (status))
#endif

/* The caller must look at the status: its next step is only right after GM_OK. */
#define GM__MUST_USE __attribute__((warn_unused_result))

/* `status` is a backend's answer to the public call `op`. A backend may refuse by itself, without an answer of the
 * driver or the system. Then `err` gets the name of that call, which a backend does not know. */
GM__INNER gm_status gm__error_of(const char *op, gm_status status, gm_error *err);

/* An error without a failure. Its texts are empty, and not all of its bytes are set: that would cost more than a small
 * copy. */
static inline void gm__error_none(gm_error *err) {
  err->status = GM_OK;
  err->native_code = 0;
  err->op[0] = err->message[0] = 0;
}

/* gm__fail for a wrong argument: "gm_pool_create: `align` must be a power of two, is 3". */
#define gm__bad_argument(err, op, ...) gm__fail((err), GM_ERR_INVALID_ARGUMENT, (op), __VA_ARGS__)

#endif

#include "core/base/error.h"

#include <stdbool.h>
#include <stdio.h>

#include "core/base/text_clean.h"

const char *gm_status_name(gm_status status) {
  switch (status) {
#define X(name, value, text) \
  case name: return #name;
    GM_STATUS_MAP(X)
#undef X
  }
  return "GM_ERR_?";
}

const char *gm_status_text(gm_status status) {
  switch (status) {
#define X(name, value, text) \
  case name: return text;
    GM_STATUS_MAP(X)
#undef X
  }
  return "not a gm_status";
}

static void error_fill(gm_error *err, gm_status status, int32_t native_code, const char *op, const char *format,
                       va_list args) {
  err->status = status;
  err->native_code = native_code;
  snprintf(err->op, sizeof err->op, "%s", op);
  vsnprintf(err->message, sizeof err->message, format, args);
  gm__text_clean(err->message);
}

/* The brackets keep the analysers' macros of the same names out of the definitions. */
gm_status(gm__fail)(gm_error *err, gm_status status, const char *op, const char *format, ...) {
  if (!err) return status;
  va_list args;
  va_start(args, format);
  error_fill(err, status, 0, op, format, args);
  va_end(args);
  return status;
}

gm_status(gm__fail_native)(gm_error *err, gm_status status, int32_t native_code, const char *op, const char *format,
                           ...) {
  if (!err) return status;
  va_list args;
  va_start(args, format);
  error_fill(err, status, native_code, op, format, args);
  va_end(args);
  return status;
}

static bool error_is_refusal(gm_status status) {
  switch (status) {
    case GM_ERR_INVALID_ARGUMENT:
    case GM_ERR_NOT_SUPPORTED:
    case GM_ERR_NOT_FOUND:
    case GM_ERR_BUSY:
    case GM_ERR_TIMEOUT:
    case GM_ERR_OVER_LIMIT:
    case GM_ERR_ALLOCATION_TOO_LARGE:
    case GM_ERR_OUT_OF_DEVICE_MEMORY:
    case GM_ERR_OUT_OF_HOST_MEMORY: return true;
    default: return false;
  }
}

gm_status gm__error_of(const char *op, gm_status status, gm_error *err) {
  if (err && error_is_refusal(status) && !err->native_code) snprintf(err->op, sizeof err->op, "%s", op);
  return status;
}

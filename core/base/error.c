#include "core/base/error.h"

#include <stdio.h>

#include "core/base/text.h"

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

/* The brackets keep the macro of the same name, which analysers see, out of the definition. */
gm_status(gm__fail)(gm_error *err, gm_status status, int32_t native_code, const char *op, const char *format, ...) {
  if (!err) return status;
  err->status = status;
  err->native_code = native_code;
  snprintf(err->op, sizeof err->op, "%s", op);
  va_list args;
  va_start(args, format);
  vsnprintf(err->message, sizeof err->message, format, args);
  va_end(args);
  gm__text_clean(err->message);
  return status;
}

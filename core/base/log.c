#include "core/base/log.h"

#include <stdarg.h>
#include <stdio.h>

#include "core/base/cancel.h"
#include "core/base/text_clean.h"

void gm__log(const gm_services *services, gm_log_level level, const char *format, ...) {
  if (!services || !services->log) return;
  GM__UNCANCELLED();
  char line[GM__LOG_LINE];
  va_list args;
  va_start(args, format);
  int length = vsnprintf(line, sizeof line, format, args);
  va_end(args);
  if (length < 0) return;
  gm__text_clean(line);
  services->log(services->user, (int)level, line);
}

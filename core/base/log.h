/* One line to the host program's log. Thread-safe as far as its hook is. */
#ifndef GM_CORE_BASE_LOG_H
#define GM_CORE_BASE_LOG_H

#include "gm/services.h"

/* Longest line handed to the hook, with its end mark; what does not fit is cut. */
enum { GM__LOG_LINE = 512 };

/* Format one line and hand it to services->log; control characters become '?'. Without services or hook: nothing, and
 * nothing is formatted. Takes no memory. */
void gm__log(const gm_services *services, gm_log_level level, const char *format, ...) GM_PRINTF(3, 4);

#endif

/* The host program's log. Thread-safe as far as its hook is. */
#ifndef GM_CORE_BASE_LOG_H
#define GM_CORE_BASE_LOG_H

#include "core/base/inner.h"
#include "gm/services.h"

/* The hook gets lines of at most this size, with the terminating NUL. A longer line is cut. */
enum { GM__LOG_LINE = 512 };

/* Format one line and give it to services->log. Control characters become '?'. Without services or hook it does
 * nothing, and formats nothing. It allocates no memory. */
GM__INNER void gm__log(const gm_services *services, gm_log_level level, const char *format, ...) GM_PRINTF(3, 4);

#endif

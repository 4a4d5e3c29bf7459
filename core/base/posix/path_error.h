/* Names for the system's refusals of a path. Thread-safe. */
#ifndef GM_CORE_BASE_POSIX_PATH_ERROR_H
#define GM_CORE_BASE_POSIX_PATH_ERROR_H

#include "gm/status.h"

/* The status: GM_ERR_NOT_FOUND where nothing is there, else GM_ERR_IO. */
gm_status gm__path_error_status(int code);

/* The words for a message, in static storage. */
const char *gm__path_error_text(int code);

#endif

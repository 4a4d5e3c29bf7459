/* Foreign text that gm prints or passes on. It calls nothing, so errors and log lines can use it. */
#ifndef GM_CORE_BASE_TEXT_CLEAN_H
#define GM_CORE_BASE_TEXT_CLEAN_H

#include "core/base/inner.h"

/* Replace every control character of `text` by '?'. */
GM__INNER void gm__text_clean(char *text);

#endif

/* Everything about pages. Apart from gm/gm.h, since only an engine with a paged cache needs it. */
#ifndef GM_PAGES_ALL_H
#define GM_PAGES_ALL_H

#include "gm/gm.h"
#include "gm/page_memory.h"
#include "gm/page_table.h"
#include "gm/pages.h"

#endif

/* Everything about pages and slots. Apart from gm/gm.h, since only some engines need it. */
#ifndef GM_PAGES_ALL_H
#define GM_PAGES_ALL_H

#include "gm/gm.h"
#include "gm/page_memory.h"
#include "gm/page_table.h"
#include "gm/pages.h"
#include "gm/slots.h"

#endif

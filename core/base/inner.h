/* Marks what gm's libraries say to each other. */
#ifndef GM_CORE_BASE_INNER_H
#define GM_CORE_BASE_INNER_H

#include "gm/export.h"

/* A function or table that another library of gm uses, and no program: libgm exports it to those of its own version. */
#define GM__INNER GM_API

#endif

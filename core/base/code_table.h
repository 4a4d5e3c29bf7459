/* Numbers that a vendor's API answers, what they mean here and how the vendor calls them. No state. */
#ifndef GM_CORE_BASE_CODE_TABLE_H
#define GM_CORE_BASE_CODE_TABLE_H

#include <stddef.h>

#include "gm/status.h"

typedef struct gm__code {
  int number;
  gm_status status;
  const char *name;
} gm__code;

/* The row of the number; for one that is not there {0, GM_ERR_DRIVER, "unknown code"}. Never NULL. */
const gm__code *gm__code_find(const gm__code *codes, size_t count, int number);

#endif

/* Numbers that a vendor's API answers: what each means here, and how the vendor calls it. Thread-safe, no state. */
#ifndef GM_BACKENDS_SHARED_CODE_TABLE_H
#define GM_BACKENDS_SHARED_CODE_TABLE_H

#include <stddef.h>

#include "gm/status.h"

typedef struct gm__code {
  int number;
  gm_status status;
  const char *name;
} gm__code;

typedef struct gm__code_table {
  const char *speaker; /* who answers, inside a sentence: "the CUDA driver" */
  const gm__code *codes;
  size_t count;
} gm__code_table;

/* The row of the number; for one that is not there {0, GM_ERR_DRIVER, "unknown code"}. Never NULL. */
const gm__code *gm__code_find(const gm__code_table *table, int number);

/* Fill `err` with the number, its name and what it means to the caller. Returns the number's status; a number that
 * means success gives GM_ERR_DRIVER. */
gm_status gm__code_fail(const gm__code_table *table, gm_error *err, int code, const char *op);

/* gm__code_fail where the call says more than the number: which memory ran out, for example. Returns `status`. */
gm_status gm__code_fail_as(const gm__code_table *table, gm_error *err, gm_status status, int code, const char *op);

/* The driver answered success, and what it gave cannot be: `what` says it. Returns GM_ERR_DRIVER. */
gm_status gm__code_nonsense(const gm__code_table *table, gm_error *err, const char *op, const char *what);

#endif

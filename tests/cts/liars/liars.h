/* Backends that lie. Each is the lazy backend with an entry or two replaced, and a case of gm_cts must fail on it by
 * name. To add one, write a function in liars.c and a row in its table. Lies about copies and queues are in
 * lies_copy.c. */
#ifndef GM_TESTS_CTS_LIARS_LIARS_H
#define GM_TESTS_CTS_LIARS_LIARS_H

#include "gm/backend.h"

typedef struct liar {
  const char *name;
  const char *caught_by;  /* the case of gm_cts that fails */
  const char *lie;        /* one line for people */
  gm_backend_ops entries; /* those that are not NULL replace the honest ones; only functions count */
} liar;

/* The table, ended by a row without a name. */
extern const liar liars[];

/* The table of that liar, in static storage; of the honest backend for "". NULL: there is no such liar. */
const gm_backend_ops *liar_ops(const char *name);

#endif

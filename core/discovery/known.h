/* The one table in which the core names backends. */
#ifndef GM_CORE_DISCOVERY_KNOWN_H
#define GM_CORE_DISCOVERY_KNOWN_H

#include "core/base/dynlib.h"
#include "core/base/inner.h"
#include "gm/backend.h"

typedef struct gm__known_backend {
  const char *name;
  gm_api api;
  const gm_backend_ops *ops;    /* NULL: not in this build */
  const char *title;            /* for people: "CUDA" */
  const char *const *libraries; /* what its driver's library is called, ended by NULL; NULL: it has none */
  const char *advice;           /* what would make it available */
  bool software;                /* runs no vendor code: every discovery level sees it alike */
} gm__known_backend;

/* The backends in the order of reports. NULL: `index` is past the last one. */
const gm__known_backend *gm__known_backend_at(size_t index);

/* NULL: not a name of the table. "rocm" is hip. */
GM__INNER const gm__known_backend *gm__known_backend_find(const char *name);

#endif

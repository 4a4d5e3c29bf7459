/* Libraries that gm uses where they are there. Nothing of gm links them: each is opened when it is first asked for, and
 * stays until the process ends. Thread-safe. */
#ifndef GM_CORE_BASE_OPTIONAL_H
#define GM_CORE_BASE_OPTIONAL_H

#include "core/base/dynlib.h"
#include "core/base/inner.h"
#include "core/base/thread.h"

typedef struct gm__optional {
  gm__dynlib_spec spec; /* its path is that of `variable` */
  const char *variable; /* of the environment: names another file */
  const gm__symbol *symbols;
  size_t count;
  void *table;        /* gets the library's functions */
  void (*load)(void); /* calls gm__optional_load with this library */
  gm__once once;
  gm_error why;
} gm__optional;

/* The table. NULL: the library is missing or too old. NOT_SUPPORTED in `err` says why. */
GM__INNER const void *gm__optional_open(gm__optional *library, gm_error *err);

GM__INNER void gm__optional_load(gm__optional *library);

/* Makes a gm__optional: its name and file, the variable, what to install, its symbols (an array), its table, its
 * `load`. */
#define GM__OPTIONAL(name, file, env, hint, rows, calls, loads)                                                     \
  {                                                                                                                 \
    .spec = {.backend = (name), .names = (const char *const[]){(file), NULL}, .advice = (hint)}, .variable = (env), \
    .symbols = (rows), .count = sizeof(rows) / sizeof *(rows), .table = (calls), .load = (loads),                   \
    .once = GM__ONCE_INIT                                                                                           \
  }

#endif

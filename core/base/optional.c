#include "core/base/optional.h"

#include "core/base/env.h"
#include "core/base/error.h"

void gm__optional_load(gm__optional *library) {
  gm__dynlib *file;
  gm_error *why = &library->why;
  library->spec.path = gm__env(library->variable);
  why->status = gm__dynlib_open(NULL, &library->spec, &file, why);
  if (why->status) return;
  why->status = gm__dynlib_resolve(file, library->symbols, library->count, library->table, NULL, NULL, why);
  if (!why->status) gm__dynlib_keep(file);
  gm__dynlib_close(file);
}

const void *gm__optional_open(gm__optional *library, gm_error *err) {
  gm__once_run(&library->once, library->load);
  if (!library->why.status) return library->table;
  gm__fail(err, GM_ERR_NOT_SUPPORTED, library->why.op, "%s", library->why.message);
  return NULL;
}

#include "core/base/dynlib.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/error.h"
#include "core/base/library.h"

/* Invariants: only a bare or absolute name reaches the loader, so gm never searches the current directory. A gm__dynlib
 * holds one of the loader's references on its library. Close releases it, unless the library is kept. */

struct gm__dynlib {
  const gm_services *services;
  void *handle;
  size_t bytes; /* of this struct, with the path */
  atomic_bool kept;
  char backend[16];
  char path[];
};

/* The libraries to try. */
typedef struct dynlib_plan {
  const char *const *names;
  const char *single[2]; /* what `names` points to for an override */
  bool given;            /* an override */
} dynlib_plan;

static gm_status dynlib_make_plan(const gm__dynlib_spec *spec, dynlib_plan *plan, gm_error *err) {
  *plan = (dynlib_plan){.names = spec->names};
  if (!spec->path || !*spec->path) return GM_OK;
  if (!gm__library_name_ok(spec->path)) {
    return gm__bad_argument(err, "dlopen",
                            "the library for %s must be an absolute path or a bare library name, is `%.200s`",
                            spec->backend, spec->path);
  }
  plan->single[0] = spec->path;
  plan->names = plan->single;
  plan->given = true;
  return GM_OK;
}

/* Append to a string. A full string stays as it is. */
static GM_PRINTF(3, 4) void dynlib_append(char *text, size_t capacity, const char *format, ...) {
  size_t length = strlen(text);
  va_list args;
  va_start(args, format);
  vsnprintf(text + length, capacity - length, format, args);
  va_end(args);
}

static void *dynlib_load_any(const dynlib_plan *plan, const char **name, char *why, size_t capacity) {
  why[0] = '\0';
  for (size_t i = 0; plan->names[i]; i++) {
    char reason[256];
    void *handle = gm__library_open(plan->names[i], reason, sizeof reason);
    *name = plan->names[i];
    if (handle) return handle;
    if (reason[0] && !why[0]) snprintf(why, capacity, "%s", reason);
  }
  return NULL;
}

static gm_status dynlib_absent(const gm__dynlib_spec *spec, const dynlib_plan *plan, const char *why, gm_error *err) {
  char tried[200] = "";
  for (size_t i = 0; plan->names[i]; i++) dynlib_append(tried, sizeof tried, "%s%s", i ? ", " : "", plan->names[i]);
  if (plan->given) dynlib_append(tried, sizeof tried, " alone, as it was named");
  const char *first = plan->names[0] ? plan->names[0] : spec->backend;
  return gm__fail(err, GM_ERR_UNAVAILABLE, "dlopen", "%s %s%s (tried %s)%s%s", first,
                  why[0] ? "could not be loaded: " : "not found", why, tried, spec->advice ? "; " : "",
                  spec->advice ? spec->advice : "");
}

static gm__dynlib *dynlib_make(const gm_services *services, const char *backend, const char *name, void *handle) {
  const char *path = gm__library_path(handle);
  if (!*path) path = name;
  size_t bytes = sizeof(gm__dynlib) + strlen(path) + 1;
  gm__dynlib *lib = gm__alloc(services, bytes);
  if (!lib) return NULL;
  lib->services = services;
  lib->handle = handle;
  lib->bytes = bytes;
  atomic_init(&lib->kept, false);
  snprintf(lib->backend, sizeof lib->backend, "%s", backend);
  memcpy(lib->path, path, strlen(path) + 1);
  return lib;
}

gm_status gm__dynlib_open(const gm_services *services, const gm__dynlib_spec *spec, gm__dynlib **out, gm_error *err) {
  dynlib_plan plan;
  char why[256];
  const char *name = NULL;
  gm_status status = dynlib_make_plan(spec, &plan, err);
  if (status) return status;
  void *handle = dynlib_load_any(&plan, &name, why, sizeof why);
  if (!handle) return dynlib_absent(spec, &plan, why, err);
  gm__dynlib *lib = dynlib_make(services, spec->backend, name, handle);
  if (!lib) {
    gm__library_close(handle);
    return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, "dlopen", "no host memory for the record of %s", name);
  }
  *out = lib;
  return GM_OK;
}

void gm__dynlib_close(gm__dynlib *lib) {
  if (!lib) return;
  if (!atomic_load(&lib->kept)) gm__library_close(lib->handle);
  gm__release(lib->services, lib, lib->bytes);
}

void gm__dynlib_keep(gm__dynlib *lib) { atomic_store(&lib->kept, true); }

const char *gm__dynlib_path(const gm__dynlib *lib) { return lib->path; }

bool gm__dynlib_find(const gm__dynlib_spec *spec, char *out, size_t capacity) {
  dynlib_plan plan;
  if (dynlib_make_plan(spec, &plan, NULL)) return false;
  for (size_t i = 0; plan.names[i]; i++) {
    if (gm__library_find("", plan.names[i], out, capacity)) return true;
  }
  return false;
}

/* The table has function pointers of many types. Copy them as bytes: POSIX allows it and C does not forbid it. */
static void dynlib_store(void *table, size_t offset, void *entry) {
  _Static_assert(sizeof entry == sizeof(void (*)(void)), "a function pointer fits a void *");
  memcpy((unsigned char *)table + offset, &entry, sizeof entry);
}

gm_status gm__symbols_resolve(const gm__symbol_source *source, const gm__symbol *symbols, size_t count, void *table,
                              gm_symbol_hook hook, void *hook_user, gm_error *err) {
  const char *missing = NULL;
  for (size_t i = 0; i < count && !missing; i++) {
    const gm__symbol *symbol = &symbols[i];
    void *entry = source->look_up(source->user, symbol->name);
    if (hook) entry = hook(hook_user, source->backend, symbol->name, entry);
    if (!entry && symbol->required) missing = symbol->name;
    dynlib_store(table, symbol->offset, entry);
  }
  if (!missing) return GM_OK;
  for (size_t i = 0; i < count; i++) dynlib_store(table, symbols[i].offset, NULL);
  return gm__fail(err, GM_ERR_UNAVAILABLE, missing, "%s has no %s: the driver is too old or not what it claims to be",
                  source->from, missing);
}

gm_status gm__dynlib_resolve(const gm__dynlib *lib, const gm__symbol *symbols, size_t count, void *table,
                             gm_symbol_hook hook, void *hook_user, gm_error *err) {
  const gm__symbol_source source = {gm__library_symbol, lib->handle, lib->backend, lib->path};
  return gm__symbols_resolve(&source, symbols, count, table, hook, hook_user, err);
}

#include "core/discovery/module.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/error.h"
#include "core/base/library.h"

/* The table that a loaded library exports; NULL: none. */
static const gm_backend_ops *module_ops(void *library) {
  const gm_backend_ops *(*module)(void) = NULL;
  void *symbol = gm__library_symbol(library, "gm_backend_module");
  if (!symbol) return NULL;
  memcpy(&module, &symbol, sizeof module); /* POSIX allows the conversion, ISO C has no cast for it */
  return module();
}

bool gm__module_of(const gm_backend_ops *ops, char *path, size_t capacity) {
  Dl_info at;
  void *entry = NULL;
  char whole[PATH_MAX], why[2];
  memcpy(&entry, &ops->probe, sizeof entry);
  if (!dladdr(entry, &at) || !at.dli_fname || !realpath(at.dli_fname, whole) || strlen(whole) >= capacity) return false;
  void *library = gm__library_open(whole, why, sizeof why); /* it is loaded already: this counts one user more */
  const gm_backend_ops *exported = library ? module_ops(library) : NULL;
  const bool same = exported && exported->name && strcmp(exported->name, ops->name) == 0;
  if (library) gm__library_close(library);
  if (same) memcpy(path, whole, strlen(whole) + 1);
  return same;
}

gm_status gm__module_load(const char *path, const gm_backend_ops **out, gm_error *err) {
  char why[256] = "no absolute path";
  void *library = path[0] == '/' ? gm__library_open(path, why, sizeof why) : NULL;
  const gm_backend_ops *ops = library ? module_ops(library) : NULL;
  if (!ops) {
    const char *words = library ? "it exports no gm_backend_module" : why[0] ? why : "there is no such file";
    return gm__fail(err, GM_ERR_UNAVAILABLE, "gm_backend_module", "%s: %s", path, words);
  }
  *out = ops;
  return GM_OK;
}

/* Invariant: nothing here decides anything; the lists are read where they are used, and only spoken of here. */
#include "core/discovery/discovery.h"

#include <ctype.h>
#include <string.h>

#include "core/base/env.h"
#include "core/base/log.h"

extern char **environ;

enum { NAMES_LONGEST = 15 };

static void names_check(gm__registry *registry, const char *what, const char *text, size_t length) {
  char name[NAMES_LONGEST + 1] = "";
  if (length <= NAMES_LONGEST) memcpy(name, text, length);
  if (name[0] && gm__registry_find(registry, name)) return;
  gm__log(gm__context_services(registry->ctx), GM_LOG_WARN, "gm: %s has \"%.*s\", which is no backend", what,
          (int)(length < 64 ? length : 64), text);
}

/* "name<separator>…<end>name…"; a list of bare names has `end` for both. */
static void names_check_list(gm__registry *registry, const char *what, const char *list, const char *separator,
                             char end) {
  for (const char *item = list; item && *item; item = strchr(item, end), item = item ? item + 1 : NULL) {
    names_check(registry, what, item, strcspn(item, separator));
  }
}

/* Libraries that are no backend's: gm reads their variables, too. */
static bool names_is_tool(const char *variable) {
  static const char *const tools[] = {"GM_ROCTX_LIBRARY", "GM_CUFILE_LIBRARY", "GM_ZSTD_LIBRARY",
                                      "GM_ZLIB_LIBRARY",  "GM_XXHASH_LIBRARY", "GM_HWLOC_LIBRARY",
                                      "GM_LZ4_LIBRARY",   "GM_HIREDIS_LIBRARY"};
  for (size_t i = 0; i < sizeof tools / sizeof *tools; i++) {
    if (strcmp(variable, tools[i]) == 0) return true;
  }
  return false;
}

/* GM_<NAME>_LIBRARY and GM_<NAME>_OPTIONS. */
static void names_check_variable(gm__registry *registry, const char *entry) {
  static const char *const ends[] = {"_LIBRARY", "_OPTIONS"};
  size_t length = strcspn(entry, "=");
  for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
    size_t tail = strlen(ends[i]);
    char variable[64], name[64];
    if (length < 3 + tail || length >= sizeof variable || strncmp(entry + length - tail, ends[i], tail) != 0) continue;
    memcpy(variable, entry, length);
    variable[length] = '\0';
    size_t used = length - 3 - tail;
    for (size_t k = 0; k < used; k++) name[k] = (char)tolower((unsigned char)entry[3 + k]);
    if (!names_is_tool(variable)) names_check(registry, variable, name, used);
  }
}

void gm__unknown_names_log(gm__registry *registry) {
  const gm_context *ctx = registry->ctx;
  gm__mutex_lock(&registry->lock);
  bool first = !registry->names_checked;
  registry->names_checked = true;
  gm__mutex_unlock(&registry->lock);
  if (!first) return;
  names_check_list(registry, "`backends`", ctx->backends, ",", ',');
  names_check_list(registry, "`libraries`", ctx->libraries, "=,", ',');
  names_check_list(registry, "`backend_options`", ctx->backend_options, ":;", ';');
  if (ctx->ignore_environment) return;
  names_check_list(registry, "GM_BACKENDS", gm__env("GM_BACKENDS"), ",", ',');
  for (char **entry = environ; entry && *entry; entry++) {
    if (strncmp(*entry, "GM_", 3) == 0) names_check_variable(registry, *entry);
  }
}

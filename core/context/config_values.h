/* The values of a configuration, each with the sources that set it. REQUIRES: the configuration's lock. */
#ifndef GM_CORE_CONTEXT_CONFIG_VALUES_H
#define GM_CORE_CONTEXT_CONFIG_VALUES_H

#include <stdatomic.h>

#include "core/context/context.h"
#include "gm/config.h"

typedef struct gm__config_entry {
  char *texts[GM_CONFIG_ENVIRONMENT + 1]; /* by source; NULL: not set there. The highest counts */
  bool locked;
  bool said; /* that it has no effect */
} gm__config_entry;

struct gm__config {
  const gm_services *services;
  gm__mutex lock;
  gm__config_entry *entries; /* one for each key, in their order */
  _Atomic uint64_t changes;  /* counted from 1; read without the lock, too */
};

typedef struct gm__config_change {
  const char *key, *value;
  const char *where; /* for errors: "GM_X", "file:7", "" */
  gm_config_source source;
} gm__config_change;

/* Find the key, check the value and copy it. The caller keeps or releases *out_text. INVALID_ARGUMENT (no such key,
 * bad value, locked), OUT_OF_HOST_MEMORY. */
gm_status gm__config_parse(const gm__config *config, const gm__config_change *change, size_t *out_index,
                           char **out_text, gm_error *err);
void gm__config_release_text(const gm__config *config, char *text); /* NULL: nothing */

/* Store a parsed text as the value that `source` gives. The text now belongs to the configuration. */
void gm__config_store(gm__config *config, size_t index, gm_config_source source, char *text);

/* Parse and store one value. */
gm_status gm__config_put(gm__config *config, const gm__config_change *change, gm_error *err);

/* The source that has the last word on a value: the highest one that set it. */
gm_config_source gm__config_source(const gm__config_entry *entry);

/* The value that counts; the default where nobody set one. */
const char *gm__config_value(const gm__config *config, size_t index);

/* INVALID_ARGUMENT: there is no such key; names the nearest one. `where` may be "". */
gm_status gm__config_unknown(const char *op, const char *where, const char *key, gm_error *err);

#endif

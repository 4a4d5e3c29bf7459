/* Where values come from: presets, a file, the environment. All take the configuration's lock as held. */
#ifndef GM_CORE_CONTEXT_CONFIG_SET_H
#define GM_CORE_CONTEXT_CONFIG_SET_H

#include "core/context/config.h"

typedef struct gm__config_entry {
  char *texts[GM_CONFIG_ENVIRONMENT + 1]; /* by source; NULL: not set there. The highest counts */
  bool locked;
} gm__config_entry;

struct gm__config {
  const gm_services *services;
  gm__mutex lock;
  gm__config_entry *entries; /* one for each key, in their order */
};

typedef struct gm__config_change {
  const char *key, *value;
  const char *where; /* for errors: "GM_X", "file:7", "" */
  gm_config_source source;
} gm__config_change;

/* Find the key, check the value, and copy it: *out_text is the caller's to keep or to release. INVALID_ARGUMENT (no
 * such key, bad value, locked), OUT_OF_HOST_MEMORY. */
gm_status gm__config_parse(const gm__config *config, const gm__config_change *change, size_t *out_index,
                           char **out_text, gm_error *err);
void gm__config_release_text(const gm__config *config, char *text); /* NULL: nothing */

/* Take over a parsed text as the value that `source` gives. */
void gm__config_store(gm__config *config, size_t index, gm_config_source source, char *text);

/* Parse and store one value. */
gm_status gm__config_put(gm__config *config, const gm__config_change *change, gm_error *err);

gm_status gm__config_apply_preset(gm__config *config, const char *preset, gm_error *err);
gm_status gm__config_apply_file(gm__config *config, const char *path, gm_error *err); /* all or nothing */

/* The file GM_CONFIG, then the variable of each key. A GM_ variable that is none is logged. */
gm_status gm__config_apply_environment(gm__config *config, gm_error *err);

#endif

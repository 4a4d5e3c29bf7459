/* Configuration: defaults < code < file < environment, unless the program locks a key (F36).
 *
 * A key is set in text form, whatever its type: "0.9", "512M", "true", "best_fit", "4K,1M". The file is `key = value`
 * lines, # begins a comment; it is read only from GM_CONFIG (an absolute path) or gm_config_load, never found by
 * itself. The environment name of a key is GM_ + the key in capitals with dots as underscores; A value
 * from the environment wins: setting that key from code or a file then returns GM_OK, leaves the value, and logs a
 * line. Thread-safe. Pools and devices take their values when they are created. */
#ifndef GM_CONFIG_H
#define GM_CONFIG_H

#include "gm/context.h"

GM_BEGIN_DECLS

typedef enum gm_config_source {
  GM_CONFIG_DEFAULT = 0,
  GM_CONFIG_PRESET = 1,
  GM_CONFIG_CODE = 2,
  GM_CONFIG_FILE = 3,
  GM_CONFIG_ENVIRONMENT = 4
} gm_config_source;

/* One key of the configuration. gm alone makes one: later versions add members at its end. */
typedef struct gm_config_key {
  const char *name;        /* "cache.stream_local"; static storage, as all strings here */
  const char *environment; /* "GM_CACHE_STREAM_LOCAL" */
  const char *type;        /* "bool", "fraction", "bytes", "count", "word", "list", "text" */
  const char *range;       /* "0..1", "auto|bucket|best_fit" */
  const char *fallback;    /* the default in text form */
  const char *meaning;     /* one sentence */
  bool effective;          /* false: the feature comes with a later version */
} gm_config_key;

/* Every key, in documentation order: NULL when `index` is past the last. */
GM_API const gm_config_key *gm_config_key_at(size_t index);

/* Set a key from code. INVALID_ARGUMENT: no such key (the nearest is named), value not understood or outside the range,
 * locked. A key whose feature comes later is stored and answers GM_ERR_NOT_SUPPORTED, saying so. */
GM_API gm_status gm_config_set(gm_context *ctx, const char *key, const char *value, gm_error *err);

/* The value in text form into `text` (terminated), its origin into `out_source` (may be NULL). INVALID_ARGUMENT: no
 * such key, or `capacity` too small (a list may need 1024). */
GM_API gm_status gm_config_get(gm_context *ctx, const char *key, char *text, size_t capacity,
                               gm_config_source *out_source, gm_error *err);

/* After this nothing changes the key, the environment included: its value becomes that of the code. */
GM_API gm_status gm_config_lock(gm_context *ctx, const char *key, gm_error *err);

/* Read a file. All or nothing: on a failure (NOT_FOUND, IO, INVALID_ARGUMENT with line number and key) nothing changed.
 */
GM_API gm_status gm_config_load(gm_context *ctx, const char *path, gm_error *err);

/* "inference", "training", "constrained": sets the keys that the preset speaks of, below code. All or nothing:
 * INVALID_ARGUMENT (no such preset, one of its keys is locked), OUT_OF_HOST_MEMORY. */
GM_API gm_status gm_config_preset(gm_context *ctx, const char *preset, gm_error *err);

GM_END_DECLS

#endif

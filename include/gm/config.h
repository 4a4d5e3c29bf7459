/* Configuration. A later source wins: defaults, preset, code, file, environment. A program can lock a key.
 *
 * A key is set as text, whatever its type: "0.9", "512M", "true", "best_fit", "4K,1M". A configuration file has lines
 * of the form `key = value`; # begins a comment. gm reads a file only from GM_CONFIG (an absolute path) or
 * gm_config_load. It never searches for one.
 *
 * The environment name of a key is GM_ and the key in capitals, with underscores for dots. A value from the environment
 * wins. Setting that key from code or a file then returns GM_OK, leaves the value, and logs a line.
 *
 * Pools and devices take their values when they are created; gm_pool_configure (gm/cleanup.h) changes some of a running
 * pool. But memory_fraction, min_free_bytes, pressure.*,
 * cpu_fallback, gpu.memory.* and gpu.ast.* are read when they are used, so a change counts from then on. gm logs, once
 * for each, keys that somebody set although they change nothing, such as bounds of buckets where pools are of best fit.
 * Every function is thread-safe. */
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

/* One key of the configuration. gm alone makes one: later versions add members at its end. All strings are static. */
typedef struct gm_config_key {
  const char *name;        /* "cache.stream_local" */
  const char *environment; /* "GM_CACHE_STREAM_LOCAL" */
  const char *type;        /* "bool", "fraction", "bytes", "count", "word", "list", "text" */
  const char *range;       /* "0..1", "auto|bucket|best_fit" */
  const char *fallback;    /* the default value as text */
  const char *meaning;     /* one sentence */
  bool effective;          /* false: a later version brings the feature */
} gm_config_key;

/* Returns key number `index`, in the order of the documentation. NULL: `index` is past the last key. */
GM_API const gm_config_key *gm_config_key_at(size_t index);

/* Sets a key from code. A key of a later version's feature is stored, and the call answers NOT_SUPPORTED.
 * INVALID_ARGUMENT: there is no such key (the message names the nearest); the value cannot be read or is out of range;
 * the key is locked. */
GM_API gm_status gm_config_set(gm_context *ctx, const char *key, const char *value, gm_error *err);

/* Writes the value of a key as terminated text, and its source into `out_source` (may be NULL). INVALID_ARGUMENT: there
 * is no such key, or `capacity` is too small. A list may need 1024 bytes. */
GM_API gm_status gm_config_get(gm_context *ctx, const char *key, char *text, size_t capacity,
                               gm_config_source *out_source, gm_error *err);

/* Locks a key. Its values from the file and from the environment no longer count. It has its value from code, else from
 * the preset, else its default. No source changes it afterwards. Errors: INVALID_ARGUMENT, FORKED. */
GM_API gm_status gm_config_lock(gm_context *ctx, const char *key, gm_error *err);

/* Reads a configuration file. All or nothing: after a failure no key has changed. Errors: NOT_FOUND, IO.
 * INVALID_ARGUMENT: the message has the line number and the key. */
GM_API gm_status gm_config_load(gm_context *ctx, const char *path, gm_error *err);

/* Sets the keys of a preset: "inference", "training" or "constrained". Values set from code win over those of a preset.
 * All or nothing. Errors: OUT_OF_HOST_MEMORY. INVALID_ARGUMENT: there is no such preset, or one of its keys is locked.
 */
GM_API gm_status gm_config_preset(gm_context *ctx, const char *preset, gm_error *err);

GM_END_DECLS

#endif

/* The configuration of one context: values with their origin. It has a lock of its own. */
#ifndef GM_CORE_CONTEXT_CONFIG_H
#define GM_CORE_CONTEXT_CONFIG_H

#include "core/base/inner.h"
#include "core/context/context.h"
#include "gm/config.h"

/* Take the defaults, then `preset` (NULL: none), then the file GM_CONFIG and the environment, unless
 * `ignore_environment`. Fails as gm_context_create does. */
gm_status gm__config_create(const gm_services *services, const char *preset, bool ignore_environment, gm__config **out,
                            gm_error *err);
void gm__config_destroy(gm__config *config, const gm_services *services);

/* Whether somebody set the key: its value is not the built-in default. */
GM__INNER bool gm__config_is_set(gm_context *ctx, const char *key);

/* Whether the key's value holds. On an engine's own device (`adopted`) the built-in default does not. */
bool gm__config_holds(gm_context *ctx, const char *key, bool adopted);

/* Typed values of configuration keys. `key` must exist with that type; a test checks each call. */
GM__INNER bool gm__config_bool(gm_context *ctx, const char *key);
GM__INNER uint64_t gm__config_u64(gm_context *ctx, const char *key); /* bytes and counts; "auto" is UINT64_MAX */
double gm__config_fraction(gm_context *ctx, const char *key);
void gm__config_text(gm_context *ctx, const char *key, char *text, size_t capacity); /* words, lists, texts */

/* How often a value was set, and one more: never 0. It costs nothing, so whoever follows a key reads the key anew after
 * a change alone. Take this number first, then the key. */
GM__INNER uint64_t gm__config_changes(const gm_context *ctx);

/* Is there such a key, and does it take the value? INVALID_ARGUMENT names the key, or the nearest one. */
gm_status gm__config_check(const char *key, const char *value, const char *op, gm_error *err);

#endif

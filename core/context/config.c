#include "core/context/config.h"

#include <string.h>

#include "core/base/alloc.h"
#include "core/base/cancel.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/context/config_idle.h"
#include "core/context/config_keys.h"
#include "core/context/config_set.h"

gm_status gm__config_create(const gm_services *services, const char *preset, bool ignore_environment, gm__config **out,
                            gm_error *err) {
  gm__config *config = gm__alloc(services, sizeof *config);
  if (config) config->entries = gm__alloc_array(services, gm__config_key_count(), sizeof *config->entries);
  if (!config || !config->entries) {
    gm__release(services, config, sizeof *config);
    return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, "gm_context_create", "no host memory for the configuration");
  }
  config->services = services;
  config->changes = 1;
  gm__mutex_init(&config->lock, GM__RANK_CONFIG);
  gm_status status = preset ? gm__config_apply_preset(config, preset, err) : GM_OK;
  if (status == GM_OK && !ignore_environment) status = gm__config_apply_environment(config, err);
  if (status != GM_OK) {
    gm__config_destroy(config, services);
    return status;
  }
  gm__config_say_idle(config);
  *out = config;
  return GM_OK;
}

/* The services of the caller's copy, since the context that `config->services` points into may be going. */
void gm__config_destroy(gm__config *config, const gm_services *services) {
  config->services = services;
  for (size_t i = 0; i < gm__config_key_count(); i++) {
    for (size_t k = 0; k <= GM_CONFIG_ENVIRONMENT; k++) gm__config_release_text(config, config->entries[i].texts[k]);
  }
  gm__release(services, config->entries, gm__config_key_count() * sizeof *config->entries);
  gm__release(services, config, sizeof *config);
}

gm_status gm_config_set(gm_context *ctx, const char *key, const char *value, gm_error *err) {
  gm_status status = gm__context_check(ctx, "gm_config_set", err);
  if (status != GM_OK) return status;
  if (!key || !value) return gm__bad_argument(err, "gm_config_set", "`%s` is NULL", key ? "value" : "key");
  gm__config *config = ctx->config;
  gm__mutex_lock(&config->lock);
  status = gm__config_put(config, &(gm__config_change){key, value, "", GM_CONFIG_CODE}, err);
  if (status == GM_OK) gm__config_say_idle_key(config, gm__config_key_find(key));
  gm__mutex_unlock(&config->lock);
  if (status != GM_OK || gm_config_key_at(gm__config_key_find(key))->effective) return status;
  return gm__fail(err, GM_ERR_NOT_SUPPORTED, "gm_config_set",
                  "%s is stored, but its feature comes with a later version", key);
}

gm_status gm_config_get(gm_context *ctx, const char *key, char *text, size_t capacity, gm_config_source *out_source,
                        gm_error *err) {
  gm_status status = gm__context_check(ctx, "gm_config_get", err);
  if (status != GM_OK) return status;
  if (!key || !text) return gm__bad_argument(err, "gm_config_get", "`%s` is NULL", key ? "text" : "key");
  size_t index = gm__config_key_find(key);
  if (index == gm__config_key_count()) return gm__config_unknown("gm_config_get", "", key, err);
  gm__mutex_lock(&ctx->config->lock);
  const char *value = gm__config_value(ctx->config, index);
  size_t bytes = strlen(value) + 1;
  if (bytes <= capacity) memcpy(text, value, bytes);
  if (out_source) *out_source = gm__config_source(&ctx->config->entries[index]);
  gm__mutex_unlock(&ctx->config->lock);
  if (bytes <= capacity) return GM_OK;
  return gm__bad_argument(err, "gm_config_get", "`capacity` is %zu, %s needs %zu", capacity, key, bytes);
}

gm_status gm_config_lock(gm_context *ctx, const char *key, gm_error *err) {
  gm_status status = gm__context_check(ctx, "gm_config_lock", err);
  if (status != GM_OK) return status;
  if (!key) return gm__bad_argument(err, "gm_config_lock", "`key` is NULL");
  size_t index = gm__config_key_find(key);
  if (index == gm__config_key_count()) return gm__config_unknown("gm_config_lock", "", key, err);
  gm__mutex_lock(&ctx->config->lock);
  gm__config_store(ctx->config, index, GM_CONFIG_FILE, NULL);
  gm__config_store(ctx->config, index, GM_CONFIG_ENVIRONMENT, NULL);
  ctx->config->entries[index].locked = true;
  gm__mutex_unlock(&ctx->config->lock);
  return GM_OK;
}

gm_status gm_config_load(gm_context *ctx, const char *path, gm_error *err) {
  GM__UNCANCELLED();
  gm_status status = gm__context_check(ctx, "gm_config_load", err);
  if (status != GM_OK) return status;
  if (!path) return gm__bad_argument(err, "gm_config_load", "`path` is NULL");
  gm__mutex_lock(&ctx->config->lock);
  status = gm__config_apply_file(ctx->config, path, err);
  if (status == GM_OK) gm__config_say_idle(ctx->config);
  gm__mutex_unlock(&ctx->config->lock);
  return status;
}

gm_status gm_config_preset(gm_context *ctx, const char *preset, gm_error *err) {
  gm_status status = gm__context_check(ctx, "gm_config_preset", err);
  if (status != GM_OK) return status;
  if (!preset) return gm__bad_argument(err, "gm_config_preset", "`preset` is NULL");
  gm__mutex_lock(&ctx->config->lock);
  status = gm__config_apply_preset(ctx->config, preset, err);
  if (status == GM_OK) gm__config_say_idle(ctx->config);
  gm__mutex_unlock(&ctx->config->lock);
  return status;
}

gm_status gm__config_check(const char *key, const char *value, const char *op, gm_error *err) {
  const size_t index = gm__config_key_find(key);
  if (index == gm__config_key_count()) return gm__config_unknown(op, "", key, err);
  return gm__config_key_check(gm_config_key_at(index), "", value, err);
}

void gm__config_text(gm_context *ctx, const char *key, char *text, size_t capacity) {
  if (gm_config_get(ctx, key, text, capacity, NULL, NULL) != GM_OK) text[0] = '\0';
}

bool gm__config_is_set(gm_context *ctx, const char *key) {
  char text[64];
  gm_config_source source = GM_CONFIG_DEFAULT;
  return gm_config_get(ctx, key, text, sizeof text, &source, NULL) == GM_OK && source != GM_CONFIG_DEFAULT;
}

bool gm__config_holds(gm_context *ctx, const char *key, bool adopted) {
  return !adopted || gm__config_is_set(ctx, key);
}

bool gm__config_bool(gm_context *ctx, const char *key) {
  char text[16];
  bool value = false;
  gm__config_text(ctx, key, text, sizeof text);
  gm__text_bool(key, text, &value, NULL);
  return value;
}

uint64_t gm__config_u64(gm_context *ctx, const char *key) {
  char text[32];
  uint64_t value = UINT64_MAX; /* "auto" */
  gm__config_text(ctx, key, text, sizeof text);
  gm__text_u64(key, text, &value, NULL);
  return value;
}

uint64_t gm__config_changes(const gm_context *ctx) { return atomic_load(&ctx->config->changes); }

double gm__config_fraction(gm_context *ctx, const char *key) {
  char text[64];
  double value = 0;
  gm__config_text(ctx, key, text, sizeof text);
  gm__text_double(key, text, &value, NULL);
  return value;
}

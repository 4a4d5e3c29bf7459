/* Invariants: an entry's text has passed the key's check, or is NULL, which means the default. A value changes only
 * when what sets it stands at least as high as what has set it. A locked value never changes. */
#include "core/context/config_values.h"

#include <string.h>

#include "core/base/alloc.h"
#include "core/base/error.h"
#include "core/base/log.h"
#include "core/context/config_keys.h"

void gm__config_release_text(const gm__config *config, char *text) {
  if (text) gm__release(config->services, text, strlen(text) + 1);
}

gm_status gm__config_unknown(const char *op, const char *where, const char *key, gm_error *err) {
  return gm__bad_argument(err, op, "%s%sno configuration key \"%s\"; did you mean \"%s\"?", where, where[0] ? ": " : "",
                          key, gm__config_key_nearest(key));
}

gm_status gm__config_parse(const gm__config *config, const gm__config_change *change, size_t *out_index,
                           char **out_text, gm_error *err) {
  size_t index = gm__config_key_find(change->key);
  if (index == gm__config_key_count()) return gm__config_unknown("configuration", change->where, change->key, err);
  const gm_config_key *key = gm_config_key_at(index);
  gm_status status = gm__config_key_check(key, change->where, change->value, err);
  if (status != GM_OK) return status;
  if (config->entries[index].locked) {
    return gm__bad_argument(err, "configuration", "%s is locked by the program", key->name);
  }
  size_t bytes = strlen(change->value) + 1;
  char *text = gm__alloc(config->services, bytes);
  if (!text) return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, "configuration", "no host memory for %s", key->name);
  memcpy(text, change->value, bytes);
  *out_text = text;
  *out_index = index;
  return GM_OK;
}

gm_config_source gm__config_source(const gm__config_entry *entry) {
  int source = GM_CONFIG_ENVIRONMENT;
  while (source > GM_CONFIG_DEFAULT && !entry->texts[source]) source--;
  return (gm_config_source)source;
}

void gm__config_store(gm__config *config, size_t index, gm_config_source source, char *text) {
  gm__config_entry *entry = &config->entries[index];
  gm__config_release_text(config, entry->texts[source]);
  entry->texts[source] = text;
  atomic_fetch_add(&config->changes, 1);
  gm_config_source last = gm__config_source(entry);
  if (last <= source) return;
  gm__log(config->services, GM_LOG_INFO, "gm: %s stays \"%s\", as the operator set it", gm_config_key_at(index)->name,
          entry->texts[last]);
}

gm_status gm__config_put(gm__config *config, const gm__config_change *change, gm_error *err) {
  size_t index = 0;
  char *text = NULL;
  gm_status status = gm__config_parse(config, change, &index, &text, err);
  if (status == GM_OK) gm__config_store(config, index, change->source, text);
  return status;
}

const char *gm__config_value(const gm__config *config, size_t index) {
  const gm__config_entry *entry = &config->entries[index];
  const char *text = entry->texts[gm__config_source(entry)];
  return text ? text : gm_config_key_at(index)->fallback;
}

#include "core/context/config_idle.h"

#include <string.h>

#include "core/base/log.h"
#include "core/base/text.h"
#include "core/context/config_keys.h"

/* Whoever sets a key without effect believes that it has one. So each source says it: the program, a file, the
 * environment, and more quietly a preset, of which nobody chose the key by its name. A pool may have another strategy
 * than the configuration; then the line tells what the key is for. */

typedef struct config_idle {
  const char *key;
  const char *needs, *value; /* the key has an effect where `needs` has this value; NULL: nowhere */
  const char *says;
  bool spares_code; /* a program may set `needs` in its next call, and hears nothing */
} config_idle;

#define IDLE_BOUNDS "bounds pools of buckets only; cache.max_bytes and cache.max_age bound a pool of best_fit"

static const config_idle config_idles[] = {
    {"max_pooled_per_bucket", "allocation_strategy", "bucket", IDLE_BOUNDS, false},
    {"cache.global", "allocation_strategy", "bucket", IDLE_BOUNDS, false},
    {"size_class_bits", "allocation_strategy", "bucket", "sets the sizes of buckets; best_fit rounds to the alignment",
     false},
    {"pre_allocate_sizes", "pre_allocate", "true", "has an effect only while pre_allocate is true", true},
    {"stats_enabled", NULL, NULL, "has no effect: statistics are always on", false},
};

static const char *const config_idle_sources[] = {
    [GM_CONFIG_PRESET] = "a preset",
    [GM_CONFIG_CODE] = "the program",
    [GM_CONFIG_FILE] = "a file",
    [GM_CONFIG_ENVIRONMENT] = "the environment",
};

/* A bool has several words. */
static bool config_idle_is(const gm__config *config, size_t index, const char *value) {
  const char *has = gm__config_value(config, index);
  bool one = false, other = false;
  if (gm__text_bool("", has, &one, NULL) || gm__text_bool("", value, &other, NULL)) return strcmp(has, value) == 0;
  return one == other;
}

static void config_idle_say(gm__config *config, const config_idle *idle, size_t index) {
  gm__config_entry *entry = &config->entries[index];
  const gm_config_source source = gm__config_source(entry);
  if (entry->said || source == GM_CONFIG_DEFAULT || (source == GM_CONFIG_CODE && idle->spares_code)) return;
  if (config_idle_is(config, index, gm_config_key_at(index)->fallback)) return; /* that holds anyway */
  if (idle->needs && config_idle_is(config, gm__config_key_find(idle->needs), idle->value)) return;
  entry->said = true;
  gm__log(config->services, source == GM_CONFIG_PRESET ? GM_LOG_INFO : GM_LOG_WARN, "gm: %s (set by %s) %s", idle->key,
          config_idle_sources[source], idle->says);
}

void gm__config_say_idle_key(gm__config *config, size_t index) {
  for (size_t i = 0; i < sizeof config_idles / sizeof *config_idles; i++) {
    if (gm__config_key_find(config_idles[i].key) == index) config_idle_say(config, &config_idles[i], index);
  }
}

void gm__config_say_idle(gm__config *config) {
  for (size_t i = 0; i < sizeof config_idles / sizeof *config_idles; i++) {
    config_idle_say(config, &config_idles[i], gm__config_key_find(config_idles[i].key));
  }
}

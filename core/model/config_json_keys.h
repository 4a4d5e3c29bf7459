/* Keys of a config.json that state a dimension. */
#ifndef GM_CORE_MODEL_CONFIG_JSON_KEYS_H
#define GM_CORE_MODEL_CONFIG_JSON_KEYS_H

#include "core/model/dimensions.h"

typedef struct gm__json_key {
  const char *key;
  gm__dimension field;
} gm__json_key;

enum { GM__JSON_KEYS = 114 };

/* Names of the same field in order of preference. */
extern const gm__json_key gm__json_keys[GM__JSON_KEYS];

#endif

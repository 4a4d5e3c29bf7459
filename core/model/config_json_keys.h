/* Keys of a config.json that state a dimension. */
#ifndef GM_CORE_MODEL_CONFIG_JSON_KEYS_H
#define GM_CORE_MODEL_CONFIG_JSON_KEYS_H

#include "core/model/dimensions.h"
#include "core/model/json_scan.h"

typedef struct gm__json_key {
  const char *key;
  gm__dimension field;
} gm__json_key;

enum { GM__JSON_KEYS = 118 };

/* Names of the same field in order of preference. */
extern const gm__json_key gm__json_keys[GM__JSON_KEYS];

/* The rows of the table in the order of their names. */
typedef struct gm__json_names {
  uint8_t row[GM__JSON_KEYS];
} gm__json_names;

void gm__json_names_init(gm__json_names *out);

/* The row of a name; GM__JSON_KEYS: it has none. Takes as many looks as the table has bits. */
uint32_t gm__json_names_find(const gm__json_names *names, const gm__json_text *key);

#endif

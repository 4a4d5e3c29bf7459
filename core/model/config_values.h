/* The values that a config.json states, by key: those of its outermost object, and the objects that lie directly in it.
 */
#ifndef GM_CORE_MODEL_CONFIG_VALUES_H
#define GM_CORE_MODEL_CONFIG_VALUES_H

#include <stdbool.h>
#include <stdint.h>

enum { GM__CONFIG_VALUES_MAX = 768, GM__CONFIG_ELEMENTS_MAX = 16384 };

typedef enum gm__config_form {
  GM__CONFIG_NOTHING, /* null, or a form that says nothing: an object, a list of lists */
  GM__CONFIG_COUNT,   /* a number from 0 on without a fraction (4.0 has none); false is 0, true is 1 */
  GM__CONFIG_NUMBER,  /* any other number */
  GM__CONFIG_TEXT,
  GM__CONFIG_LIST
} gm__config_form;

typedef struct gm__config_element {
  gm__config_form form;
  uint64_t count;
  const char *text;
} gm__config_element;

typedef struct gm__config_value {
  const char *object, *key; /* object: "" for the outermost one */
  gm__config_element is;
  uint32_t first, length; /* a list: its elements */
} gm__config_value;

/* Plain data; texts are those of the scanned text. */
typedef struct gm__config_values {
  uint32_t count, element_count;
  bool overflowed; /* there was more than there is room for */
  gm__config_value value[GM__CONFIG_VALUES_MAX];
  gm__config_element element[GM__CONFIG_ELEMENTS_MAX];
} gm__config_values;

/* Read `length` bytes at `text`, which is written to and must live as long as `out`. False: it is no JSON object. */
bool gm__config_values_read(char *text, uint64_t length, gm__config_values *out);

/* The value behind a key, "key" or "object.key", of `length` bytes. A key without an object is looked for in the object
 * of the language model first, then in the outermost one. NULL: it is not stated, or null. */
const gm__config_value *gm__config_values_find(const gm__config_values *values, const char *name, uint64_t length);

#endif

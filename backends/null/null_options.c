#include "backends/null/null_options.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "core/base/error.h"
#include "core/base/text.h"

typedef struct options_key {
  const char *name;
  size_t offset;
  uint64_t low, high;
  bool power_of_two;
} options_key;

#define OPTIONS_KEY(name) #name, offsetof(gm__null_options, name)

static const options_key options_keys[] = {
    {OPTIONS_KEY(capacity), 1, UINT64_C(1) << 50, false},
    {OPTIONS_KEY(devices), 1, GM__NULL_DEVICES_MAX, false},
    {OPTIONS_KEY(max_alloc), 0, UINT64_MAX, false},
    {OPTIONS_KEY(alignment), 1, UINT64_C(1) << 30, true},
    {OPTIONS_KEY(align_granule), 64, UINT64_C(1) << 40, true},
    {OPTIONS_KEY(latency), 0, UINT64_C(1) << 40, false},
};

static gm_status options_set(const char *name, const char *value, gm__null_options *options, gm_error *err) {
  for (size_t i = 0; i < sizeof options_keys / sizeof options_keys[0]; i++) {
    const options_key *key = &options_keys[i];
    if (strcmp(key->name, name) != 0) continue;
    uint64_t number;
    const gm_status status = gm__text_u64(name, value, &number, err);
    if (status) return status;
    if (number < key->low || number > key->high || (key->power_of_two && (number & (number - 1)))) {
      return gm__bad_argument(err, "null options", "`%s` must be %s%llu to %llu, is %llu", name,
                              key->power_of_two ? "a power of two, " : "", (unsigned long long)key->low,
                              (unsigned long long)key->high, (unsigned long long)number);
    }
    memcpy((char *)options + key->offset, &number, sizeof number);
    return GM_OK;
  }
  return gm__bad_argument(err, "null options", "`%s` is no option of the null backend", name);
}

static gm_status options_item(const char *text, size_t length, gm__null_options *options, gm_error *err) {
  char item[64];
  if (length >= sizeof item) return gm__bad_argument(err, "null options", "`%.40s…` is too long", text);
  memcpy(item, text, length);
  item[length] = 0;
  char *equals = strchr(item, '=');
  if (equals) *equals = 0;
  return options_set(item, equals ? equals + 1 : "", options, err);
}

gm_status gm__null_options_parse(const char *text, gm__null_options *out, gm_error *err) {
  gm__null_options options = {
      .capacity = UINT64_C(80) << 30, .devices = 1, .alignment = 256, .align_granule = UINT64_C(2) << 20};
  while (*text) {
    const size_t length = strcspn(text, ",");
    const gm_status status = options_item(text, length, &options, err);
    if (status) return status;
    text += length + (text[length] == ',');
  }
  if (options.align_granule < options.alignment) {
    return gm__bad_argument(err, "null options", "`align_granule` must not be smaller than `alignment`");
  }
  *out = options;
  return GM_OK;
}

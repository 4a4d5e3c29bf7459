/* Invariants: `count` and `element_count` never pass their tables. Values that are nested deeper are read over. */
#include "core/model/config_values.h"

#include <string.h>

#include "core/model/json_scan.h"

typedef struct values_reader {
  gm__json_scan scan;
  gm__config_values *out;
} values_reader;

static int values_first(values_reader *reader) {
  const uint64_t at = gm__json_next_at(&reader->scan);
  return at < reader->scan.length ? (unsigned char)reader->scan.text[at] : -1;
}

/* Digits, and behind them at most a fraction of zeros. */
static void values_number(const char *text, uint64_t length, gm__config_element *out) {
  uint64_t at = 0, count = 0;
  out->form = GM__CONFIG_NUMBER;
  for (; at < length && text[at] >= '0' && text[at] <= '9'; at++) {
    const uint64_t digit = (uint64_t)(text[at] - '0');
    if (count > (UINT64_MAX - digit) / 10) return;
    count = count * 10 + digit;
  }
  if (at == 0) return;
  if (at < length && text[at] == '.') {
    for (at++; at < length && text[at] == '0'; at++) continue;
  }
  if (at < length) return;
  *out = (gm__config_element){.form = GM__CONFIG_COUNT, .count = count};
}

static bool values_scalar(values_reader *reader, gm__config_element *out) {
  gm__json_scan *scan = &reader->scan;
  const int first = values_first(reader);
  const uint64_t at = scan->at;
  gm__json_text text;
  *out = (gm__config_element){.form = GM__CONFIG_NOTHING};
  if (first == '"') {
    if (!gm__json_string(scan, &text)) return false;
    *out = (gm__config_element){.form = GM__CONFIG_TEXT, .text = text.text};
    return true;
  }
  if (!gm__json_skip(scan)) return false;
  if (first == 't' || first == 'f') *out = (gm__config_element){.form = GM__CONFIG_COUNT, .count = first == 't'};
  const bool is_number = first == '-' || first == 'N' || first == 'I' || (first >= '0' && first <= '9');
  if (is_number) values_number(scan->text + at, scan->at - at, out);
  return true;
}

static bool values_list(values_reader *reader, gm__config_value *value) {
  gm__config_values *out = reader->out;
  gm__config_element element;
  value->is.form = GM__CONFIG_LIST;
  value->first = out->element_count;
  gm__json_array_begin(&reader->scan);
  while (gm__json_array_next(&reader->scan)) {
    if (!values_scalar(reader, &element)) return false;
    if (out->element_count == GM__CONFIG_ELEMENTS_MAX) {
      out->overflowed = true;
      continue;
    }
    out->element[out->element_count++] = element;
  }
  value->length = out->element_count - value->first;
  return !reader->scan.problem;
}

static bool values_add(values_reader *reader, const char *object, const char *key) {
  gm__config_values *out = reader->out;
  gm__config_value value = {.object = object, .key = key};
  const bool is_list = values_first(reader) == '[';
  if (!(is_list ? values_list(reader, &value) : values_scalar(reader, &value.is))) return false;
  if (value.is.form == GM__CONFIG_NOTHING) return true;
  if (out->count == GM__CONFIG_VALUES_MAX) {
    out->overflowed = true;
  } else {
    out->value[out->count++] = value;
  }
  return true;
}

static bool values_object(values_reader *reader, const char *object) {
  gm__json_text key;
  gm__json_object_begin(&reader->scan);
  while (gm__json_object_next(&reader->scan, &key)) {
    const bool enters = object[0] == '\0' && values_first(reader) == '{';
    if (!(enters ? values_object(reader, key.text) : values_add(reader, object, key.text))) return false;
  }
  return !reader->scan.problem;
}

bool gm__config_values_read(char *text, uint64_t length, gm__config_values *out) {
  values_reader reader = {.out = out};
  gm__json_scan_init(&reader.scan, text, length);
  reader.scan.python_numbers = true;
  out->count = out->element_count = 0;
  out->overflowed = false;
  return values_first(&reader) == '{' && values_object(&reader, "") && gm__json_end(&reader.scan);
}

static const gm__config_value *values_find_in(const gm__config_values *values, const char *object,
                                              uint64_t object_length, const char *key, uint64_t length) {
  for (uint32_t i = 0; i < values->count; i++) {
    const gm__config_value *value = &values->value[i];
    if (strncmp(value->key, key, length) != 0 || value->key[length] != '\0') continue;
    if (strncmp(value->object, object, object_length) == 0 && value->object[object_length] == '\0') return value;
  }
  return NULL;
}

const gm__config_value *gm__config_values_find(const gm__config_values *values, const char *name, uint64_t length) {
  static const char *const inner[] = {"text_config", "llm_config", "language_config"};
  const char *dot = memchr(name, '.', length);
  if (dot) {
    const uint64_t object = (uint64_t)(dot - name);
    return values_find_in(values, name, object, dot + 1, length - object - 1);
  }
  for (size_t i = 0; i < sizeof inner / sizeof *inner; i++) {
    const gm__config_value *found = values_find_in(values, inner[i], strlen(inner[i]), name, length);
    if (found) return found;
  }
  return values_find_in(values, "", 0, name, length);
}

#include "core/context/config_keys.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/error.h"
#include "core/base/text.h"

enum { CONFIG_NAME_MAX = 63, CONFIG_LIST_MAX = 256 };

static const gm_config_key config_keys[] = {
#define X(name, environment, type, range, fallback, effective, meaning) \
  {name, environment, type, range, fallback, meaning, effective},
    GM__CONFIG_KEYS(X)
#undef X
};

size_t gm__config_key_count(void) { return sizeof config_keys / sizeof *config_keys; }

const gm_config_key *gm_config_key_at(size_t index) {
  return index < gm__config_key_count() ? &config_keys[index] : NULL;
}

size_t gm__config_key_find(const char *name) {
  if (strcmp(name, "gpu.memory.max_fraction") == 0) name = "memory_fraction"; /* an older name */
  size_t i = 0;
  while (i < gm__config_key_count() && strcmp(config_keys[i].name, name) != 0) i++;
  return i;
}

static size_t config_min(size_t a, size_t b) { return a < b ? a : b; }

/* Levenshtein distances of `a` to the beginnings of `b`: row[j] to its first j letters. Returns the length of `b`; both
 * names are cut to CONFIG_NAME_MAX. */
static size_t config_distances(const char *a, const char *b, size_t row[CONFIG_NAME_MAX + 1]) {
  size_t width = config_min(strlen(b), CONFIG_NAME_MAX);
  for (size_t j = 0; j <= width; j++) row[j] = j;
  for (size_t i = 0; i < CONFIG_NAME_MAX && a[i]; i++) {
    size_t corner = row[0];
    row[0] = i + 1;
    for (size_t j = 0; j < width; j++) {
      size_t above = row[j + 1];
      row[j + 1] = config_min(config_min(above, row[j]) + 1, corner + (a[i] != b[j]));
      corner = above;
    }
  }
  return width;
}

static size_t config_distance(const char *a, const char *b) {
  size_t row[CONFIG_NAME_MAX + 1];
  const size_t end = config_distances(a, b, row);
  return row[end];
}

/* To the nearest beginning of `b`: the end of a long name may be left out. */
static size_t config_distance_to_start(const char *a, const char *b) {
  size_t row[CONFIG_NAME_MAX + 1], least = SIZE_MAX;
  const size_t end = config_distances(a, b, row);
  for (size_t j = end; j > 0; j--) least = config_min(least, row[j]);
  return least;
}

const char *gm__config_key_nearest(const char *name) {
  size_t best = 0, best_distance = SIZE_MAX;
  for (size_t i = 0; i < gm__config_key_count(); i++) {
    size_t distance = config_distance(name, config_keys[i].name);
    if (distance < best_distance) best = i, best_distance = distance;
  }
  return config_keys[best].name;
}

const char *gm__config_variable_near(const char *name, size_t length) {
  char typed[CONFIG_NAME_MAX];
  const char *best = NULL;
  size_t least = length / 4 + 1; /* a quarter of the letters may be wrong */
  if (length >= sizeof typed) return NULL;
  memcpy(typed, name, length);
  typed[length] = '\0';
  for (size_t i = 0; i < gm__config_key_count(); i++) {
    const size_t distance = config_distance_to_start(typed, config_keys[i].environment);
    if (distance < least) best = config_keys[i].environment, least = distance;
  }
  return best;
}

static gm_status config_refuse(const gm_config_key *key, const char *where, const char *value, gm_error *err) {
  return gm__bad_argument(err, "configuration", "%s%s%s = \"%s\" is not a %s%s%s", where, where[0] ? ": " : "",
                          key->name, value, key->type, key->range[0] ? " of " : "", key->range);
}

static bool config_in_words(const char *words, const char *value) {
  size_t length = strlen(value);
  for (const char *word = words; word; word = strchr(word, '|'), word = word ? word + 1 : NULL) {
    if (length > 0 && strncmp(word, value, length) == 0 && (word[length] == '|' || word[length] == '\0')) return true;
  }
  return false;
}

/* "auto|a..b": the text after "auto|", or the range itself. */
static const char *config_bounds(const char *range) {
  const char *bar = strchr(range, '|');
  return bar ? bar + 1 : range;
}

/* Where there is "auto", the largest number stands for it inside (gm__config_u64), and is none that can be set. */
static bool config_number_ok(const gm_config_key *key, const char *value) {
  const bool automatic = strncmp(key->range, "auto|", 5) == 0;
  if (automatic && strcmp(value, "auto") == 0) return true;
  uint64_t number = 0;
  if (gm__text_u64(key->name, value, &number, NULL) != GM_OK || (automatic && number == UINT64_MAX)) return false;
  char *dots = NULL;
  uint64_t low = strtoull(config_bounds(key->range), &dots, 10);
  return number >= low && (dots[2] == '\0' || number <= strtoull(dots + 2, NULL, 10));
}

/* The bounds in the list are whole numbers: a point would make it unclear where ".." begins. */
static bool config_fraction_ok(const gm_config_key *key, const char *value) {
  double number = 0;
  if (gm__text_double(key->name, value, &number, NULL) != GM_OK) return false;
  char *dots = NULL;
  double low = (double)strtoull(key->range, &dots, 10);
  return number >= low && number <= (double)strtoull(dots + 2, NULL, 10);
}

static bool config_list_ok(const char *value) {
  uint64_t items[CONFIG_LIST_MAX];
  size_t count = 0;
  return gm__text_u64_list("", value, items, CONFIG_LIST_MAX, &count, NULL) == GM_OK;
}

/* "size:count,size:count": checked as a list of numbers with the colons read as commas, two for each pair. */
static bool config_pairs_ok(const char *value) {
  char flat[1024];
  size_t length = strlen(value), commas = 0, colons = 0;
  if (length >= sizeof flat) return false;
  for (size_t i = 0; i <= length; i++) {
    flat[i] = value[i] == ':' ? ',' : value[i];
    colons += value[i] == ':';
    commas += value[i] == ',';
    if (colons > commas + 1 || commas > colons) return false;
  }
  return length == 0 || (colons == commas + 1 && config_list_ok(flat));
}

gm_status gm__config_key_check(const gm_config_key *key, const char *where, const char *value, gm_error *err) {
  bool flag = false, ok = false;
  switch (key->type[0]) {
    case 'b':
      ok = key->type[1] == 'o' ? gm__text_bool(key->name, value, &flag, NULL) == GM_OK : config_number_ok(key, value);
      break;
    case 'c': ok = config_number_ok(key, value); break;
    case 'f': ok = config_fraction_ok(key, value); break;
    case 'w': ok = config_in_words(key->range, value); break;
    case 'l': ok = config_list_ok(value); break;
    case 'p': ok = config_pairs_ok(value); break;
    default: ok = strlen(value) < 256; break;
  }
  return ok ? GM_OK : config_refuse(key, where, value, err);
}

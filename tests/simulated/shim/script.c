#include "simulated/shim/script.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void shim_violation(const char *driver, const char *format, ...) {
  va_list list;
  va_start(list, format);
  fprintf(stderr, "simulated %s: not allowed: ", driver);
  vfprintf(stderr, format, list);
  fputc('\n', stderr);
  va_end(list);
  abort();
}

void shim_script_read(shim_script *script, const char *variable) {
  const char *text = getenv(variable);
  const size_t length = text ? strlen(text) : 0;
  if (length >= sizeof script->text) shim_violation(variable, "%zu characters are too many", length);
  memset(script->text, 0, sizeof script->text);
  if (length) memcpy(script->text, text, length);
}

/* The next item of `key` after `*at`: where its value begins (at the comma or the end for a plain word). */
static const char *script_next(const char **at, const char *key) {
  const size_t length = strlen(key);
  while (**at) {
    const char *item = *at, *end = item + strcspn(item, ",");
    *at = end + (*end == ',');
    if (strncmp(item, key, length) != 0) continue;
    if (item + length == end) return end;
    if (item[length] == '=') return item + length + 1;
  }
  return NULL;
}

bool shim_script_has(const shim_script *script, const char *word) {
  const char *at = script->text;
  return script_next(&at, word) != NULL;
}

bool shim_script_is(const shim_script *script, const char *key, const char *value) {
  const size_t length = strlen(value);
  const char *at = script->text;
  for (const char *found; (found = script_next(&at, key)) != NULL;) {
    if (strcspn(found, ",") == length && strncmp(found, value, length) == 0) return true;
  }
  return false;
}

bool shim_script_text(const shim_script *script, const char *key, char *out, size_t capacity) {
  const char *at = script->text, *found = script_next(&at, key);
  if (!found) return false;
  snprintf(out, capacity, "%.*s", (int)strcspn(found, ","), found);
  return true;
}

uint64_t shim_script_number(const shim_script *script, const char *key, uint64_t otherwise) {
  const char *at = script->text, *found = script_next(&at, key);
  if (!found || *found == ',' || *found == '\0') return otherwise;
  char *end;
  const uint64_t number = *found == '-' ? (uint64_t)strtoll(found, &end, 0) : strtoull(found, &end, 0);
  static const char units[] = "KMG";
  const char *unit = *end ? strchr(units, *end) : NULL;
  return unit ? number << (10 * (unit - units + 1)) : number;
}

bool shim_script_fails(const shim_script *script, const char *name, uint64_t nth, int *out_code) {
  const size_t length = strlen(name);
  const char *at = script->text;
  for (const char *found; (found = script_next(&at, "fail")) != NULL;) {
    if (strncmp(found, name, length) != 0 || found[length] != ':') continue;
    found += length + 1;
    char *end;
    const bool every = *found == '*';
    const uint64_t wanted = every ? nth : strtoull(found, &end, 10);
    if (wanted != nth) continue;
    found += every ? 1 : (size_t)(end - found);
    if (*found == ':') *out_code = (int)strtol(found + 1, NULL, 10);
    return true;
  }
  return false;
}

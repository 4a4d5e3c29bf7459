#include "core/base/decimal.h"

bool gm__decimal(const char *text, const char **end, uint64_t *out) {
  uint64_t value = 0;
  const char *at = text;
  for (; *at >= '0' && *at <= '9'; at++) {
    uint64_t digit = (uint64_t)(*at - '0');
    if (value > (UINT64_MAX - digit) / 10) return false;
    value = value * 10 + digit;
  }
  if (at == text) return false;
  if (end) *end = at;
  *out = value;
  return true;
}

const char *gm__skip_blanks(const char *text) {
  while (*text == ' ' || *text == '\t') text++;
  return text;
}

#include "core/base/text.h"

#include <string.h>

#include "core/base/error.h"

/* Each text_scan_* returns NULL and fills *out, or returns the reason: a static phrase that ends the error message. It
 * takes begin and length, so that a list item needs no copy. The C library's functions do not serve: they skip white
 * space, take signs, and read the point of the current locale. */

static char text_lower(char c) { return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c; }

static bool text_is_digit(char c) { return c >= '0' && c <= '9'; }

bool gm__text_same(const char *a, const char *b) {
  while (*a && text_lower(*a) == text_lower(*b)) a++, b++;
  return *a == *b;
}

static gm_status text_refuse(const char *what, const char *text, const char *why, gm_error *err) {
  return gm__fail(err, GM_ERR_INVALID_ARGUMENT, "parse", "%s: `%.100s` %s", what, text, why);
}

/* The shift of a unit: K, M, G, T, each also followed by B, i or iB; B alone; and no unit. -1: an unknown unit. */
static int text_unit_shift(const char *text, size_t length) {
  static const char letters[] = "kmgt";
  const char *letter = length ? strchr(letters, text_lower(*text)) : NULL;
  size_t at = letter != NULL;
  if (letter && at < length && text_lower(text[at]) == 'i') at++;
  if (at < length && text_lower(text[at]) == 'b') at++;
  if (at < length) return -1;
  return letter ? 10 * (int)(letter - letters + 1) : 0;
}

/* The digits after a point. Those after the seventh are dropped, so that the multiple of a unit fits. */
static size_t text_scan_fraction(const char *text, size_t length, uint64_t *out, uint64_t *scale) {
  size_t at = 0;
  for (; at < length && text_is_digit(text[at]); at++) {
    if (at >= 7) continue;
    *out = *out * 10 + (uint64_t)(text[at] - '0');
    *scale *= 10;
  }
  return at;
}

static const char *text_scan_u64(const char *text, size_t length, uint64_t *out) {
  static const char too_large[] = "is larger than 2^64-1";
  uint64_t value = 0, fraction = 0, scale = 1;
  size_t at = 0, behind = 0;
  for (; at < length && text_is_digit(text[at]); at++) {
    uint64_t digit = (uint64_t)(text[at] - '0');
    if (value > (UINT64_MAX - digit) / 10) return too_large;
    value = value * 10 + digit;
  }
  if (at == 0) return "does not begin with a digit";
  if (at < length && text[at] == '.') {
    behind = text_scan_fraction(text + at + 1, length - at - 1, &fraction, &scale);
    if (behind == 0) return "has no digit behind its point";
    at += behind + 1;
  }
  int shift = text_unit_shift(text + at, length - at);
  if (shift < 0) return "is not digits with at most one of K, M, G, T, as in 8G, 8GB, 8GiB or 2.5G";
  if (behind && shift == 0) return "is not whole";
  if (value > UINT64_MAX >> shift) return too_large;
  *out = (value << shift) + (fraction << shift) / scale;
  return NULL;
}

gm_status gm__text_u64(const char *what, const char *text, uint64_t *out, gm_error *err) {
  if (!text) text = "";
  const char *why = text_scan_u64(text, strlen(text), out);
  return why ? text_refuse(what, text, why, err) : GM_OK;
}

/* A mantissa below 2^53 and a power of ten up to 10^22 are both exact doubles, so one division rounds correctly. */
static const char *text_scan_double(const char *text, double *out) {
  const uint64_t limit = UINT64_C(1) << 53;
  uint64_t mantissa = 0;
  double scale = 1.0;
  size_t digits = 0;
  bool behind = false, full = false;
  for (; *text; text++) {
    if (*text == '.' && !behind) {
      behind = true;
      continue;
    }
    if (!text_is_digit(*text)) return "is not decimal digits with at most one point";
    digits++;
    uint64_t next = mantissa * 10 + (uint64_t)(*text - '0');
    full = full || next >= limit || scale >= 1e22;
    if (full && !behind) return "is too large";
    if (full) continue;
    mantissa = next;
    if (behind) scale *= 10.0;
  }
  if (digits == 0) return "has no digit";
  *out = (double)mantissa / scale;
  return NULL;
}

gm_status gm__text_double(const char *what, const char *text, double *out, gm_error *err) {
  if (!text) text = "";
  const char *why = text_scan_double(text, out);
  return why ? text_refuse(what, text, why, err) : GM_OK;
}

gm_status gm__text_bool(const char *what, const char *text, bool *out, gm_error *err) {
  static const char *const words[] = {"false", "true", "no", "yes", "off", "on", "0", "1"};
  if (!text) text = "";
  for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
    if (!gm__text_same(text, words[i])) continue;
    *out = i % 2 == 1;
    return GM_OK;
  }
  return text_refuse(what, text, "is none of true, yes, on, 1, false, no, off, 0", err);
}

gm_status gm__text_u64_list(const char *what, const char *text, uint64_t *out, size_t capacity, size_t *count,
                            gm_error *err) {
  if (!text) text = "";
  size_t found = 0;
  for (const char *at = text; *text; at++) {
    if (found == capacity) return text_refuse(what, text, "has too many items", err);
    size_t length = strcspn(at, ",");
    const char *why = text_scan_u64(at, length, &out[found]);
    if (why)
      return gm__fail(err, GM_ERR_INVALID_ARGUMENT, "parse", "%s: item %zu, `%.*s`, %s", what, found + 1,
                      length < 100 ? (int)length : 100, at, why);
    found++;
    at += length;
    if (!*at) break;
  }
  *count = found;
  return GM_OK;
}

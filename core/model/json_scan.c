/* Invariants: `at` never passes `length` and never goes back; every byte is looked at once, so the time is linear in
 * the text. An unescaped string is never longer than its source, so writing it over the source cannot reach unread
 * text. */
#include "core/model/json_scan.h"

#include <string.h>

#include "core/base/utf8.h"

void gm__json_scan_init(gm__json_scan *scan, char *text, uint64_t length) {
  *scan = (gm__json_scan){.text = text, .length = length};
}

bool gm__json_problem(gm__json_scan *scan, uint64_t at, const char *problem) {
  if (!scan->problem) {
    scan->problem = problem;
    scan->problem_at = at;
  }
  return false;
}

bool gm__json_text_is(const gm__json_text *text, const char *literal) {
  return text->length == strlen(literal) && memcmp(text->text, literal, text->length) == 0;
}

int gm__json_text_order(const gm__json_text *text, const char *literal) { return strcmp(text->text, literal); }

/* The byte at `at`, or -1 behind the end. */
static int scan_peek(const gm__json_scan *scan) {
  return scan->at < scan->length ? (unsigned char)scan->text[scan->at] : -1;
}

static int scan_peek_token(gm__json_scan *scan) {
  for (;; scan->at++) {
    int byte = scan_peek(scan);
    if (byte != ' ' && byte != '\n' && byte != '\r' && byte != '\t') return byte;
  }
}

uint64_t gm__json_next_at(gm__json_scan *scan) {
  scan_peek_token(scan);
  return scan->at;
}

static bool scan_expect(gm__json_scan *scan, char wanted, const char *problem) {
  if (scan->problem) return false;
  if (scan_peek_token(scan) != wanted) return gm__json_problem(scan, scan->at, problem);
  scan->at++;
  return true;
}

/* ---- strings ---- */

static uint32_t utf8_encode(uint32_t code, char *out) {
  if (code < 0x80) {
    out[0] = (char)code;
    return 1;
  }
  uint32_t length = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
  for (uint32_t i = length; --i > 0; code >>= 6) out[i] = (char)(0x80 | (code & 0x3f));
  out[0] = (char)((0xf00U >> length & 0xff) | code);
  return length;
}

static bool scan_hex4(gm__json_scan *scan, uint32_t *out) {
  uint32_t value = 0;
  for (int i = 0; i < 4; i++, scan->at++) {
    int byte = scan_peek(scan);
    int lower = byte | 0x20;
    int digit = byte >= '0' && byte <= '9' ? byte - '0' : lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
    if (digit < 0) return gm__json_problem(scan, scan->at, "four hexadecimal digits must follow \\u");
    value = value << 4 | (uint32_t)digit;
  }
  *out = value;
  return true;
}

/* Behind "\u": one code point, from one or two escapes. */
static bool scan_code_point(gm__json_scan *scan, uint32_t *out) {
  uint64_t start = scan->at;
  uint32_t high = 0, low = 0;
  if (!scan_hex4(scan, &high)) return false;
  *out = high;
  if (high == 0) return gm__json_problem(scan, start, "a string holds a NUL");
  if (high < 0xd800 || high >= 0xe000) return true;
  bool pair = high < 0xdc00 && scan->length - scan->at >= 2 && memcmp(scan->text + scan->at, "\\u", 2) == 0;
  if (!pair) return gm__json_problem(scan, start, "half of a surrogate pair");
  scan->at += 2;
  if (!scan_hex4(scan, &low)) return false;
  if (low < 0xdc00 || low >= 0xe000) return gm__json_problem(scan, start, "half of a surrogate pair");
  *out = 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
  return true;
}

/* Behind a backslash: writes what it stands for to `out` and gives its length, 0 on a problem. */
static uint32_t scan_escape(gm__json_scan *scan, char *out) {
  static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
  int byte = scan_peek(scan);
  if (byte == 'u') {
    uint32_t code = 0;
    scan->at++;
    return scan_code_point(scan, &code) ? utf8_encode(code, out) : 0;
  }
  const char *found = byte > 0 ? strchr(from, byte) : NULL;
  if (!found) {
    gm__json_problem(scan, scan->at, "unknown escape in a string");
    return 0;
  }
  scan->at++;
  *out = to[found - from];
  return 1;
}

/* One character of a string, moved to `out`; gives its length there, 0 on a problem. */
static uint32_t scan_character(gm__json_scan *scan, char *out) {
  int byte = scan_peek(scan);
  if (byte < 0) return gm__json_problem(scan, scan->at, "the text ends inside a string");
  if (byte < 0x20) return gm__json_problem(scan, scan->at, "control character in a string");
  if (byte == '\\') {
    scan->at++;
    return scan_escape(scan, out);
  }
  uint32_t length = gm__utf8_length(scan->text + scan->at, scan->length - scan->at);
  if (length == 0) return gm__json_problem(scan, scan->at, "invalid UTF-8 in a string");
  memmove(out, scan->text + scan->at, length);
  scan->at += length;
  return length;
}

bool gm__json_string(gm__json_scan *scan, gm__json_text *out) {
  if (!scan_expect(scan, '"', "a string is expected")) return false;
  char *start = scan->text + scan->at;
  char *end = start;
  uint64_t at = scan->at - 1;
  while (scan_peek(scan) != '"') {
    uint32_t length = scan_character(scan, end);
    if (length == 0) return false;
    end += length;
  }
  scan->at++;
  *end = '\0';
  *out = (gm__json_text){start, (uint64_t)(end - start), at};
  return true;
}

/* ---- objects and arrays ---- */

static bool scan_enter(gm__json_scan *scan, char open, const char *problem) {
  if (!scan_expect(scan, open, problem)) return false;
  if (scan->depth == GM__JSON_MAX_DEPTH) return gm__json_problem(scan, scan->at - 1, "nested too deep");
  scan->depth++;
  scan->fresh = true;
  return true;
}

/* At an element (true), or behind the closing bracket or at a problem (false). */
static bool scan_element(gm__json_scan *scan, char close, const char *problem) {
  if (scan->problem) return false;
  if (scan_peek_token(scan) == close) {
    scan->at++;
    scan->depth--;
    scan->fresh = false;
    return false;
  }
  if (!scan->fresh && !scan_expect(scan, ',', problem)) return false;
  scan->fresh = false;
  return true;
}

bool gm__json_object_begin(gm__json_scan *scan) { return scan_enter(scan, '{', "an object is expected"); }

bool gm__json_object_next(gm__json_scan *scan, gm__json_text *out_key) {
  return scan_element(scan, '}', "a comma or closing brace is expected") && gm__json_string(scan, out_key) &&
         scan_expect(scan, ':', "a colon is expected");
}

bool gm__json_array_begin(gm__json_scan *scan) { return scan_enter(scan, '[', "an array is expected"); }

bool gm__json_array_next(gm__json_scan *scan) {
  return scan_element(scan, ']', "a comma or closing bracket is expected");
}

/* ---- numbers and the rest ---- */

static bool is_digit(int byte) { return byte >= '0' && byte <= '9'; }

bool gm__json_integer(gm__json_scan *scan, uint64_t *out) {
  if (scan->problem) return false;
  int first = scan_peek_token(scan);
  uint64_t start = scan->at, value = 0;
  if (first == '-') return gm__json_problem(scan, start, "a number that is not negative is expected");
  if (!is_digit(first)) return gm__json_problem(scan, start, "an integer is expected");
  for (; is_digit(scan_peek(scan)); scan->at++) {
    uint64_t digit = (uint64_t)(scan_peek(scan) - '0');
    if (value > (UINT64_MAX - digit) / 10) return gm__json_problem(scan, start, "the number does not fit 64 bits");
    value = value * 10 + digit;
  }
  if (first == '0' && scan->at - start > 1) return gm__json_problem(scan, start, "a number with a leading zero");
  int next = scan_peek(scan);
  if (next == '.' || next == 'e' || next == 'E') return gm__json_problem(scan, start, "an integer is expected");
  *out = value;
  return true;
}

static bool scan_digits(gm__json_scan *scan) {
  uint64_t start = scan->at;
  while (is_digit(scan_peek(scan))) scan->at++;
  return scan->at > start || gm__json_problem(scan, start, "a digit is expected");
}

static bool scan_skip_literal(gm__json_scan *scan, const char *word) {
  size_t length = strlen(word);
  if (scan->length - scan->at < length || memcmp(scan->text + scan->at, word, length) != 0) return false;
  scan->at += length;
  return true;
}

static bool scan_skip_number(gm__json_scan *scan) {
  if (scan->python_numbers && scan_skip_literal(scan, "-Infinity")) return true;
  if (scan_peek(scan) == '-') scan->at++;
  uint64_t start = scan->at;
  int first = scan_peek(scan);
  if (!scan_digits(scan)) return false;
  if (first == '0' && scan->at - start > 1) return gm__json_problem(scan, start, "a number with a leading zero");
  if (scan_peek(scan) == '.') {
    scan->at++;
    if (!scan_digits(scan)) return false;
  }
  int exponent = scan_peek(scan);
  if (exponent != 'e' && exponent != 'E') return true;
  scan->at++;
  if (scan_peek(scan) == '+' || scan_peek(scan) == '-') scan->at++;
  return scan_digits(scan);
}

static bool scan_skip_word(gm__json_scan *scan) {
  static const char *const words[] = {"true", "false", "null", "NaN", "Infinity"};
  int count = scan->python_numbers ? 5 : 3;
  for (int i = 0; i < count; i++) {
    if (scan_skip_literal(scan, words[i])) return true;
  }
  return gm__json_problem(scan, scan->at, "a value is expected");
}

bool gm__json_null(gm__json_scan *scan) {
  return !scan->problem && scan_peek_token(scan) == 'n' && scan_skip_word(scan);
}

/* Recursion is bounded by scan_enter. */
bool gm__json_skip(gm__json_scan *scan) {
  if (scan->problem) return false;
  gm__json_text text;
  int first = scan_peek_token(scan);
  if (first == '"') return gm__json_string(scan, &text);
  if (first == '-' || is_digit(first)) return scan_skip_number(scan);
  if (first == '{') {
    gm__json_object_begin(scan);
    while (gm__json_object_next(scan, &text)) gm__json_skip(scan);
  } else if (first == '[') {
    gm__json_array_begin(scan);
    while (gm__json_array_next(scan)) gm__json_skip(scan);
  } else {
    return scan_skip_word(scan);
  }
  return !scan->problem;
}

bool gm__json_end(gm__json_scan *scan) {
  if (scan->problem) return false;
  if (scan_peek_token(scan) < 0) return true;
  return gm__json_problem(scan, scan->at, "something follows the closing brace");
}

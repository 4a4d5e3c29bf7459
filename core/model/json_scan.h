/* A strict pull reader for the JSON of model files (RFC 8259), over text in memory. It allocates nothing and
 * recurses at most GM__JSON_MAX_DEPTH deep. The first problem is kept, with its byte. From then on every call
 * answers false, so a caller may read on and ask once. Not thread-safe: one scan, one thread. */
#ifndef GM_CORE_MODEL_JSON_SCAN_H
#define GM_CORE_MODEL_JSON_SCAN_H

#include <stdbool.h>
#include <stdint.h>

enum { GM__JSON_MAX_DEPTH = 32 };

typedef struct gm__json_scan {
  char *text; /* writable: strings are unescaped and terminated where they stand */
  uint64_t length;
  uint64_t at;
  uint32_t depth;
  bool python_numbers; /* set by the caller: NaN, Infinity and -Infinity, as Python writes them, are read over */
  bool fresh;          /* just behind a '{' or '[': no comma is due */
  const char *problem; /* NULL while all is well; static text */
  uint64_t problem_at;
} gm__json_scan;

/* A string of the text: valid UTF-8, no NUL inside, a NUL behind it. Lives as long as the text. */
typedef struct gm__json_text {
  const char *text;
  uint64_t length;
  uint64_t at; /* where its opening quote stands */
} gm__json_text;

/* Begin to read `length` bytes at `text`, which the scan will write to. */
void gm__json_scan_init(gm__json_scan *scan, char *text, uint64_t length);

/* Keep `problem` (static text) at `at` unless there is one already. Always false. */
bool gm__json_problem(gm__json_scan *scan, uint64_t at, const char *problem);

/* Where the next value begins: white space is skipped. */
uint64_t gm__json_next_at(gm__json_scan *scan);

/* Enter an object. gm__json_object_next gives each key, and false at the closing brace or at a problem. Read the
 * value behind each key. Keys may repeat: the caller looks for that. */
bool gm__json_object_begin(gm__json_scan *scan);
bool gm__json_object_next(gm__json_scan *scan, gm__json_text *out_key);

/* Enter an array. gm__json_array_next is true when an element follows. */
bool gm__json_array_begin(gm__json_scan *scan);
bool gm__json_array_next(gm__json_scan *scan);

/* Values. An integer is digits only: no sign, fraction or exponent, and it must fit 64 bits. */
bool gm__json_string(gm__json_scan *scan, gm__json_text *out);
bool gm__json_integer(gm__json_scan *scan, uint64_t *out);

/* Read over a null. False: another value comes, and nothing was read. */
bool gm__json_null(gm__json_scan *scan);

/* Read over one value of any type. */
bool gm__json_skip(gm__json_scan *scan);

/* True when nothing but white space is left and there was no problem. */
bool gm__json_end(gm__json_scan *scan);

bool gm__json_text_is(const gm__json_text *text, const char *literal);

/* Like strcmp. */
int gm__json_text_order(const gm__json_text *text, const char *literal);

#endif

/* One JSON object, built piece by piece with json-c and written when the outermost is closed. `key` is NULL inside an
 * array and for the outermost object. */
#ifndef GM_TOOLS_GMEM_OUTPUT_JSON_H
#define GM_TOOLS_GMEM_OUTPUT_JSON_H

#include <json-c/json.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum { JSON_DEPTH = 8 };

typedef struct json_writer { /* zeroed but for `file` */
  FILE *file;
  int depth;
  bool one_line;                  /* no indentation: for who prints one object after the other */
  json_object *stack[JSON_DEPTH]; /* the objects and arrays that are open, outermost first */
} json_writer;

void writer_open(json_writer *out, const char *key, char bracket); /* '{' or '[' */
void writer_close(json_writer *out);

/* Bytes that are no UTF-8 become U+FFFD, one for each. */
void writer_text(json_writer *out, const char *key, const char *text);

void writer_text_or_null(json_writer *out, const char *key, const char *text); /* "" and NULL: null */
void writer_u64(json_writer *out, const char *key, uint64_t value);
void writer_bytes(json_writer *out, const char *key, uint64_t bytes); /* GM_UNKNOWN_BYTES: null */
void writer_double(json_writer *out, const char *key, double value);
void writer_bool(json_writer *out, const char *key, bool value);
void writer_null(json_writer *out, const char *key);

#endif

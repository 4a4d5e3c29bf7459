/* Writing JSON, piece by piece, onto a stream. `key` is NULL inside an array and for the outermost object. */
#ifndef GM_TOOLS_GMEM_JSON_H
#define GM_TOOLS_GMEM_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

typedef struct json {
  FILE *file;
  int depth;
  bool filled; /* the innermost object or array has something in it */
} json;

void json_open(json *out, const char *key, char bracket); /* '{' or '[' */
void json_close(json *out, char bracket);                 /* '}' or ']' */

/* Bytes that are no UTF-8 become U+FFFD, one for each. */
void json_text(json *out, const char *key, const char *text);

void json_text_or_null(json *out, const char *key, const char *text); /* "" and NULL: null */
void json_u64(json *out, const char *key, uint64_t value);
void json_bytes(json *out, const char *key, uint64_t bytes); /* GM_UNKNOWN_BYTES: null */
void json_double(json *out, const char *key, double value);
void json_bool(json *out, const char *key, bool value);
void json_null(json *out, const char *key);

#endif

/* Taking numbers and strings out of a GGUF header, which grows in memory as it is read. The first failure is kept; from
 * then on every call answers false, so that a caller may ask once. Not thread-safe. */
#ifndef GM_CORE_MODEL_GGUF_READER_H
#define GM_CORE_MODEL_GGUF_READER_H

#include "core/base/input_file.h"
#include "core/model/contents.h"

typedef struct gm__gguf_reader {
  const gm_services *services;
  const char *path;
  const gm__input_file *file; /* NULL: `memory` is the file */
  const unsigned char *memory;
  uint64_t file_bytes;
  gm__contents *contents; /* its header is what is read so far */
  uint64_t loaded;        /* bytes of it that are there */
  uint64_t at;            /* of the next byte */
  uint32_t version;
  gm_status status; /* GM_OK while all is well */
  gm_error *err;
} gm__gguf_reader;

/* Keep a failure at byte `at` unless there is one. Always false. */
bool gm__gguf_fail(gm__gguf_reader *reader, gm_status status, uint64_t at, const char *format, ...) GM_PRINTF(4, 5);

/* Keep the failure `status` of another call, whose reason is in reader->err. True for GM_OK. */
bool gm__gguf_keep(gm__gguf_reader *reader, gm_status status);

/* The next `bytes` bytes, made available in contents->header at *out_at. `what` is for the message when the file ends
 * before. */
bool gm__gguf_take(gm__gguf_reader *reader, uint64_t bytes, const char *what, uint64_t *out_at);

/* `bytes` (up to 8) bytes at `at` as a little-endian number. They must have been taken. */
uint64_t gm__gguf_number(const gm__contents *contents, uint64_t at, uint32_t bytes);

/* The next number; a count, length or dimension, which version 1 has with 32 bits. */
bool gm__gguf_u32(gm__gguf_reader *reader, const char *what, uint32_t *out);
bool gm__gguf_u64(gm__gguf_reader *reader, const char *what, uint64_t *out);
bool gm__gguf_size(gm__gguf_reader *reader, const char *what, uint64_t *out);

/* The next string, moved within the header so that a NUL follows it. */
bool gm__gguf_string(gm__gguf_reader *reader, const char *what, gm__header_string *out);

/* Read a key or a name: as gm__gguf_string, with up to `limit` bytes, not empty, UTF-8 without control characters.
 * The text pointer is valid until the next take; `at` and `length` last. */
bool gm__gguf_name(gm__gguf_reader *reader, const char *what, uint64_t limit, gm__json_text *out);

/* True when `count` items of at least `item_bytes` can still follow in the file; else it fails. */
bool gm__gguf_room(gm__gguf_reader *reader, uint64_t count, uint64_t item_bytes, const char *what);

#endif

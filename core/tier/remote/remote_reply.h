/* The answer of a server, as a tree. hiredis reads the bytes; the tree is in the host's memory. A server cannot make
 * it large: the bytes and the items of one answer have bounds.
 *
 * gm uses the reader of hiredis alone. It takes plain memory of the C library, which the host's services do not see:
 * at most about twice the bytes of the largest answer. It ends in a status where there is none; hiredis's own
 * connections may abort there, and raise SIGPIPE. */
#ifndef GM_CORE_TIER_REMOTE_REPLY_H
#define GM_CORE_TIER_REMOTE_REPLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gm/services.h"
#include "gm/status.h"

typedef enum gm__reply_kind {
  GM__REPLY_STRING = 1,
  GM__REPLY_ARRAY,
  GM__REPLY_INTEGER,
  GM__REPLY_NIL,
  GM__REPLY_STATUS,
  GM__REPLY_ERROR,
  GM__REPLY_OTHER
} gm__reply_kind;

typedef struct gm__reply {
  gm__reply_kind kind;
  int64_t number;                        /* of an integer */
  size_t count;                          /* of the items of an array, as far as they came */
  struct gm__reply *first, *last, *next; /* items; the next item of the array that this is in */
  size_t bytes;                          /* of the text */
  char text[];                           /* of a string, a status or an error; a NUL follows */
} gm__reply;

typedef struct gm__reply_reader {
  const gm_services *services; /* borrowed */
  const struct gm__hiredis *calls;
  void *own;           /* of hiredis; NULL: not open */
  uint64_t fed, items; /* since the last answer */
  gm__reply *root;     /* of the answer that is not whole */
  bool too_large, no_memory;
} gm__reply_reader;

/* Opens a reader, which may not move while it is open. NOT_SUPPORTED: hiredis is missing. OUT_OF_HOST_MEMORY.
 */
gm_status gm__reply_reader_open(gm__reply_reader *reader, const gm_services *services, gm_error *err);
void gm__reply_reader_close(gm__reply_reader *reader);

/* Adds bytes that came. FORMAT: they belong to an answer that is too large. OUT_OF_HOST_MEMORY. */
gm_status gm__reply_reader_feed(gm__reply_reader *reader, const void *bytes, size_t count, gm_error *err);

/* Takes the next answer; the caller frees it. *out is NULL while it is not whole. FORMAT: it is none, or too large.
 * OUT_OF_HOST_MEMORY. After a failure the reader reads no more. */
gm_status gm__reply_reader_next(gm__reply_reader *reader, gm__reply **out, gm_error *err);

/* Are there bytes that no answer has taken? */
bool gm__reply_reader_has_rest(const gm__reply_reader *reader);

/* Frees an answer with its items. NULL does nothing. */
void gm__reply_free(const gm_services *services, gm__reply *reply);

/* Is it an error that begins with that word? */
bool gm__reply_is_error(const gm__reply *reply, const char *word);

#endif

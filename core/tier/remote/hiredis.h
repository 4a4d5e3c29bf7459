/* The reader of libhiredis, opened when it is first asked for. Nothing of gm links it. GM_HIREDIS_LIBRARY names another
 * file. It stays until the process ends. Thread-safe. */
#ifndef GM_CORE_TIER_HIREDIS_H
#define GM_CORE_TIER_HIREDIS_H

#include <hiredis.h>
#include <read.h>

#include "gm/status.h"

/* The calls that gm makes. Names and meanings are those of read.h. */
typedef struct gm__hiredis {
  redisReader *(*reader_new)(redisReplyObjectFunctions *functions);
  void (*reader_free)(redisReader *reader);
  int (*reader_feed)(redisReader *reader, const char *bytes, size_t count);
  int (*reader_next)(redisReader *reader, void **out);
} gm__hiredis;

/* NULL: the library is missing, or of another version than its headers at gm's build. NOT_SUPPORTED in `err` says why.
 */
const gm__hiredis *gm__hiredis_open(gm_error *err);

#endif

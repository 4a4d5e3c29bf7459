/* The file of --record: written under another name beside it and renamed when it is complete, so that what was there
 * stays until then. SIGINT, SIGTERM and SIGHUP remove what is incomplete. One at a time in a process. */
#ifndef GM_TOOLS_GMEM_SESSION_RECORD_FILE_H
#define GM_TOOLS_GMEM_SESSION_RECORD_FILE_H

#include <limits.h>

#include "gm/pool.h"
#include "gm/record.h"

enum { RECORD_FILE_PATH = PATH_MAX };

typedef struct record_file {
  char path[RECORD_FILE_PATH];      /* what it is to be; links are followed */
  char temporary[RECORD_FILE_PATH]; /* what is written until the end */
} record_file;

/* Begin to record `pool` for the file `path`. INVALID_ARGUMENT: `path` is `input`, which the command reads; IO,
 * NOT_FOUND: no file can be made there; errors of gm_pool_record_begin. */
gm_status record_file_begin(record_file *out, gm_pool *pool, const char *path, const char *input, gm_error *err);

/* End the recording. With `status` GM_OK the file is put in place, else it is removed; `out` may be NULL. `status`, or
 * the error of gm_pool_record_end or of the renaming. */
gm_status record_file_end(record_file *self, gm_pool *pool, gm_status status, gm_recording *out, gm_error *err);

#endif

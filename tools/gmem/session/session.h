/* A context, one open device and one pool: what the commands work on. */
#ifndef GM_TOOLS_GMEM_SESSION_SESSION_H
#define GM_TOOLS_GMEM_SESSION_SESSION_H

#include "gm/pool.h"

/* Which device a command was told to take. */
typedef struct session_choice {
  const char *backend; /* NULL: the best device */
  uint32_t device;
} session_choice;

/* All NULL: nothing is open. */
typedef struct session {
  gm_context *ctx;
  gm_device *device;
  gm_pool *pool;
} session;

/* A context that logs warnings on standard error. `backend_options` as in gm_context_params; may be NULL. */
gm_status session_begin(session *out, const char *backend_options, gm_error *err);

/* A context with one backend and no other. INVALID_ARGUMENT: there is none of that name. */
gm_status session_begin_only(session *out, const char *backend, gm_error *err);

/* Like session_begin, without a log: for trials that may fail. */
gm_status session_begin_quietly(session *out, const char *backend_options, gm_error *err);

/* Open the device chosen, or the best one that can take `bytes`. INVALID_ARGUMENT: there is no backend of that name. */
gm_status session_open(session *self, const session_choice *choice, uint64_t bytes, gm_error *err);

/* Close what is open. The first failure, into `err`. */
gm_status session_end(session *self, gm_error *err);

#endif

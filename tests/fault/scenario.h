/* What an engine does with gm, through the public headers alone, in pieces that can be broken anywhere. */
#ifndef GM_TESTS_FAULT_SCENARIO_H
#define GM_TESTS_FAULT_SCENARIO_H

#include "gm/pool.h"
#include "gm/tracker.h"

enum { SESSION_BLOCKS = 6 };

/* All that a scenario has open: whatever is not NULL is closed by session_end. */
typedef struct session {
  const char *backend;
  const char *model; /* path of a small model */
  gm_context *ctx;
  gm_device *device;
  gm_stream *streams[2];
  gm_pool *pool;
  gm_tracker *tracker;
  uint32_t block_count;
  gm_block blocks[SESSION_BLOCKS];
} session;

typedef struct scenario {
  const char *name;
  gm_status (*run)(session *s, gm_error *err); /* returns the first failure */
  bool needs_contents;                         /* not for the null backend */
  bool of_no_backend;                          /* the same for all: host memory is swept with the first only */
} scenario;

extern const scenario scenarios[];
extern const unsigned scenario_count;

/* Closes what is open. What refuses is asked once more, as a program would: the failure was played once. GM_OK, or what
 * still refuses. */
gm_status session_end(session *s, gm_error *err);

#endif

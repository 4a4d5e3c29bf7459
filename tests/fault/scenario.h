/* The work of an engine with gm, through the public headers alone, in pieces that can be broken anywhere. */
#ifndef GM_TESTS_FAULT_SCENARIO_H
#define GM_TESTS_FAULT_SCENARIO_H

#include "gm/managed.h"
#include "gm/pool.h"
#include "gm/tracker.h"
#include "gm/transfer.h"

enum { SESSION_BLOCKS = 6 };

/* All that a scenario has open: whatever is not NULL is closed by session_end. */
typedef struct session {
  const char *backend;
  const char *model; /* path of a small model */
  const char *trace; /* path for a recording */
  gm_context *ctx;
  gm_device *device;
  gm_stream *streams[2];
  gm_pool *pool;
  gm_tracker *tracker;
  uint32_t block_count;
  gm_block blocks[SESSION_BLOCKS];
  gm_managed *managed;
  gm_transfer *transfer;
  gm_device *other_device;
  gm_pool *other_pool;
  bool has_other_block;
  gm_block other_block;
} session;

typedef struct scenario {
  const char *name;
  gm_status (*run)(session *s, gm_error *err); /* returns the first failure */
  bool needs_contents;                         /* not for the null backend */
  bool of_no_backend;                          /* the same for all: host memory is swept with the first only */
  bool opens;                                  /* what opening takes is swept here: the others open in the same way */
  const char *only;                            /* for this backend alone; NULL: for all */
} scenario;

extern const scenario scenarios[];
extern const unsigned scenario_count;

/* Context, device and pool of the session's backend. */
gm_status session_open(session *s, gm_error *err);

/* Like above, without a pool; and without a device. */
gm_status session_open_context(session *s, gm_error *err);
gm_status session_open_device(session *s, gm_error *err);

/* A block of the session's pool becomes the last of `blocks`. On a stream: the stream gets the wait if it takes one.
 * Gives the last one back. */
gm_status session_take(session *s, uint64_t bytes, gm_error *err);
gm_status session_take_on(session *s, uint64_t bytes, gm_stream *stream, gm_error *err);
gm_status session_take_spanned(session *s, uint64_t bytes, gm_stream *stream, gm_error *err); /* in several memories */
gm_status session_give(session *s, gm_stream *stream, gm_error *err);

/* Scenarios of scenario_transfer.c. */
gm_status scenario_transfer(session *s, gm_error *err);
gm_status scenario_scatter(session *s, gm_error *err);
/* Scenarios of scenario_devices.c. */
gm_status scenario_peer(session *s, gm_error *err);
gm_status scenario_staged(session *s, gm_error *err);
gm_status scenario_managed(session *s, gm_error *err);
/* Scenarios of scenario_pool.c. */
gm_status scenario_warm_up(session *s, gm_error *err);
gm_status scenario_batch(session *s, gm_error *err);
gm_status scenario_batch_contents(session *s, gm_error *err);
gm_status scenario_quota(session *s, gm_error *err);
gm_status scenario_pool_set(session *s, gm_error *err);
gm_status scenario_spanned(session *s, gm_error *err);
/* From scenario_record.c. */
gm_status scenario_record(session *s, gm_error *err);
/* From scenario_fences.c, which is there where the Vulkan backend is. */
gm_status scenario_fences(session *s, gm_error *err);
gm_status scenario_fences_no_leave(session *s, gm_error *err);

/* The objects that scenarios of scenario_devices.c leave open. */
gm_status session_end_devices(session *s, gm_error *err);

/* Closes what is open. A call that refuses is made once more, as a program would: the failure was played once. GM_OK,
 * or what still refuses. */
gm_status session_end(session *s, gm_error *err);

#endif

/* Requests to whichever server is to answer them: several at once, tried again until the time is up. REQUIRES, for each
 * function: the tier's turn. */
#ifndef GM_CORE_TIER_REMOTE_RUN_H
#define GM_CORE_TIER_REMOTE_RUN_H

#include "core/tier/remote/remote_node.h"

enum { GM__REMOTE_BATCH = 256, GM__REMOTE_WINDOW = 8 /* requests at once that carry a chunk, or ask for one */ };

/* A request, which may be carried out twice: a connection may be lost after the server has done its work. Not so one
 * that is to go `once`: where it is lost, gm__remote_run gives up, and the caller asks what became of it. */
typedef struct gm__remote_request {
  gm_tier_part args[GM__REMOTE_ARGS];
  uint32_t count;
  uint32_t key;  /* which argument says where the request goes; 0: it goes to `node` */
  uint32_t node; /* where it went */
  bool once;     /* it is not tried again after it was lost */
  bool asking;   /* it goes to `node` though the slot is not there yet */
  bool sent;     /* it is on the way, by the connection number `opened` */
  bool lost;     /* it was on the way when a connection was lost: the server may have carried it out before */
  uint64_t opened;
  gm__reply *reply; /* the caller frees it */
} gm__remote_request;

/* Has all requests answered, at most GM__REMOTE_BATCH. On GM_OK each has a reply, which may be a server's error, but
 * none that says to ask elsewhere or later. After a failure none has one, and tier->trouble says why. TIMEOUT, IO,
 * FORMAT, INVALID_ARGUMENT, NOT_SUPPORTED, OUT_OF_HOST_MEMORY. */
gm_status gm__remote_run(gm__remote_tier *tier, gm__remote_request *requests, uint32_t count);

/* Frees the replies. */
void gm__remote_run_end(const gm__remote_tier *tier, gm__remote_request *requests, uint32_t count);

/* GM_OK when the reply is of that kind. Otherwise tier->trouble says what came instead. */
gm_status gm__remote_expect(gm__remote_tier *tier, const gm__remote_request *request, gm__reply_kind kind);

#endif

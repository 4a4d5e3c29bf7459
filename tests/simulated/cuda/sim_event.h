/* Events: each record makes a ticket that is done when the stream gets there. A wait holds the ticket of the record
 * that was last when it was called, as with a real driver. Wants the lock. */
#ifndef GM_TESTS_SIMULATED_CUDA_SIM_EVENT_H
#define GM_TESTS_SIMULATED_CUDA_SIM_EVENT_H

#include <stdbool.h>
#include <stdint.h>

#include "tests/simulated/cuda/sim_cuda_api.h"
#include "tests/simulated/cuda/sim_queue.h"

typedef struct sim_ticket {
  unsigned references;
  bool done;
  int64_t done_ns;
} sim_ticket;

/* Seen by all processes that opened the event. */
typedef struct sim_event_page {
  _Atomic uint64_t recorded, done;
} sim_event_page;

struct CUevent_st {
  uint64_t context_id;
  unsigned flags;
  sim_ticket *last; /* NULL: never recorded */
  sim_event_page *page;
  int file; /* of the page */
  sim_queue *captured_on;
  sim_capture *capture;
  uint64_t captured; /* operations on that queue when it was recorded */
};

bool sim_event_is_live(CUevent event);
CUevent sim_event_create(unsigned flags); /* NULL: too many */
void sim_event_forget_capture(const sim_capture *capture);
void sim_event_drop_context(CUcontext context);
int sim_event_count(void);

#endif

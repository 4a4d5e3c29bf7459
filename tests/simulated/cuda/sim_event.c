#include "tests/simulated/cuda/sim_event.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/simulated/cuda/sim_call.h"
#include "tests/simulated/cuda/sim_capture.h"
#include "tests/simulated/cuda/sim_context.h"
#include "tests/simulated/cuda/sim_link.h"
#include "tests/simulated/cuda/sim_pool.h"
#include "tests/simulated/cuda/sim_script.h"
#include "tests/simulated/cuda/sim_slab.h"
#include "tests/simulated/cuda/sim_stream.h"

typedef struct event_op {
  sim_op op;
  sim_ticket *ticket;
  sim_event_page *page;
  uint64_t generation;
} event_op;

static sim_slab event_slab = {.item_bytes = sizeof(struct CUevent_st)};

bool sim_event_is_live(CUevent event) { return sim_slab_is_live(&event_slab, event); }
int sim_event_count(void) { return event_slab.live_count; }

static void event_ticket_release(sim_ticket *ticket) {
  if (ticket && --ticket->references == 0) free(ticket);
}

CUevent sim_event_create(unsigned flags) {
  CUevent event = sim_slab_take(&event_slab);
  if (event) *event = (struct CUevent_st){.context_id = sim_context_current()->id, .flags = flags, .file = -1};
  return event;
}

/* Pages stay mapped: work that is still queued writes to them. */
static void event_destroy(CUevent event) {
  event_ticket_release(event->last);
  if (event->file >= 0) close(event->file);
  sim_slab_give(&event_slab, event);
}

void sim_event_drop_context(CUcontext context) {
  int at = 0;
  for (CUevent event; (event = sim_slab_next(&event_slab, &at));)
    if (event->context_id == context->id) event_destroy(event);
}

void sim_event_forget_capture(const sim_capture *capture) {
  int at = 0;
  for (CUevent event; (event = sim_slab_next(&event_slab, &at));) {
    if (event->capture != capture) continue;
    event->capture = NULL;
    event->captured_on = NULL;
  }
}

static CUresult event_create(CUevent *out, unsigned flags) {
  unsigned known = CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS;
  if (!out || (flags & ~known)) return CUDA_ERROR_INVALID_VALUE;
  if ((flags & CU_EVENT_INTERPROCESS) && !(flags & CU_EVENT_DISABLE_TIMING)) return CUDA_ERROR_INVALID_VALUE;
  if (sim_script_now.hostile_null) return *out = NULL, CUDA_SUCCESS;
  CUevent event = sim_event_create(flags);
  if (!event) return CUDA_ERROR_OUT_OF_MEMORY;
  *out = event;
  return CUDA_SUCCESS;
}

CUresult cuEventCreate(CUevent *out, unsigned flags) {
  CUresult result = sim_enter(sim_id_cuEventCreate);
  if (result) return result;
  return sim_leave(event_create(out, flags));
}

CUresult cuEventDestroy_v2(CUevent event) {
  CUresult result = sim_enter(sim_id_cuEventDestroy_v2);
  if (result) return result;
  if (!sim_event_is_live(event)) return sim_leave(CUDA_ERROR_INVALID_HANDLE);
  event_destroy(event);
  return sim_leave(CUDA_SUCCESS);
}

static void event_settle_record(sim_op *op, CUresult result) {
  (void)result;
  const event_op *record = (event_op *)op;
  record->ticket->done = true;
  record->ticket->done_ns = sim_link_now_ns();
  if (record->page) atomic_store(&record->page->done, record->generation);
  event_ticket_release(record->ticket);
}

static CUresult event_record(CUevent event, CUstream stream) {
  sim_queue *queue = NULL;
  CUresult result = sim_stream_queue(stream, &queue);
  if (result) return result;
  if (!sim_event_is_live(event)) return CUDA_ERROR_INVALID_HANDLE;
  if (queue->context_id != event->context_id) return CUDA_ERROR_INVALID_HANDLE;
  if (queue->capture) return sim_capture_record(queue, event);
  event_op *record = sim_op_create(sizeof *record);
  sim_ticket *ticket = calloc(1, sizeof *ticket);
  if (!record || !ticket) {
    free(record);
    free(ticket);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  ticket->references = 2;
  event_ticket_release(event->last);
  event->last = ticket;
  event->capture = NULL;
  event->captured_on = NULL;
  record->ticket = ticket;
  record->page = event->page;
  if (event->page) record->generation = atomic_fetch_add(&event->page->recorded, 1) + 1;
  record->op.settle = event_settle_record;
  return sim_queue_add(queue, &record->op);
}

CUresult cuEventRecord(CUevent event, CUstream stream) {
  CUresult result = sim_enter(sim_id_cuEventRecord);
  if (result) return result;
  return sim_leave(event_record(event, stream));
}

CUresult cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned flags) {
  CUresult result = sim_enter(sim_id_cuEventRecordWithFlags);
  if (result) return result;
  return sim_leave(flags > 1 ? CUDA_ERROR_INVALID_VALUE : event_record(event, stream));
}

static bool event_ready(const sim_op *op) {
  const event_op *wait = (const event_op *)op;
  if (sim_call_lost()) return true;
  if (wait->page) return atomic_load(&wait->page->done) >= wait->generation;
  return wait->ticket->done;
}

static void event_settle_wait(sim_op *op, CUresult result) {
  (void)result;
  event_ticket_release(((event_op *)op)->ticket);
}

static CUresult event_wait(CUstream stream, CUevent event) {
  sim_queue *queue = NULL;
  CUresult result = sim_stream_queue(stream, &queue);
  if (result) return result;
  if (!sim_event_is_live(event)) return CUDA_ERROR_INVALID_HANDLE;
  if (queue->capture || event->capture) return sim_capture_wait(queue, event);
  if (!event->last && !event->page) return CUDA_SUCCESS;
  event_op *wait = sim_op_create(sizeof *wait);
  if (!wait) return CUDA_ERROR_OUT_OF_MEMORY;
  wait->op.ready = event_ready;
  wait->op.settle = event_settle_wait;
  wait->page = event->page;
  wait->op.polled = event->page != NULL;
  if (event->page) wait->generation = atomic_load(&event->page->recorded);
  wait->ticket = event->last;
  if (wait->ticket) wait->ticket->references++;
  return sim_queue_add(queue, &wait->op);
}

CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags) {
  CUresult result = sim_enter(sim_id_cuStreamWaitEvent);
  if (result) return result;
  return sim_leave(flags > 1 ? CUDA_ERROR_INVALID_VALUE : event_wait(stream, event));
}

static bool event_is_done(CUevent event) {
  if (event->page) return atomic_load(&event->page->done) >= atomic_load(&event->page->recorded);
  return !event->last || event->last->done;
}

static CUresult event_check(CUevent event) {
  if (!sim_event_is_live(event)) return CUDA_ERROR_INVALID_HANDLE;
  return event->capture ? sim_capture_forbids_event(event) : CUDA_SUCCESS;
}

CUresult cuEventQuery(CUevent event) {
  CUresult result = sim_enter(sim_id_cuEventQuery);
  if (result) return result;
  result = event_check(event);
  if (!result && !event_is_done(event)) result = CUDA_ERROR_NOT_READY;
  if (result == CUDA_ERROR_NOT_READY) sim_link_poll();
  return sim_leave(result);
}

/* Waits for the record that is last now, even if the event is recorded again or destroyed meanwhile. */
static CUresult event_synchronize(CUevent event) {
  CUresult result = event_check(event);
  if (result) return result;
  CUcontext context = sim_context_current();
  int device = context->device;
  uint64_t id = context->id;
  sim_event_page *page = event->page;
  uint64_t generation = page ? atomic_load(&page->recorded) : 0;
  sim_ticket *ticket = event->last;
  if (ticket) ticket->references++;
  while (page && atomic_load(&page->done) < generation && !sim_call_lost()) sim_wait_changed(sim_now_ns() + 1000000);
  while (!page && ticket && !ticket->done) sim_wait_changed(0);
  event_ticket_release(ticket);
  sim_pool_synchronized(device);
  if (sim_call_lost()) return sim_call_lost();
  return sim_context_is_live(context) && context->id == id ? context->sticky : CUDA_SUCCESS;
}

CUresult cuEventSynchronize(CUevent event) {
  CUresult result = sim_enter(sim_id_cuEventSynchronize);
  if (result) return result;
  return sim_leave(event_synchronize(event));
}

static CUresult event_elapsed(float *out, CUevent start, CUevent end) {
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  if (!sim_event_is_live(start) || !sim_event_is_live(end)) return CUDA_ERROR_INVALID_HANDLE;
  if ((start->flags | end->flags) & CU_EVENT_DISABLE_TIMING) return CUDA_ERROR_INVALID_HANDLE;
  if (!start->last || !end->last) return CUDA_ERROR_INVALID_HANDLE;
  if (!start->last->done || !end->last->done) return CUDA_ERROR_NOT_READY;
  *out = (float)(end->last->done_ns - start->last->done_ns) / 1e6f;
  return CUDA_SUCCESS;
}

CUresult cuEventElapsedTime(float *out, CUevent start, CUevent end) {
  CUresult result = sim_enter(sim_id_cuEventElapsedTime);
  if (result) return result;
  return sim_leave(event_elapsed(out, start, end));
}

CUresult cuEventElapsedTime_v2(float *out, CUevent start, CUevent end) {
  CUresult result = sim_enter(sim_id_cuEventElapsedTime_v2);
  if (result) return result;
  return sim_leave(event_elapsed(out, start, end));
}

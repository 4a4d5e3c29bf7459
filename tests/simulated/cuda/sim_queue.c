#include "tests/simulated/cuda/sim_queue.h"

#include <stdlib.h>

#include "tests/simulated/cuda/sim_call.h"
#include "tests/simulated/cuda/sim_capture.h"
#include "tests/simulated/cuda/sim_context.h"
#include "tests/simulated/cuda/sim_link.h"
#include "tests/simulated/cuda/sim_pool.h"
#include "tests/simulated/cuda/sim_script.h"
#include "tests/simulated/cuda/sim_worker.h"

sim_queue *sim_queues;
static uint64_t queue_next_id = 1;
static uint64_t queue_sequence;
static uint64_t queue_steps;
static bool queue_all_held;
static uint64_t queue_ops[2]; /* of the device, and host functions */

sim_queue *sim_queue_create(CUcontext context, unsigned flags, int priority) {
  sim_queue *queue = calloc(1, sizeof *queue);
  if (!queue) return NULL;
  queue->context = context;
  queue->context_id = context->id;
  queue->device = context->device;
  queue->flags = flags;
  queue->priority = priority;
  queue->id = queue_next_id++;
  queue->next = sim_queues;
  sim_queues = queue;
  sim_link_open(queue);
  return queue;
}

static void queue_free_if_over(sim_queue *queue) {
  if (!queue->closed || queue->head || queue->busy || queue->waiters) return;
  for (sim_queue **link = &sim_queues; *link; link = &(*link)->next) {
    if (*link != queue) continue;
    *link = queue->next;
    break;
  }
  sim_link_close(queue);
  free(queue);
}

void sim_queue_close(sim_queue *queue) {
  queue->closed = true;
  queue->held = false;
  sim_capture_forget(queue);
  sim_tell_all();
  queue_free_if_over(queue);
}

void *sim_op_create(size_t bytes) {
  sim_op *op = calloc(1, bytes);
  if (op) op->bytes = bytes;
  return op;
}

/* Mostly soon, now and then much later: streams overtake each other. */
static int64_t queue_due_ns(void) {
  uint64_t most = sim_script_now.latency_us * 1000;
  if (!most) return 0;
  uint64_t late = sim_script_random() % (2 * most);
  if (sim_script_random() % 16 == 0) late *= 8;
  return sim_now_ns() + (int64_t)late;
}

/* Is older work of the streams that `queue` has to wait for still there? */
static bool queue_is_behind(const sim_queue *queue, uint64_t sequence) {
  if (!queue->legacy && (queue->flags & CU_STREAM_NON_BLOCKING)) return false;
  for (const sim_queue *other = sim_queues; other; other = other->next) {
    if (other == queue || other->context_id != queue->context_id || !other->head) continue;
    bool counts = queue->legacy ? !(other->flags & CU_STREAM_NON_BLOCKING) : other->legacy;
    if (counts && other->head->sequence < sequence) return true;
  }
  return false;
}

/* A mark on a stream without work has nothing to wait for. On a card it is done in microseconds: it is not late,
 * either.
 */
static bool queue_is_done_at_once(const sim_queue *queue, const sim_op *op) {
  const bool free = !queue->head && !queue->held && !queue_all_held;
  return free && !op->run && !op->ready && !op->on_host && !queue_is_behind(queue, op->sequence);
}

static void queue_do_at_once(sim_queue *queue, sim_op *op) {
  queue->done = op->sequence;
  if (op->settle) op->settle(op, CUDA_SUCCESS);
  free(op);
  pthread_cond_broadcast(&sim_changed);
}

CUresult sim_queue_add(sim_queue *queue, sim_op *op) {
  if (!op) return CUDA_ERROR_OUT_OF_MEMORY;
  if (queue->capture) return sim_capture_add(queue, op);
  CUresult result = sim_capture_forbids_legacy(queue);
  if (!result && !sim_worker_start()) result = CUDA_ERROR_OPERATING_SYSTEM;
  if (result) {
    if (op->settle) op->settle(op, result);
    free(op);
    return result;
  }
  op->sequence = queue->last = ++queue_sequence;
  if (queue_is_done_at_once(queue, op)) return queue_do_at_once(queue, op), CUDA_SUCCESS;
  const bool linked = sim_link_is_on();
  op->due_ns = linked ? 0 : queue_due_ns();
  queue_ops[op->on_host]++;
  if (queue->tail) queue->tail->next = op;
  if (!queue->tail) queue->head = op;
  queue->tail = op;
  if (linked) sim_link_add(queue, op);
  if (queue->head == op && !linked) pthread_cond_broadcast(&sim_work[op->on_host]);
  return CUDA_SUCCESS;
}

CUresult sim_queue_wait(sim_queue *queue) {
  CUcontext context = queue->context;
  uint64_t id = queue->context_id, until = queue->last;
  int device = queue->device;
  queue->waiters++;
  while (queue->done < until) sim_wait_changed(0);
  queue->waiters--;
  queue_free_if_over(queue);
  sim_pool_synchronized(device);
  if (sim_call_lost()) return sim_call_lost();
  return sim_context_is_live(context) && context->id == id ? context->sticky : CUDA_SUCCESS;
}

static bool queue_context_busy(const void *context, int device, uint64_t until) {
  for (sim_queue *queue = sim_queues; queue; queue = queue->next) {
    bool meant = context ? (const void *)queue->context == context : queue->device == device;
    if (meant && queue->head && queue->head->sequence <= until) return true;
  }
  return false;
}

CUresult sim_queue_wait_context(CUcontext context) {
  uint64_t id = context->id, until = queue_sequence;
  int device = context->device;
  while (queue_context_busy(context, device, until)) sim_wait_changed(0);
  sim_pool_synchronized(device);
  if (sim_call_lost()) return sim_call_lost();
  return sim_context_is_live(context) && context->id == id ? context->sticky : CUDA_SUCCESS;
}

CUresult sim_queue_wait_device(int device) {
  uint64_t until = queue_sequence;
  while (queue_context_busy(NULL, device, until)) sim_wait_changed(0);
  sim_pool_synchronized(device);
  return sim_call_lost();
}

uint64_t sim_queue_pending(void) {
  uint64_t count = 0;
  for (sim_queue *queue = sim_queues; queue; queue = queue->next)
    for (sim_op *op = queue->head; op; op = op->next) count++;
  return count;
}

uint64_t sim_queue_newest(void) { return queue_next_id - 1; }

void sim_queue_hold(uint64_t id, bool held) {
  if (!id) queue_all_held = held;
  for (sim_queue *queue = sim_queues; queue; queue = queue->next)
    if (!id || queue->id == id) queue->held = id ? held : false;
  queue_steps = 0;
  sim_tell_all();
}

void sim_queue_allow(uint64_t steps) {
  queue_steps += steps;
  sim_tell_all();
}

static bool queue_is_held(const sim_queue *queue) { return queue->held || queue_all_held; }

bool sim_queue_may_begin(const sim_queue *queue) {
  const sim_op *op = queue->head;
  if (queue_is_held(queue) && !queue_steps) return false;
  if ((op->ready && !op->ready(op)) || queue_is_behind(queue, op->sequence)) return false;
  if (queue_is_held(queue)) queue_steps--;
  return true;
}

static bool queue_runnable(const sim_queue *queue, bool on_host, int64_t now, int64_t *again) {
  const sim_op *op = queue->head;
  if (!op || queue->busy || op->on_host != on_host) return false;
  if (queue_is_held(queue) && !queue_steps) return false;
  int64_t look = op->due_ns > now ? op->due_ns : 0;
  if (!look && op->ready && !op->ready(op)) {
    if (!op->polled) return false;
    look = now + 1000000;
  }
  if (look) {
    if (!*again || look < *again) *again = look;
    return false;
  }
  return !queue_is_behind(queue, op->sequence);
}

sim_op *sim_queue_pick(bool on_host, sim_queue **queue_out, int64_t *again_out) {
  sim_queue *chosen = NULL;
  uint64_t found = 0;
  int64_t now = sim_now_ns();
  *again_out = 0;
  if (sim_link_is_on()) return NULL; /* who waits does the work */
  for (sim_queue *queue = sim_queues; queue; queue = queue->next)
    if (queue_runnable(queue, on_host, now, again_out) && sim_script_random() % ++found == 0) chosen = queue;
  if (!chosen) return NULL;
  if (queue_steps && queue_is_held(chosen)) queue_steps--;
  chosen->busy = true;
  *queue_out = chosen;
  return chosen->head;
}

void sim_queue_finish(sim_queue *queue, CUresult result) {
  sim_op *op = queue->head;
  queue->head = op->next;
  if (!queue->head) queue->tail = NULL;
  queue->done = op->sequence;
  queue->busy = false;
  if (result && sim_context_is_live(queue->context) && queue->context->id == queue->context_id)
    queue->context->sticky = result;
  queue_ops[op->on_host]--;
  if (op->settle) op->settle(op, result);
  free(op);
  pthread_cond_broadcast(&sim_changed);
  for (int i = 0; i < 2; i++)
    if (queue_ops[i] && !sim_link_is_on()) pthread_cond_broadcast(&sim_work[i]);
  queue_free_if_over(queue);
}

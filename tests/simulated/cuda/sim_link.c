#include "tests/simulated/cuda/sim_link.h"

#include <stddef.h>
#include <string.h>

#include "tests/simulated/cuda/sim_call.h"
#include "tests/simulated/cuda/sim_control.h"
#include "tests/simulated/cuda/sim_worker.h"

enum { LINK_LINES = 1 << 16 };

static gm__link_model link_model;
static gm__link_entry link_lines[LINK_LINES];
static bool link_on, link_busy;

static sim_op *link_op_of(const gm__link_op *link) { return (sim_op *)((char *)link - offsetof(sim_op, link)); }
static sim_queue *link_queue_of(gm__link_lane *lane) { return (sim_queue *)((char *)lane - offsetof(sim_queue, lane)); }

static bool link_gate(const gm__link_op *link) { return sim_queue_may_begin(link_queue_of(link->lane)); }

bool sim_link_is_on(void) { return link_on; }
int64_t sim_link_now_ns(void) { return link_on ? (int64_t)link_model.now : sim_now_ns(); }

bool sim_link_set(const char *spec) {
  gm__link_model model;
  const bool on = *spec && strcmp(spec, "off") != 0;
  if (on && (sim_queue_pending() || gm__link_read(spec, &model))) return false;
  link_on = on;
  if (on) {
    link_model = model;
    link_model.gate = link_gate;
    link_model.journal = link_lines;
    link_model.capacity = LINK_LINES;
    for (sim_queue *queue = sim_queues; queue; queue = queue->next) sim_link_open(queue);
  }
  sim_tell_all(); /* what is left is the workers' again */
  return true;
}

void sim_link_open(sim_queue *queue) {
  if (link_on) gm__link_lane_open(&link_model, &queue->lane);
}

void sim_link_close(sim_queue *queue) {
  if (link_on) gm__link_lane_close(&link_model, &queue->lane);
}

void sim_link_add(sim_queue *queue, sim_op *op) { gm__link_submit(&link_model, &queue->lane, &op->link); }

bool sim_link_step(uint64_t limit) {
  if (!link_on || link_busy) return false;
  gm__link_op *ended = gm__link_next(&link_model, limit);
  if (!ended) return false;
  sim_queue *queue = link_queue_of(ended->lane);
  queue->busy = link_busy = true;
  sim_worker_do(link_op_of(ended), queue);
  link_busy = false;
  return true;
}

void sim_link_pass(uint64_t ns) {
  const uint64_t limit = gm__link_later(link_model.now, ns);
  while (sim_link_step(limit)) {}
  if (link_on && !link_busy) gm__link_reach(&link_model, limit);
}

void sim_link_poll(void) {
  if (link_on) sim_link_pass(link_model.poll_ns);
}

void sim_link_touch(const sim_op *op, uint64_t at, uint64_t bytes, bool writes) {
  if (link_on) gm__link_touch(&link_model, &op->link, at, bytes, writes);
}

bool sim_link_use(uint64_t at, uint64_t bytes, bool writes) {
  return !link_on || gm__link_use(&link_model, at, bytes, writes);
}

uint64_t sim_link_early(void) { return link_on ? link_model.early : 0; }

__attribute__((visibility("default"))) uint64_t simCudaJournal(gm__link_entry *out, uint64_t capacity) {
  pthread_mutex_lock(&sim_lock);
  const uint64_t written = link_on ? gm__link_copy_journal(&link_model, out, capacity) : 0;
  pthread_mutex_unlock(&sim_lock);
  return written;
}

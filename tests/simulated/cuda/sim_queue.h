/* A stream's work: operations kept in order, executed late by a worker thread, at random among streams. Legacy default
 * streams wait for the blocking streams of their context and these wait for them. Wants the lock, but for `run`. */
#ifndef GM_TESTS_SIMULATED_CUDA_SIM_QUEUE_H
#define GM_TESTS_SIMULATED_CUDA_SIM_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

#include "backends/shared/link_model.h"
#include "tests/simulated/cuda/sim_cuda_api.h"

typedef struct sim_queue sim_queue;
typedef struct sim_capture sim_capture;

typedef struct sim_op sim_op;
struct sim_op {
  sim_op *next;
  size_t bytes; /* of the whole operation, for copies of it */
  uint64_t sequence;
  int64_t due_ns;
  CUresult (*run)(sim_op *op, sim_queue *queue); /* without the lock; NULL: nothing to do */
  void (*settle)(sim_op *op, CUresult result);   /* with the lock, also when dropped; NULL: nothing to let go of */
  bool (*ready)(const sim_op *op);               /* NULL: always */
  bool on_host;                                  /* for the thread of host functions */
  bool polled;                                   /* `ready` changes without word (another process) */
  gm__link_op link;                              /* what it is for the link model */
};

struct sim_queue {
  sim_queue *next;
  CUcontext context;
  uint64_t context_id;
  int device;
  uint64_t id;
  unsigned flags;
  int priority;
  bool legacy, per_thread, busy, held, closed;
  unsigned waiters;
  sim_op *head, *tail;
  uint64_t last, done; /* sequence numbers */
  sim_capture *capture;
  uint64_t captured; /* operations captured on it */
  bool unjoined;
  gm__link_lane lane; /* of the link model */
};

extern sim_queue *sim_queues; /* all of them */

/* NULL: out of host memory. */
sim_queue *sim_queue_create(CUcontext context, unsigned flags, int priority);

/* Its work is still done; it goes when that is. */
void sim_queue_close(sim_queue *queue);

/* A zeroed operation of `bytes` for sim_queue_add, NULL when there is no memory. */
void *sim_op_create(size_t bytes);

/* Takes `op`, also on failure. In a capture it is recorded instead. */
CUresult sim_queue_add(sim_queue *queue, sim_op *op);

/* Wait for what was added up to now; the answer is the context's sticky error. */
CUresult sim_queue_wait(sim_queue *queue);
CUresult sim_queue_wait_device(int device);
CUresult sim_queue_wait_context(CUcontext context);

uint64_t sim_queue_pending(void);

/* The number of the stream that was made last. */
uint64_t sim_queue_newest(void);

/* Hold the queue of this id (0: all), or let go; `steps` operations may still be done. */
void sim_queue_hold(uint64_t id, bool held);
void sim_queue_allow(uint64_t steps);

/* For the link model: may the first operation begin? A step that allows it is used up. */
bool sim_queue_may_begin(const sim_queue *queue);

/* For the worker: an operation whose turn it is, its queue marked busy. Otherwise NULL, and when to look again (0:
 * when told). */
sim_op *sim_queue_pick(bool on_host, sim_queue **queue_out, int64_t *again_out);
void sim_queue_finish(sim_queue *queue, CUresult result);

#endif

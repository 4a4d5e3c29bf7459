#include "tests/simulated/cuda/sim_worker.h"

#include <signal.h>
#include <stdint.h>

#include "tests/simulated/cuda/sim_call.h"
#include "tests/simulated/cuda/sim_context.h"

static _Thread_local bool worker_is_current;

bool sim_worker_is_current(void) { return worker_is_current; }

/* After a sticky error nothing is executed any more. */
static bool worker_drops(const sim_queue *queue) {
  if (sim_call_lost()) return true;
  return sim_context_is_live(queue->context) && queue->context->id == queue->context_id && queue->context->sticky;
}

void sim_worker_do(sim_op *op, sim_queue *queue) {
  if (!op->run || worker_drops(queue)) {
    sim_queue_finish(queue, CUDA_SUCCESS);
    return;
  }
  const bool was_current = worker_is_current;
  worker_is_current = true;
  pthread_mutex_unlock(&sim_lock);
  CUresult result = op->run(op, queue);
  pthread_mutex_lock(&sim_lock);
  worker_is_current = was_current;
  sim_queue_finish(queue, result);
}

static void *worker_main(void *on_host) {
  worker_is_current = true;
  pthread_mutex_lock(&sim_lock);
  while (!sim_call_exiting()) {
    sim_queue *queue = NULL;
    int64_t again = 0;
    sim_op *op = sim_queue_pick(on_host != NULL, &queue, &again);
    if (op) sim_worker_do(op, queue);
    if (!op) sim_wait_work(on_host != NULL, again);
  }
  pthread_mutex_unlock(&sim_lock);
  return NULL;
}

static bool worker_start_one(void *on_host) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t thread;
  int failed = pthread_create(&thread, &attributes, worker_main, on_host);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  pthread_attr_destroy(&attributes);
  return !failed;
}

bool sim_worker_start(void) {
  static bool started;
  static char host;
  if (started) return true;
  started = worker_start_one(NULL) && worker_start_one(&host);
  return started;
}

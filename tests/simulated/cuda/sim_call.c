#include "tests/simulated/cuda/sim_call.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "tests/simulated/cuda/sim_capture.h"
#include "tests/simulated/cuda/sim_context.h"
#include "tests/simulated/cuda/sim_link.h"
#include "tests/simulated/cuda/sim_script.h"
#include "tests/simulated/cuda/sim_symbol.h"
#include "tests/simulated/cuda/sim_worker.h"

pthread_mutex_t sim_lock = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t sim_changed, sim_work[2];

static atomic_bool call_exiting;
static atomic_int call_pid; /* 0 before cuInit */
static uint64_t call_counts[SIM_ID_COUNT];
static uint64_t call_total;
static uint64_t call_dropped;
static CUresult call_lost;

static void call_exit(void) { atomic_store(&call_exiting, true); }

/* The condition's clock can only be set at run time. */
/* A test's forked child asks the script what was called: it must not find the lock held by a thread that it has not. */
static void call_before_fork(void) { pthread_mutex_lock(&sim_lock); }
static void call_after_fork(void) { pthread_mutex_unlock(&sim_lock); }

__attribute__((constructor)) static void call_setup(void) {
  pthread_condattr_t attributes;
  pthread_condattr_init(&attributes);
  pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  pthread_cond_init(&sim_changed, &attributes);
  for (int i = 0; i < 2; i++) pthread_cond_init(&sim_work[i], &attributes);
  pthread_condattr_destroy(&attributes);
  sim_script_link = sim_link_set;
  sim_script_load();
}

CUresult sim_call_init(void) {
  if (sim_script_now.init_code) return (CUresult)sim_script_now.init_code;
  if (atomic_load(&call_pid)) return CUDA_SUCCESS;
  if (sim_script_now.devices == 0) return CUDA_ERROR_NO_DEVICE;
  atomic_store(&call_pid, (int)getpid());
  atexit(call_exit);
  pthread_atfork(call_before_fork, call_after_fork, call_after_fork);
  return CUDA_SUCCESS;
}

static CUresult call_context_rules(unsigned needs) {
  if (needs & SIM_CONTEXT) {
    CUcontext context = sim_context_current();
    if (!context) return CUDA_ERROR_INVALID_CONTEXT;
    if (!sim_context_is_live(context)) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    if (context->sticky) return context->sticky;
  }
  bool on_device = needs & (SIM_CONTEXT | SIM_VMM | SIM_POOLS);
  if (!on_device) return CUDA_SUCCESS;
  sim_script_now.lost_done++;
  if (sim_script_now.lost_after && sim_script_now.lost_done > sim_script_now.lost_after && !call_lost)
    sim_call_lose((CUresult)sim_script_now.lost_code);
  return call_lost;
}

static CUresult call_rules(sim_id id) {
  unsigned needs = sim_symbols[id].needs;
  call_counts[id]++;
  call_total++;
  if (needs != SIM_FREE && !atomic_load(&call_pid)) return CUDA_ERROR_NOT_INITIALIZED;
  if (sim_symbols[id].since > sim_script_now.version) {
    call_dropped++;
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  if (needs & sim_script_now.without) return CUDA_ERROR_NOT_SUPPORTED;
  bool sticky = false;
  CUresult scripted = sim_script_failure(sim_symbols[id].name, &sticky);
  if (scripted && sticky) sim_call_lose(scripted);
  if (scripted) return scripted;
  CUresult result = call_context_rules(needs);
  if (!result && (needs & SIM_UNSAFE)) result = sim_capture_forbids_unsafe();
  return result;
}

/* A real driver's calls open, read and wait: a thread that was cancelled may end in each of them. */
CUresult sim_enter(sim_id id) {
  pthread_testcancel();
  if (atomic_load(&call_exiting)) {
    if (sim_script_now.crash_after_exit) abort();
    return CUDA_ERROR_DEINITIALIZED;
  }
  if (sim_worker_is_current()) return CUDA_ERROR_NOT_PERMITTED;
  int pid = atomic_load(&call_pid);
  if (pid && pid != (int)getpid()) return CUDA_ERROR_NOT_INITIALIZED;
  pthread_mutex_lock(&sim_lock);
  CUresult result = call_rules(id);
  if (result) pthread_mutex_unlock(&sim_lock);
  return result;
}

CUresult sim_leave(CUresult result) {
  pthread_mutex_unlock(&sim_lock);
  return result;
}

uint64_t sim_call_count(sim_id id) { return call_counts[id]; }
uint64_t sim_call_total(void) { return call_total; }
uint64_t sim_call_dropped(void) { return call_dropped; }
CUresult sim_call_lost(void) { return call_lost; }
bool sim_call_exiting(void) { return atomic_load(&call_exiting); }

void sim_call_lose(CUresult code) {
  call_lost = code;
  sim_tell_all();
}

void sim_call_reset_counts(void) {
  for (int id = 0; id < SIM_ID_COUNT; id++) call_counts[id] = 0;
  call_total = call_dropped = 0;
}

int64_t sim_now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void call_wait(pthread_cond_t *told, int64_t until_ns) {
  if (!until_ns) {
    pthread_cond_wait(told, &sim_lock);
    return;
  }
  struct timespec until = {.tv_sec = until_ns / 1000000000, .tv_nsec = until_ns % 1000000000};
  pthread_cond_timedwait(told, &sim_lock, &until);
}

/* With a link model the waiting thread does the work itself, as far as it has to. The work of other threads and
 * processes is looked for again. */
void sim_wait_changed(int64_t until_ns) {
  if (sim_link_step(UINT64_MAX)) return;
  if (sim_link_is_on() && !until_ns) until_ns = sim_now_ns() + 1000000;
  call_wait(&sim_changed, until_ns);
}

void sim_wait_work(bool on_host, int64_t until_ns) { call_wait(&sim_work[on_host], until_ns); }

void sim_tell_all(void) {
  pthread_cond_broadcast(&sim_changed);
  for (int i = 0; i < 2; i++) pthread_cond_broadcast(&sim_work[i]);
}

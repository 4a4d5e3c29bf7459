/* The beginning and the end of every entry point: one lock over all state, the count of calls, the script's failures.
 * The rules that hold for all are here, too: initialised, context current, not lost, not in a capture, not after exit
 * or fork. */
#ifndef GM_TESTS_SIMULATED_CUDA_SIM_CALL_H
#define GM_TESTS_SIMULATED_CUDA_SIM_CALL_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "tests/simulated/cuda/sim_cuda_api.h"

enum {
  SIM_FREE = 0, /* works before cuInit */
  SIM_INIT = 1,
  SIM_CONTEXT = 1 << 1,
  SIM_UNSAFE = 1 << 2, /* forbidden while a stream is captured */
  SIM_POOLS = 1 << 3,  /* groups that a script can take away */
  SIM_VMM = 1 << 4,
  SIM_PEER = 1 << 5,
  SIM_HOSTREG = 1 << 6,
  SIM_MANAGED = 1 << 7,
  SIM_IPC = 1 << 8
};

typedef enum sim_id {
#define SIM_SYMBOL(name, since, needs) sim_id_##name,
#include "tests/simulated/cuda/sim_symbols.def"
  SIM_ID_COUNT
} sim_id;

extern pthread_mutex_t sim_lock;
extern pthread_cond_t sim_changed; /* told whenever work was done; the calls that wait are woken */
extern pthread_cond_t
    sim_work[2]; /* one of the device's worker, one of that for host functions: there may be work for it */

/* CUDA_SUCCESS: the lock is held and sim_leave must follow. Anything else: the answer of the call, nothing is held. */
CUresult sim_enter(sim_id id);

/* Gives the lock back; returns `result`. */
CUresult sim_leave(CUresult result);

/* The following want the lock. */
CUresult sim_call_init(void);
uint64_t sim_call_count(sim_id id);
uint64_t sim_call_total(void);
uint64_t sim_call_dropped(void); /* calls of entry points that the scripted version does not have */
CUresult sim_call_lost(void);    /* 0: not lost */
void sim_call_lose(CUresult code);
void sim_call_reset_counts(void);

bool sim_call_exiting(void);
int64_t sim_now_ns(void);
void sim_wait_changed(int64_t until_ns); /* 0: without end */
void sim_wait_work(bool on_host, int64_t until_ns);
void sim_tell_all(void); /* something else changed: everybody looks again */

#endif

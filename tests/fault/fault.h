/* Faults on demand: the N-th call of one driver entry, or the N-th request for host memory, of one run fails. One
 * thread arms, runs and looks; drivers' threads may call in between. */
#ifndef GM_TESTS_FAULT_FAULT_H
#define GM_TESTS_FAULT_FAULT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "gm/context.h"

enum { FAULT_ENTRIES_MAX = 128 };

/* The entries of one driver's symbol table, wrapped. */
typedef struct fault_driver {
  const char *backend;
  unsigned count;
  const char *const *names;
  const bool *can_fail;
  const int32_t *codes; /* failures to play, in turn; ended by 0 */
  int32_t lost;         /* what every call answers once the device is lost */
  void *(*wrap)(const char *symbol, void *real);
  atomic_uint calls[FAULT_ENTRIES_MAX];
  unsigned opened[FAULT_ENTRIES_MAX]; /* of `calls`: what opening took (fault_opened) */
  atomic_uint all;                    /* calls that can fail */
  atomic_long live;                   /* objects made less objects given back */
} fault_driver;

/* NULL where the backend was not built. */
extern fault_driver *const fault_cpu, *const fault_cuda, *const fault_hip, *const fault_opencl, *const fault_vulkan;
fault_driver *fault_driver_of(const char *backend);

/* The faults of the next run; everything zero: nothing. */
typedef struct fault_plan {
  const fault_driver *driver;
  unsigned entry;
  unsigned call; /* from 1; 0: none */
  int32_t code;
  unsigned host_call; /* from 1; 0: none */
  unsigned lost_call; /* from this call on, counted over all entries, the device is lost; 0: never */
} fault_plan;

extern fault_plan fault_now;

/* Zero the counters of all drivers and of host memory. */
void fault_reset(void);

/* The session is open: what was called until now is the same in each scenario that opens like this. */
void fault_opened(void);

/* In a wrapper: counts the call; true when it is to fail with fault_now.code. */
bool fault_hits(fault_driver *driver, unsigned entry);

/* Services that count, and fail on plan. */
extern const gm_services fault_services;
extern atomic_uint fault_host_calls;
extern unsigned fault_host_opened; /* of these: what opening took */
extern atomic_llong fault_host_live;

/* A gm_symbol_hook. */
void *fault_hook(void *user, const char *backend, const char *symbol, void *real);

#endif

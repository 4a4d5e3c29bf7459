/* The settings that the environment and simCudaControl make for the simulated driver. tests/simulated/README.md lists
 * the variables.
 */
#ifndef GM_TESTS_SIMULATED_CUDA_SIM_SCRIPT_H
#define GM_TESTS_SIMULATED_CUDA_SIM_SCRIPT_H

#include <stdbool.h>
#include <stdint.h>

#include "tests/simulated/cuda/sim_cuda_api.h"

enum { SIM_MAX_DEVICES = 64 };

typedef enum sim_meminfo { SIM_INFO_TRUE, SIM_INFO_FAIL, SIM_INFO_ABOVE, SIM_INFO_ZERO, SIM_INFO_OOM } sim_meminfo;

typedef struct sim_script {
  int devices;
  uint64_t total[SIM_MAX_DEVICES];
  uint64_t others[SIM_MAX_DEVICES];
  uint64_t fragment;   /* largest piece that can be had; 0: no bound */
  uint64_t oom_after;  /* device allocations that succeed; 0: no bound */
  uint64_t oom_done;   /* since oom_after was set */
  uint64_t pinned;     /* bytes of pinned host memory that can be had; 0: no bound */
  uint64_t lost_after; /* calls until the device is lost; 0: never */
  uint64_t lost_done;  /* since lost_after was set */
  int lost_code;
  uint64_t latency_us;    /* how late work begins at most, mostly */
  uint64_t copy_mbps;     /* 0: as fast as it goes */
  uint64_t context_bytes; /* device memory that a context takes */
  uint64_t granularity, exportable_granularity;
  int version;
  unsigned without; /* SIM_POOLS ... that are missing */
  bool integrated, mig, crash_after_exit, free_does_not_wait;
  bool read_only_register; /* cuMemHostRegister knows READ_ONLY */
  bool wsl;                /* access to memory that is meant for RDMA is refused, though advertised */
  bool iommu;              /* the machine has one, for which CUDA 13.5 and newer refuse peers */
  bool peer_silent;        /* copies between devices succeed and do nothing */
  bool hostile_names, hostile_null, hostile_granularity, hostile_pci;
  int hostile_count; /* what cuDeviceGetCount says; 0: the truth */
  sim_meminfo meminfo;
  int init_code;
} sim_script;

/* Takes LINK, the text of the link model; NULL: there is no work to model. */
extern bool (*sim_script_link)(const char *spec);

extern sim_script sim_script_now; /* under sim_lock, but for the flags read at exit */

/* Read the environment afresh; also forgets all failures and restarts the random numbers. */
void sim_script_load(void);

/* One setting, named as its variable without SIMCUDA_. False: there is none of that name, or the value is wrong. */
bool sim_script_set(const char *name, const char *value);

/* "symbol:n[:code[:sticky]],...": n counts calls from now on, * is every call. */
bool sim_script_add_failures(const char *text);
void sim_script_clear_failures(void);

/* The code that this call must answer, CUDA_SUCCESS for none. */
CUresult sim_script_failure(const char *symbol, bool *sticky);

/* The next number of the seeded sequence. */
uint64_t sim_script_random(void);

#endif

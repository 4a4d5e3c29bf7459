/* Memory of a device: a piece of its arena (one memfd per device), or a memfd of its own. It is mapped for the
 * simulator alone, at a place that no one is told. Wants the lock. */
#ifndef GM_TESTS_SIMULATED_CUDA_SIM_PHYS_H
#define GM_TESTS_SIMULATED_CUDA_SIM_PHYS_H

#include <stdbool.h>
#include <stdint.h>

#include "tests/simulated/cuda/sim_cuda_api.h"

typedef struct sim_phys {
  unsigned references;
  int device; /* -1: host memory, not charged */
  uint64_t bytes;
  uint64_t charged;
  unsigned char *host;
  int file;
  uint64_t at; /* in the file */
  bool in_arena;
} sim_phys;

/* Charged to the device. `own_file`: for memory that is handed to other processes. */
CUresult sim_phys_create(int device, uint64_t bytes, bool own_file, sim_phys **out);

/* Memory of another process, not charged. Takes `file`, also on failure. */
CUresult sim_phys_open(int device, int file, uint64_t at, uint64_t bytes, sim_phys **out);

void sim_phys_retain(sim_phys *phys);
void sim_phys_release(sim_phys *phys);

/* Fill the first 4 MiB with bytes that no one wrote. */
void sim_phys_poison(sim_phys *phys, unsigned char byte);

/* A file made by sim_phys_create with own_file: its device and size. */
bool sim_phys_describe(int file, int *device_out, uint64_t *bytes_out);

uint64_t sim_phys_count(void);

#endif

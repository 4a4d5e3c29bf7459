/* The place of every address that a program was told, device or host. Device addresses lie in one reserved range
 * without access, so that the host faults when it follows one. Wants the lock, but for sim_range_copy and _fill. */
#ifndef GM_TESTS_SIMULATED_CUDA_SIM_RANGE_H
#define GM_TESTS_SIMULATED_CUDA_SIM_RANGE_H

#include <stdbool.h>
#include <stdint.h>

#include "tests/simulated/cuda/sim_phys.h"
#include "tests/simulated/cuda/sim_script.h"

typedef enum sim_kind { SIM_DEVICE, SIM_POOLED, SIM_MAPPED, SIM_OPENED, SIM_HOST, SIM_REGISTERED, SIM_SHARED } sim_kind;

typedef struct sim_range {
  uint64_t at, bytes;
  sim_kind kind;
  sim_phys *phys; /* NULL: host memory, to be found at its address */
  uint64_t phys_at;
  CUcontext context; /* NULL: of no context */
  int device;
  unsigned flags;
  unsigned references; /* of an opened handle */
  uint64_t id;
  unsigned char access[SIM_MAX_DEVICES]; /* of mapped memory */
  CUmemoryPool pool;
  uint64_t freed_on; /* queue id, of pooled memory that was freed there */
  uint64_t frees;    /* of pooled memory: how often it was freed */
  bool freed, free_done;
  CUmemGenericAllocationHandle handle;
} sim_range;

/* Addresses for `bytes` of device memory. */
bool sim_range_claim(uint64_t bytes, uint64_t alignment, uint64_t *at_out);
bool sim_range_claim_at(uint64_t at, uint64_t bytes);
void sim_range_unclaim(uint64_t at);

/* A new entry; `like` is copied and gets an id. NULL: out of host memory. Nothing may lie there. */
sim_range *sim_range_add(const sim_range *like);
void sim_range_remove(sim_range *range); /* releases phys */

sim_range *sim_range_find(uint64_t address);  /* the one that contains it, NULL: none */
sim_range *sim_range_after(uint64_t address); /* the first that ends behind it */
bool sim_range_is_free(uint64_t at, uint64_t bytes);

/* Is the address one of a device (else of the host)? */
bool sim_range_is_device(uint64_t address);

/* May an operation name these bytes: all known, or host memory? */
bool sim_range_ok(uint64_t at, uint64_t bytes);

/* Known to the driver, so that copies are truly asynchronous? */
bool sim_range_is_pinned(uint64_t at, uint64_t bytes);

/* Device memory with addresses of its own: DEVICE and POOLED. */
CUresult sim_range_create(sim_kind kind, uint64_t bytes, int device, CUcontext context, sim_range **out);
void sim_range_destroy(sim_range *range); /* poisons; gives the addresses back */

void sim_range_drop_context(CUcontext context);
uint64_t sim_range_count(sim_kind kind);
uint64_t sim_range_bytes(sim_kind kind);

/* For `device`, without the lock; CUDA_ERROR_ILLEGAL_ADDRESS where nothing lies or access is missing. */
CUresult sim_range_copy(int device, uint64_t to, uint64_t from, uint64_t bytes);
CUresult sim_range_fill(int device, uint64_t to, uint32_t value, unsigned width, uint64_t count);

/* Host view of device memory for a kernel; the piece is kept until sim_phys_release of `*phys_out` (may be NULL). */
void *sim_range_pin(int device, uint64_t at, uint64_t *bytes, sim_phys **phys_out);

#endif

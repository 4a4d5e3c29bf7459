/* The questions that tests may ask of the simulated libcuda.so.1 beside the CUDA API; looked up with dlsym. */
#ifndef GM_TESTS_SIMULATED_CUDA_SIM_CONTROL_H
#define GM_TESTS_SIMULATED_CUDA_SIM_CONTROL_H

#include <stddef.h>
#include <stdint.h>

#include "backends/shared/link_model.h"

/* One command in words (tests/simulated/README.md has the list); its answer goes to `reply` (may be NULL), cut to
 * `capacity`, always terminated. 0: done; 1: unknown command or bad argument; 2: "leaks" found some. Thread-safe. */
typedef int sim_control_function(const char *command, char *reply, size_t capacity);

/* A host view of `bytes` of device memory at `address`, NULL where they do not lie in one piece. */
typedef void *sim_view(void *user, uint64_t address, uint64_t bytes);

typedef struct sim_launch {
  unsigned grid[3], block[3];
  unsigned shared_bytes;
  const void *const *arguments; /* of the sizes that were registered */
  sim_view *view;
  void *view_user;
} sim_launch;

/* The kernel as a C function, run once per launch; 0: done, else the CUresult that the launch ends with. */
typedef int sim_kernel(const sim_launch *launch);

/* From now on modules that have an entry of this name find it. `sizes`: bytes of each argument. Names are kept, not
 * copied. 0: done; 1: too many, or a bad argument. */
typedef int sim_register_kernel_function(const char *name, sim_kernel *kernel, const size_t *sizes, size_t count);

/* The newest lines of the link model's journal, oldest first, at most `capacity`. Returns how many were ever written.
 */
typedef uint64_t sim_journal_function(gm__link_entry *out, uint64_t capacity);

extern sim_control_function simCudaControl;
extern sim_journal_function simCudaJournal;
extern sim_register_kernel_function simCudaRegisterKernel;

#endif

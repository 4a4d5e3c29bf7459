#include "tests/simulated/cuda/sim_kernels.h"

#include <string.h>

#include "tests/simulated/cuda/sim_module.h"
#include "tests/simulated/cuda/sim_programs.h"

static uint64_t kernels_word(const sim_launch *launch, int index) {
  uint64_t word = 0;
  memcpy(&word, launch->arguments[index], sizeof word);
  return word;
}

/* sim_add_u32(pointer, count, value): adds to every word. */
static int kernels_add_u32(const sim_launch *launch) {
  uint64_t count = kernels_word(launch, 1);
  uint32_t value = 0, *words = launch->view(launch->view_user, kernels_word(launch, 0), count * sizeof *words);
  if (!words) return CUDA_ERROR_ILLEGAL_ADDRESS;
  memcpy(&value, launch->arguments[2], sizeof value);
  for (uint64_t i = 0; i < count; i++) words[i] += value;
  return CUDA_SUCCESS;
}

void sim_kernels_register(void) {
  static bool done;
  static const size_t add_sizes[] = {8, 8, 4};
  if (done) return;
  done = sim_module_register("sim_add_u32", kernels_add_u32, add_sizes, 3);
  sim_programs_register();
}

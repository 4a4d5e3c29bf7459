/* gm's own programs, played by their text compiled as C, thread by thread. Wants the lock. */
#ifndef GM_TESTS_SIMULATED_CUDA_SIM_PROGRAMS_H
#define GM_TESTS_SIMULATED_CUDA_SIM_PROGRAMS_H

void sim_programs_register(void);

#endif

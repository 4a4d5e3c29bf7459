/* Pieces taken from a range of numbers, first fit, so that what was given back is used again at once. */
#ifndef GM_TESTS_SIMULATED_CUDA_SIM_SPAN_H
#define GM_TESTS_SIMULATED_CUDA_SIM_SPAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct sim_span {
  uint64_t at, bytes;
} sim_span;

typedef struct sim_span_list {
  uint64_t begin, end;
  sim_span *spans; /* in order */
  size_t count, capacity;
} sim_span_list;

bool sim_span_take(sim_span_list *list, uint64_t bytes, uint64_t alignment, uint64_t *at_out);

/* False: something of it is taken already, or it lies outside. */
bool sim_span_take_at(sim_span_list *list, uint64_t at, uint64_t bytes);
void sim_span_give(sim_span_list *list, uint64_t at);

#endif

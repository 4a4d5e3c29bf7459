/* Helpers that the rules of all APIs share. They fill a draft of the answer. */
#ifndef GM_CORE_FIGURES_FIGURES_H
#define GM_CORE_FIGURES_FIGURES_H

#include "core/figures/memory_info.h"

/* True for a reply with both figures. An error, 0 of 0 and a missing number are no figures (rule D2). */
bool gm__figures_answered(const gm_raw_reply *reply);

/* The total of a reply; GM_UNKNOWN_BYTES where it has none. */
uint64_t gm__figures_total(const gm_raw_reply *reply);

void gm__figures_set_total(gm_memory_info *draft, uint64_t bytes, gm_figure_source source);

/* GM_UNKNOWN_BYTES makes the state unknown. */
void gm__figures_set_free(gm_memory_info *draft, uint64_t bytes, gm_figure_source source, gm_figure_state state);

/* Let the host's total, free and state stand for the device (rules D5, D15, and D9 for managed memory). */
void gm__figures_set_host(const gm__figures_input *input, gm_memory_info *draft);

/* Lower free to `bytes` (unknown: no bound). The state becomes estimated where that changes it. */
void gm__figures_bound_free(gm_memory_info *draft, uint64_t bytes, gm_figure_source source);

/* The sum; unknown where either part is. */
uint64_t gm__figures_sum(uint64_t a, uint64_t b);

/* Bytes that other processes hold on the card, as NVML counts them; GM_UNKNOWN_BYTES where one of them is unknown. */
uint64_t gm__figures_nvml_others(const gm_raw_figures *raw);

#endif

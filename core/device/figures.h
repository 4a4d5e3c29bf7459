/* The rules of each API, and what they share. Each function fills total, free, their sources and the state of a draft;
 * memory_info.c applies what holds for all of them. */
#ifndef GM_CORE_DEVICE_FIGURES_H
#define GM_CORE_DEVICE_FIGURES_H

#include "core/device/memory_info.h"

void gm__figures_cuda(const gm__figures_input *input, gm_memory_info *draft);
void gm__figures_hip(const gm__figures_input *input, gm_memory_info *draft);
void gm__figures_opencl(const gm__figures_input *input, gm_memory_info *draft);
void gm__figures_vulkan(const gm__figures_input *input, gm_memory_info *draft);

/* A reply with a total and a free figure that are figures: an error, 0 of 0 and a missing number are none (D2). */
bool gm__figures_answered(const gm_raw_reply *reply);

/* The total of a reply, GM_UNKNOWN_BYTES when it has none. */
uint64_t gm__figures_total(const gm_raw_reply *reply);

void gm__figures_set_total(gm_memory_info *draft, uint64_t bytes, gm_figure_source source);

/* GM_UNKNOWN_BYTES makes the state unknown. */
void gm__figures_set_free(gm_memory_info *draft, uint64_t bytes, gm_figure_source source, gm_figure_state state);

/* The host view stands for the device: its total and free, with its state (D5, D9 managed, D15). */
void gm__figures_set_host(const gm__figures_input *input, gm_memory_info *draft);

/* Lower free to `bytes` (unknown: no bound); the state becomes estimated if that bites. */
void gm__figures_bound_free(gm_memory_info *draft, uint64_t bytes, gm_figure_source source);

/* The sum, unknown if either is. */
uint64_t gm__figures_sum(uint64_t a, uint64_t b);

#endif

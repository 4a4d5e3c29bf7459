/* The rules of each API. Each function fills total, free, their sources and the state of a draft. memory_info.c applies
 * what holds for all APIs. */
#ifndef GM_CORE_FIGURES_FIGURES_RULES_H
#define GM_CORE_FIGURES_FIGURES_RULES_H

#include "core/figures/memory_info.h"

void gm__figures_cuda(const gm__figures_input *input, gm_memory_info *draft);
void gm__figures_hip(const gm__figures_input *input, gm_memory_info *draft);
void gm__figures_opencl(const gm__figures_input *input, gm_memory_info *draft);
void gm__figures_vulkan(const gm__figures_input *input, gm_memory_info *draft);

/* Sets free where no source has told it and the total is known. True: it did. */
bool gm__figures_estimate(const gm__figures_input *input, gm_memory_info *draft);

#endif

/* CUDA's error numbers, and what each means to gm. */
#ifndef GM_BACKENDS_CUDA_STATUS_H
#define GM_BACKENDS_CUDA_STATUS_H

#include "backends/shared/code_table.h"

extern const gm__code_table gm__cuda_codes;

#endif

/* Declares each entry of opencl_entries.def with the type that gm/backend.h gives it; its contract is there. */
#ifndef GM_BACKENDS_OPENCL_ENTRIES_H
#define GM_BACKENDS_OPENCL_ENTRIES_H

#include "backends/opencl/opencl_backend.h"

#define X(entry, function) __typeof__(*gm__opencl_backend.entry) function;
#include "backends/opencl/opencl_entries.def"
#undef X

#endif

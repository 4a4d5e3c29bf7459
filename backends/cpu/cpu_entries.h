/* Declares each entry of cpu_entries.def with the type that gm/backend.h gives it; its contract is there. */
#ifndef GM_BACKENDS_CPU_ENTRIES_H
#define GM_BACKENDS_CPU_ENTRIES_H

#include "backends/cpu/cpu_backend.h"

#define X(entry, function) __typeof__(*gm__cpu_backend.entry) function;
#include "backends/cpu/cpu_entries.def"
#undef X

#endif

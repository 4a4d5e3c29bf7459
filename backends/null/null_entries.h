/* Declares each entry of null_entries.def with the type that gm/backend.h gives it; its contract is there. */
#ifndef GM_BACKENDS_NULL_ENTRIES_H
#define GM_BACKENDS_NULL_ENTRIES_H

#include "backends/null/null_backend.h"

#define X(entry, function) __typeof__(*gm__null_backend.entry) function;
#include "backends/null/null_entries.def"
#undef X

#endif

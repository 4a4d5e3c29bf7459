/* Declares each entry of runtime_entries.def with the type that gm/backend.h gives it; its contract is there. */
#ifndef GM_BACKENDS_SHARED_RUNTIME_RUNTIME_ENTRIES_H
#define GM_BACKENDS_SHARED_RUNTIME_RUNTIME_ENTRIES_H

#include "gm/backend.h"

#define X(entry, function) __typeof__(*((const gm_backend_ops *)0)->entry) function;
#include "backends/shared/runtime/runtime_entries.def"
#undef X

#endif

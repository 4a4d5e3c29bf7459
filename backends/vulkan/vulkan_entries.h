/* Declares each entry of vulkan_entries.def with the type that gm/backend.h gives it; its contract is there. */
#ifndef GM_BACKENDS_VULKAN_ENTRIES_H
#define GM_BACKENDS_VULKAN_ENTRIES_H

#include "backends/vulkan/vulkan_backend.h"

#define X(entry, function) __typeof__(*gm__vulkan_backend.entry) function;
#include "backends/vulkan/vulkan_entries.def"
#undef X

#endif

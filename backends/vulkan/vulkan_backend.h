/* The border of the Vulkan backend: its table of entries. */
#ifndef GM_BACKENDS_VULKAN_BACKEND_H
#define GM_BACKENDS_VULKAN_BACKEND_H

#include "gm/backend.h"

extern const gm_backend_ops gm__vulkan_backend;

#endif

/* The backend "vulkan": its table, and nothing else. */
#ifndef GM_BACKENDS_VULKAN_BACKEND_H
#define GM_BACKENDS_VULKAN_BACKEND_H

#include "gm/backend.h"

extern const gm_backend_ops gm__vulkan_backend;

#endif

/* The host as a device: memory is pages, streams are worker queues. The oracle that other backends are held against. */
#ifndef GM_BACKENDS_CPU_CPU_BACKEND_H
#define GM_BACKENDS_CPU_CPU_BACKEND_H

#include "gm/backend.h"

extern const gm_backend_ops gm__cpu_backend;

#endif

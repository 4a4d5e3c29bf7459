/* The border of the CPU backend: the host as a device. Memory is pages, streams are worker queues. The tests compare
 * the other backends with this one. */
#ifndef GM_BACKENDS_CPU_CPU_BACKEND_H
#define GM_BACKENDS_CPU_CPU_BACKEND_H

#include "gm/backend.h"

extern const gm_backend_ops gm__cpu_backend;

#endif

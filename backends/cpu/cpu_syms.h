/* The calls of the system that the CPU backend makes about memory: cpu_syms.def is the list. No such call goes past
 * this table, so that a hook sees, and can fail, every one of them. */
#ifndef GM_BACKENDS_CPU_CPU_SYMS_H
#define GM_BACKENDS_CPU_CPU_SYMS_H

#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "gm/backend.h"

typedef struct gm__cpu_syms {
#define X(fault, result, symbol, parameters, arguments) result(*symbol) parameters;
#include "backends/cpu/cpu_syms.def"
#undef X
} gm__cpu_syms;

/* The system's, or what the host's hook puts in their place. UNAVAILABLE names one that the hook took away. */
gm_status gm__cpu_syms_load(const gm_backend_host *host, gm__cpu_syms *out, gm_error *err);

#endif

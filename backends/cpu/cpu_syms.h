/* The system calls about memory that the CPU backend makes. cpu_syms.def lists them. Every such call goes through this
 * table, so a hook sees every call and can make it fail. */
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

/* Fill the table with the system's calls, or with the hook's replacements. UNAVAILABLE names a call that the hook took
 * away. */
gm_status gm__cpu_syms_load(const gm_backend_host *host, gm__cpu_syms *out, gm_error *err);

#endif

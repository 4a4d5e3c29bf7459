/* Virtual memory: checks and physical memory, which both APIs have alike. VA ranges and mappings are each API's own:
 * HIP keeps released memory as long as the addresses are reserved. */
#ifndef GM_BACKENDS_SHARED_RUNTIME_RUNTIME_VMM_H
#define GM_BACKENDS_SHARED_RUNTIME_RUNTIME_VMM_H

#include "backends/shared/runtime/runtime.h"

/* Enter a device with virtual memory that works; NOT_SUPPORTED: it has none. */
gm_status gm__runtime_vmm_enter(gm__runtime_device *device, gm__runtime_scope *out, gm_error *err);

/* gm__runtime_vmm_enter for giving back, with *out_gone as gm__runtime_enter_release has it. */
gm_status gm__runtime_vmm_enter_release(gm__runtime_device *device, gm__runtime_scope *out, bool *out_gone,
                                        gm_error *err);

#endif

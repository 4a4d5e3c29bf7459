/* Memory that other processes see, by memfds. What arrives is another process's word and is checked: nothing that
 * could end this process when it is touched is taken. Entry 18. */
#ifndef GM_BACKENDS_CPU_CPU_SHARE_H
#define GM_BACKENDS_CPU_CPU_SHARE_H

#include "backends/cpu/cpu_device.h"

/* The bits of gm_memory_type.share_kinds. */
#define GM__CPU_SHARE_KINDS (1u << GM_SHARE_FD)

/* memory_alloc for params.share; NOT_SUPPORTED for other kinds than FD. */
gm_status gm__cpu_share_alloc(gm__cpu_device *device, const gm_memory_params *params, gm_memory *out, gm_error *err);

/* Was it made by gm__cpu_share_alloc or share_import? */
bool gm__cpu_share_is(const gm_memory *memory);

/* Gives back what either of them made; what failed is not to be tried again. */
gm_status gm__cpu_share_free(gm__cpu_device *device, const gm_memory *memory, gm_error *err);

gm_status gm__cpu_share_export(void *device, const gm_memory *memory, gm_share_kind kind, gm_shared *out,
                               gm_error *err);
gm_status gm__cpu_share_import(void *device, const gm_shared *shared, gm_memory *out, gm_error *err);
gm_status gm__cpu_share_close(void *device, const gm_memory *memory, gm_close_mode mode, gm_error *err);
gm_status gm__cpu_share_export_vmm(void *device, uint64_t handle, uint64_t bytes, gm_shared *out, gm_error *err);
gm_status gm__cpu_share_import_vmm(void *device, const gm_shared *shared, uint64_t *out_handle, gm_error *err);

#endif

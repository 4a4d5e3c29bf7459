/* Ordinary memory made of virtual memory, through a backend's own entries of groups 16 and 18: one physical allocation,
 * whole, in an address range of its own. So a driver that exports only what it makes that way has memory to export. A
 * table knows what there is. Thread-safe. */
#ifndef GM_CORE_BASE_VMM_MEMORY_H
#define GM_CORE_BASE_VMM_MEMORY_H

#include "core/base/map.h"
#include "core/base/thread.h"
#include "gm/backend.h"

typedef struct gm__vmm_memory {
  uint64_t address, bytes; /* whole granules */
  uint64_t handle;         /* of the physical memory */
} gm__vmm_memory;

typedef struct gm__vmm_table {
  const gm_services *services; /* borrowed */
  const gm_backend_ops *ops;   /* static */
  gm__mutex lock;              /* of what follows */
  gm__map memories;            /* address to a gm__vmm_memory */
} gm__vmm_table;

void gm__vmm_table_init(gm__vmm_table *table, const gm_services *services, const gm_backend_ops *ops);

/* The records of what was never given back, too; calls no driver. */
void gm__vmm_table_clear(gm__vmm_table *table);

/* Memory that can be exported as a descriptor, and what such a descriptor names. `handle` of *out is the address of the
 * whole. What the backend answers, OUT_OF_HOST_MEMORY. */
gm_status gm__vmm_table_make(gm__vmm_table *table, void *device, const gm_memory_params *params, gm_memory *out,
                             gm_error *err);
gm_status gm__vmm_table_import(gm__vmm_table *table, void *device, const gm_shared *shared, gm_memory *out,
                               gm_error *err);

/* GM_SHARE_FD of memory that was made here: NOT_SUPPORTED for any other. */
gm_status gm__vmm_table_export(gm__vmm_table *table, void *device, const gm_memory *memory, gm_shared *out,
                               gm_error *err);

/* Gives memory of the table back, whole, whatever fails; *out_found false: it is not of the table, nothing was done. */
gm_status gm__vmm_table_free(gm__vmm_table *table, void *device, const gm_memory *memory, bool *out_found,
                             gm_error *err);

#endif

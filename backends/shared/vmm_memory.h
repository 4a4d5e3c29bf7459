/* Ordinary memory made of virtual memory, through a backend's own entries of groups 16 and 18. Each is one physical
 * allocation in a VA range of its own. Some drivers export only such memory. A table holds all of it. Thread-safe. */
#ifndef GM_BACKENDS_SHARED_VMM_MEMORY_H
#define GM_BACKENDS_SHARED_VMM_MEMORY_H

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

/* Give back all records, also of memory that nobody gave back. Calls no driver. */
void gm__vmm_table_clear(gm__vmm_table *table);

/* Make memory that can be exported as a descriptor, or import such a descriptor. `handle` of *out is the address of the
 * whole. The status is the backend's, or OUT_OF_HOST_MEMORY. */
gm_status gm__vmm_table_make(gm__vmm_table *table, void *device, const gm_memory_params *params, gm_memory *out,
                             gm_error *err);
gm_status gm__vmm_table_import(gm__vmm_table *table, void *device, const gm_shared *shared, gm_memory *out,
                               gm_error *err);

/* Export memory of this table as GM_SHARE_FD. NOT_SUPPORTED for any other memory. */
gm_status gm__vmm_table_export(gm__vmm_table *table, void *device, const gm_memory *memory, gm_shared *out,
                               gm_error *err);

/* Give memory of the table back, whole, whatever fails. *out_found false: the memory is not of the table, and nothing
 * was done. */
gm_status gm__vmm_table_free(gm__vmm_table *table, void *device, const gm_memory *memory, bool *out_found,
                             gm_error *err);

#endif

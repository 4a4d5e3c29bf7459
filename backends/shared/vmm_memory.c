#include "backends/shared/vmm_memory.h"

#include "core/base/alloc.h"
#include "core/base/error.h"

/* Invariant: `memories` holds what is mapped. Nobody calls the driver under the lock. */

void gm__vmm_table_init(gm__vmm_table *table, const gm_services *services, const gm_backend_ops *ops) {
  *table = (gm__vmm_table){.services = services, .ops = ops};
  gm__mutex_init(&table->lock, GM__RANK_LEAF);
  gm__map_init(&table->memories, services);
}

static void vmm_record_discard(gm__vmm_table *table, gm__vmm_memory *record) {
  gm__release(table->services, record, sizeof *record);
}

void gm__vmm_table_clear(gm__vmm_table *table) {
  size_t cursor = 0;
  uint64_t address, record;
  while (gm__map_next(&table->memories, &cursor, &address, &record)) {
    vmm_record_discard(table, (gm__vmm_memory *)(uintptr_t)record);
  }
  gm__map_clear(&table->memories);
  gm__mutex_destroy(&table->lock);
}

static gm__vmm_memory *vmm_record_find(gm__vmm_table *table, uint64_t address, bool take) {
  uint64_t record = 0;
  gm__mutex_lock(&table->lock);
  if (take) {
    gm__map_remove(&table->memories, address, &record);
  } else {
    gm__map_find(&table->memories, address, &record);
  }
  gm__mutex_unlock(&table->lock);
  return (gm__vmm_memory *)(uintptr_t)record;
}

/* Reserve a VA range for the physical memory, map it and open it. */
static gm_status vmm_memory_place(const gm_backend_ops *ops, void *device, uint64_t align, gm__vmm_memory *memory,
                                  gm_error *err) {
  gm_status status = ops->vmm_reserve(device, memory->bytes, align, &memory->address, err);
  if (status != GM_OK) return status;
  status = ops->vmm_map(device, memory->address, memory->bytes, memory->handle, 0, err);
  if (status == GM_OK) {
    status = ops->vmm_access(device, memory->address, memory->bytes, err);
    if (status != GM_OK) ops->vmm_unmap(device, memory->address, memory->bytes, NULL);
  }
  if (status != GM_OK) ops->vmm_unreserve(device, memory->address, memory->bytes, GM_CLOSE_NORMAL, NULL);
  return status;
}

static gm_status vmm_memory_free(const gm_backend_ops *ops, void *device, const gm__vmm_memory *memory, gm_error *err) {
  const gm_status unmapped = ops->vmm_unmap(device, memory->address, memory->bytes, err);
  const gm_status destroyed = ops->vmm_destroy(device, memory->handle, memory->bytes, GM_CLOSE_NORMAL, err);
  const gm_status unreserved = ops->vmm_unreserve(device, memory->address, memory->bytes, GM_CLOSE_NORMAL, err);
  if (unmapped != GM_OK) return unmapped;
  return destroyed != GM_OK ? destroyed : unreserved;
}

static gm_status vmm_table_enter(gm__vmm_table *table, void *device, const gm__vmm_memory *memory, gm_error *err) {
  gm__vmm_memory *record = gm__alloc(table->services, sizeof *record);
  gm_status status = record ? GM_OK : GM_ERR_OUT_OF_HOST_MEMORY;
  if (record) {
    *record = *memory;
    gm__mutex_lock(&table->lock);
    status = gm__map_insert(&table->memories, memory->address, (uintptr_t)record);
    gm__mutex_unlock(&table->lock);
  }
  if (status == GM_OK) return GM_OK;
  vmm_memory_free(table->ops, device, memory, NULL);
  if (record) vmm_record_discard(table, record);
  return gm__fail(err, status, "vmm_create", "no host memory for the memory's record");
}

/* `memory` has its physical part. On failure this function gives it back. */
static gm_status vmm_table_finish(gm__vmm_table *table, void *device, uint64_t align, gm__vmm_memory *memory,
                                  gm_error *err) {
  const gm_status status = vmm_memory_place(table->ops, device, align, memory, err);
  if (status == GM_OK) return vmm_table_enter(table, device, memory, err);
  table->ops->vmm_destroy(device, memory->handle, memory->bytes, GM_CLOSE_NORMAL, NULL);
  return status;
}

static gm_status vmm_table_create(gm__vmm_table *table, void *device, const gm_memory_params *params,
                                  uint64_t *out_granule, gm__vmm_memory *out, gm_error *err) {
  const gm_vmm_props props = {.type = params->type, .shareable = true};
  uint64_t granule = 0;
  const gm_status status = table->ops->vmm_granularity(device, &props, &granule, err);
  if (status != GM_OK) return status;
  const uint64_t more = (granule - params->bytes % granule) % granule;
  if (more > UINT64_MAX - params->bytes) {
    return gm__fail(err, GM_ERR_ALLOCATION_TOO_LARGE, "vmm_create", "%llu bytes in whole granules of %llu",
                    (unsigned long long)params->bytes, (unsigned long long)granule);
  }
  out->bytes = params->bytes + more;
  *out_granule = granule;
  return table->ops->vmm_create(device, &props, out->bytes, &out->handle, err);
}

gm_status gm__vmm_table_make(gm__vmm_table *table, void *device, const gm_memory_params *params, gm_memory *out,
                             gm_error *err) {
  gm__vmm_memory memory = {0};
  uint64_t granule = 0;
  gm_status status = vmm_table_create(table, device, params, &granule, &memory, err);
  if (status != GM_OK) return status;
  status = vmm_table_finish(table, device, params->align > granule ? params->align : 0, &memory, err);
  if (status != GM_OK) return status;
  *out = (gm_memory){.handle = memory.address, .address = memory.address, .bytes = memory.bytes, .type = params->type};
  return GM_OK;
}

gm_status gm__vmm_table_import(gm__vmm_table *table, void *device, const gm_shared *shared, gm_memory *out,
                               gm_error *err) {
  gm__vmm_memory memory = {.bytes = shared->whole_bytes};
  if (shared->offset > shared->whole_bytes || shared->bytes > shared->whole_bytes - shared->offset) {
    return gm__bad_argument(err, "share_import", "`shared`: %llu bytes at %llu, of an allocation of %llu",
                            (unsigned long long)shared->bytes, (unsigned long long)shared->offset,
                            (unsigned long long)shared->whole_bytes);
  }
  gm_status status = table->ops->share_import_vmm(device, shared, &memory.handle, err);
  if (status == GM_OK) status = vmm_table_finish(table, device, 0, &memory, err);
  if (status != GM_OK) return status;
  *out = (gm_memory){
      .handle = memory.address, .address = memory.address + shared->offset, .bytes = shared->bytes, .wrapped = true};
  return GM_OK;
}

gm_status gm__vmm_table_export(gm__vmm_table *table, void *device, const gm_memory *memory, gm_shared *out,
                               gm_error *err) {
  const gm__vmm_memory *record = vmm_record_find(table, memory->handle, false);
  if (!record || memory->wrapped) {
    return gm__fail(err, GM_ERR_NOT_SUPPORTED, "share_export",
                    "only memory that was made to share as a descriptor, by us, can be exported as one");
  }
  const gm_status status = table->ops->share_export_vmm(device, record->handle, record->bytes, out, err);
  if (status != GM_OK) return status;
  out->offset = memory->address - record->address;
  out->bytes = memory->bytes;
  out->type = memory->type;
  return GM_OK;
}

gm_status gm__vmm_table_free(gm__vmm_table *table, void *device, const gm_memory *memory, bool *out_found,
                             gm_error *err) {
  gm__vmm_memory *record = vmm_record_find(table, memory->handle, true);
  *out_found = record != NULL;
  if (!record) return GM_OK;
  const gm_status status = vmm_memory_free(table->ops, device, record, err);
  vmm_record_discard(table, record);
  return status;
}
